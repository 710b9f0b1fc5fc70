// SPDX-License-Identifier: Apache-2.0
#include "dns/datagram.hpp"

#include <algorithm>

#include "frame/bytes.hpp"
#include "frame/checksum.hpp"

namespace dutperf::dns {

namespace {

constexpr std::uint8_t kHopLimit = 64;

// An IP packet that carries UDP.
struct Packet {
    bool ipv6;
    bool has_right_lengths;  // and checksum, of the IP header
    Bytes addresses;         // both
    Bytes udp;               // to the end of the packet
};

std::optional<Packet> packet_of(Bytes ip, bool ipv6, std::size_t header, std::size_t length, std::size_t addresses_at) {
    if (header > ip.size()) return std::nullopt;
    const bool fits = length >= header && length <= ip.size();
    return Packet{.ipv6 = ipv6,
                  .has_right_lengths = fits,
                  .addresses = ip.subspan(addresses_at, ipv6 ? 2 * sizeof(Ipv6) : 2 * sizeof(Ipv4)),
                  .udp = ip.subspan(header, fits ? length - header : ip.size() - header)};
}

std::optional<Packet> udp_over_ipv4(Bytes ip) {
    if (ip.size() < ipv4::kSize || ip[0] >> 4U != 4 || ip[ipv4::kProtocol] != kProtocolUdp) return std::nullopt;
    if ((load_be16(&ip[ipv4::kFragment]) & ipv4::kFragmentMask) != 0) return std::nullopt;
    const std::size_t header = 4 * std::size_t{ip[0] & 0x0FU};
    auto packet = packet_of(ip, false, header, load_be16(&ip[ipv4::kLength]), ipv4::kSource);
    if (packet && (header < ipv4::kSize || checksum_fold(checksum_add(ip.data(), header)) != 0xFFFF))
        packet->has_right_lengths = false;
    return packet;
}

std::optional<Packet> udp_over_ipv6(Bytes ip) {
    if (ip.size() < ipv6::kSize || ip[0] >> 4U != 6 || ip[ipv6::kNextHeader] != kProtocolUdp) return std::nullopt;
    return packet_of(ip, true, ipv6::kSize, ipv6::kSize + load_be16(&ip[ipv6::kPayloadLength]), ipv6::kSource);
}

Datagram::Checksum checksum_of(const Packet& packet, std::uint16_t length) {
    using enum Datagram::Checksum;
    if (!packet.has_right_lengths || length < udp::kSize || length != packet.udp.size()) return bad;
    const auto checksum = load<std::uint16_t>(&packet.udp[udp::kChecksum]);
    if (checksum == 0) return packet.ipv6 ? bad : good;  // RFC 768: optional with IPv4
    const std::uint64_t pseudo =
        pseudo_header_sum(packet.addresses.data(), packet.addresses.size(), length, kProtocolUdp);
    if (checksum_fold(pseudo + checksum_add(packet.udp.data(), length)) == 0xFFFF) return good;
    return checksum == checksum_fold(pseudo) ? unfinished : bad;
}

IpAddress address_in(const Packet& packet, bool destination) {
    const std::uint8_t* at = packet.addresses.data() + (destination ? packet.addresses.size() / 2 : 0);
    return packet.ipv6 ? ip_of(read_address<Ipv6>(at)) : ip_of(read_address<Ipv4>(at));
}

template <class Address>
void write_address(const Address& address, std::uint8_t* at) {
    std::ranges::copy(address, at);
}

// Both return the offset of UDP in the packet.
std::size_t write_ipv4(const Datagram& back_to, std::size_t udp_length, std::uint8_t* ip) {
    std::fill_n(ip, ipv4::kSize, std::uint8_t{0});
    ip[0] = ipv4::kFirstByte;
    store_be16(ip + ipv4::kLength, static_cast<std::uint16_t>(ipv4::kSize + udp_length));
    store_be16(ip + ipv4::kFragment, ipv4::kDontFragment);
    ip[ipv4::kTtl] = kHopLimit;
    ip[ipv4::kProtocol] = kProtocolUdp;
    write_address(back_to.destination.ipv4(), ip + ipv4::kSource);
    write_address(back_to.source.ipv4(), ip + ipv4::kDestination);
    store(ip + ipv4::kChecksum, checksum_finish(checksum_add(ip, ipv4::kSize)));
    return ipv4::kSize;
}

std::size_t write_ipv6(const Datagram& back_to, std::size_t udp_length, std::uint8_t* ip) {
    store_be32(ip, std::uint32_t{ipv6::kFirstByte} << 24U);
    store_be16(ip + ipv6::kPayloadLength, static_cast<std::uint16_t>(udp_length));
    ip[ipv6::kNextHeader] = kProtocolUdp;
    ip[ipv6::kHopLimit] = kHopLimit;
    write_address(back_to.destination.bytes, ip + ipv6::kSource);
    write_address(back_to.source.bytes, ip + ipv6::kDestination);
    return ipv6::kSize;
}

}  // namespace

std::optional<Datagram> read_datagram(Bytes frame) {
    if (frame.size() < ethernet::kSize) return std::nullopt;
    const std::uint16_t type = load_be16(&frame[ethernet::kType]);
    if (type != ethernet::kTypeIpv4 && type != ethernet::kTypeIpv6) return std::nullopt;
    const Bytes ip = frame.subspan(ethernet::kSize);
    const auto packet = type == ethernet::kTypeIpv6 ? udp_over_ipv6(ip) : udp_over_ipv4(ip);
    if (!packet || packet->udp.size() < udp::kSize) return std::nullopt;
    const std::uint8_t* udp = packet->udp.data();
    const std::uint16_t length = load_be16(udp + udp::kLength);
    return Datagram{.source = address_in(*packet, false),
                    .destination = address_in(*packet, true),
                    .source_port = load_be16(udp + udp::kSourcePort),
                    .destination_port = load_be16(udp + udp::kDestinationPort),
                    .checksum = checksum_of(*packet, length),
                    .payload = packet->udp.subspan(udp::kSize)};
}

std::size_t write_back_headers(Bytes received, const Datagram& datagram, std::size_t size, Room frame) {
    const bool six = datagram.destination.is_ipv6;
    const std::size_t udp_length = udp::kSize + size;
    std::copy_n(&received[ethernet::kSource], sizeof(Mac), &frame[ethernet::kDestination]);
    std::copy_n(&received[ethernet::kDestination], sizeof(Mac), &frame[ethernet::kSource]);
    store_be16(&frame[ethernet::kType], six ? ethernet::kTypeIpv6 : ethernet::kTypeIpv4);
    std::uint8_t* ip = &frame[ethernet::kSize];
    std::uint8_t* udp = ip + (six ? write_ipv6(datagram, udp_length, ip) : write_ipv4(datagram, udp_length, ip));
    store_be16(udp + udp::kSourcePort, datagram.destination_port);
    store_be16(udp + udp::kDestinationPort, datagram.source_port);
    store_be16(udp + udp::kLength, static_cast<std::uint16_t>(udp_length));
    store<std::uint16_t>(udp + udp::kChecksum, 0);
    const std::size_t addresses = six ? 2 * sizeof(Ipv6) : 2 * sizeof(Ipv4);
    const std::uint64_t sum =
        pseudo_header_sum(udp - addresses, addresses, static_cast<std::uint16_t>(udp_length), kProtocolUdp) +
        checksum_add(udp, udp_length);
    store(udp + udp::kChecksum, checksum_finish_udp(sum));
    return headers_size(six) + size;
}

}  // namespace dutperf::dns
