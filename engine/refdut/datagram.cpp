// SPDX-License-Identifier: Apache-2.0
#include "refdut/datagram.hpp"

#include <algorithm>

namespace dutperf {

namespace {

constexpr std::uint8_t kHopLimit = 64;

const Layout& layout_of(bool ipv6) { return ipv6 ? kIpv6Layout : kIpv4Layout; }

void write_ipv4(std::uint8_t* ip, const Endpoints& between, std::size_t udp_length) {
    std::fill_n(ip, ipv4::kSize, std::uint8_t{0});
    ip[0] = ipv4::kFirstByte;
    store_be16(ip + ipv4::kLength, static_cast<std::uint16_t>(ipv4::kSize + udp_length));
    store_be16(ip + ipv4::kFragment, ipv4::kDontFragment);
    ip[ipv4::kTtl] = kHopLimit;
    ip[ipv4::kProtocol] = kProtocolUdp;
    std::ranges::copy(between.source.ipv4(), ip + ipv4::kSource);
    std::ranges::copy(between.destination.ipv4(), ip + ipv4::kDestination);
    store(ip + ipv4::kChecksum, checksum_finish(checksum_add(ip, ipv4::kSize)));
}

void write_ipv6(std::uint8_t* ip, const Endpoints& between, std::size_t udp_length) {
    std::fill_n(ip, ipv6::kSize, std::uint8_t{0});
    ip[0] = ipv6::kFirstByte;
    store_be16(ip + ipv6::kPayloadLength, static_cast<std::uint16_t>(udp_length));
    ip[ipv6::kNextHeader] = kProtocolUdp;
    ip[ipv6::kHopLimit] = kHopLimit;
    std::ranges::copy(between.source.bytes, ip + ipv6::kSource);
    std::ranges::copy(between.destination.bytes, ip + ipv6::kDestination);
}

}  // namespace

std::optional<Datagram> read_datagram(const Packet& packet) {
    const auto length = ip_length(packet);
    if (!length) return std::nullopt;
    const std::uint8_t* ip = packet.ip();
    const bool six = packet.is_ipv6();
    if (!six && !is_whole_ipv4(ip)) return std::nullopt;
    if (ip[six ? ipv6::kNextHeader : ipv4::kProtocol] != kProtocolUdp) return std::nullopt;
    const Layout& at = layout_of(six);
    const std::uint8_t* udp = packet.at + at.transport_at();
    const std::size_t size = *length - at.ip_size();
    if (!is_whole_udp(udp, size)) return std::nullopt;
    const auto address = [six](const std::uint8_t* from) {
        return six ? ip_of(read_address<Ipv6>(from)) : ip_of(read_address<Ipv4>(from));
    };
    return Datagram{.between = {.source = address(packet.at + at.source_at()),
                                .destination = address(packet.at + at.destination_at()),
                                .source_port = load_be16(udp + udp::kSourcePort),
                                .destination_port = load_be16(udp + udp::kDestinationPort)},
                    .payload = {udp + udp::kSize, size - udp::kSize}};
}

bool has_right_checksum(const Packet& packet) {
    const Layout& at = layout_of(packet.is_ipv6());
    const std::uint8_t* udp = packet.at + at.transport_at();
    if (load<std::uint16_t>(udp + udp::kChecksum) == 0) return !packet.is_ipv6();
    return checksum_fold(udp_sum(at, packet.at, load_be16(udp + udp::kLength))) == 0xFFFF;
}

std::size_t write_datagram(std::uint8_t* frame, const Mac& source, const Mac& destination, const Endpoints& between,
                           std::size_t payload_size) {
    const bool six = between.source.is_ipv6;
    const Layout& at = layout_of(six);
    const auto udp_length = static_cast<std::uint16_t>(udp::kSize + payload_size);
    std::ranges::copy(destination, frame + ethernet::kDestination);
    std::ranges::copy(source, frame + ethernet::kSource);
    store_be16(frame + ethernet::kType, at.type());
    (six ? write_ipv6 : write_ipv4)(frame + at.ip_at(), between, udp_length);
    std::uint8_t* udp = frame + at.transport_at();
    store_be16(udp + udp::kSourcePort, between.source_port);
    store_be16(udp + udp::kDestinationPort, between.destination_port);
    store_be16(udp + udp::kLength, udp_length);
    store<std::uint16_t>(udp + udp::kChecksum, 0);
    store(udp + udp::kChecksum, checksum_finish_udp(udp_sum(at, frame, udp_length)));
    return at.transport_at() + udp_length;
}

}  // namespace dutperf
