// SPDX-License-Identifier: Apache-2.0
#include "refdut/packet.hpp"

#include "flow/flow_source.hpp"
#include "frame/address.hpp"

namespace dutperf {

namespace {

constexpr std::size_t kEchoIdentifierAt = 4;

std::uint64_t hash_words(std::uint64_t hash, const std::uint8_t* at, std::size_t size) {
    for (std::size_t i = 0; i < size; i += 4) hash = random_bits(hash, load_be32(at + i));
    return hash;
}

bool is_echo(std::uint8_t type, bool six) {
    return six ? type == icmp::kEchoRequest6 || type == icmp::kEchoReply6
               : type == icmp::kEchoRequest || type == icmp::kEchoReply;
}

}  // namespace

std::optional<Ports> ports_of(const Packet& packet) {
    const std::uint8_t* ip = packet.ip();
    const bool six = packet.is_ipv6();
    if (!six && !is_whole_ipv4(ip)) return std::nullopt;
    const std::size_t header = six ? ipv6::kSize : ipv4::kSize;
    const std::uint8_t protocol = ip[six ? ipv6::kNextHeader : ipv4::kProtocol], *transport = ip + header;
    if (packet.length < kEthernetPayloadAt + header + icmp::kSize) return std::nullopt;
    if (protocol == kProtocolUdp || protocol == kProtocolTcp)
        return Ports{.source = load_be16(transport + udp::kSourcePort),
                     .destination = load_be16(transport + udp::kDestinationPort)};
    if (protocol != (six ? kProtocolIcmpv6 : kProtocolIcmp) || !is_echo(transport[icmp::kType], six))
        return std::nullopt;
    const std::uint16_t identifier = load_be16(transport + kEchoIdentifierAt);
    return Ports{.source = identifier, .destination = identifier};
}

std::optional<std::size_t> ip_length(const Packet& packet) {
    const std::uint8_t* ip = packet.ip();
    const std::size_t room = packet.length - kEthernetPayloadAt;
    if (packet.is_ipv6()) {
        if (room < ipv6::kSize || ip[0] >> 4U != 6) return std::nullopt;
        const std::size_t length = load_be16(ip + ipv6::kPayloadLength) + ipv6::kSize;
        return length <= room ? std::optional(length) : std::nullopt;
    }
    if (room < ipv4::kSize || ip[0] >> 4U != 4) return std::nullopt;
    const std::size_t header = 4 * std::size_t{ip[0] & 0x0FU}, length = load_be16(ip + ipv4::kLength);
    if (header < ipv4::kSize || length < header || length > room) return std::nullopt;
    return checksum_fold(checksum_add(ip, header)) == 0xFFFF ? std::optional(length) : std::nullopt;
}

std::uint64_t flow_of(const Packet& packet) {
    const std::uint8_t* ip = packet.ip();
    const bool six = packet.is_ipv6();
    const std::uint64_t hash =
        six ? hash_words(0, ip + ipv6::kSource, 2 * sizeof(Ipv6)) : hash_words(0, ip + ipv4::kSource, 2 * sizeof(Ipv4));
    const std::uint8_t protocol = six ? ip[ipv6::kNextHeader] : ip[ipv4::kProtocol];
    const std::size_t header = six ? ipv6::kSize : 4 * std::size_t{ip[0] & 0x0FU};
    const bool fragment = !six && (load_be16(ip + ipv4::kFragment) & ipv4::kFragmentMask) != 0;
    const bool ports = (protocol == kProtocolUdp || protocol == kProtocolTcp) && !fragment &&
                       packet.length >= kEthernetPayloadAt + header + 4;
    return ports ? hash_words(hash, ip + header, 4) : hash;
}

}  // namespace dutperf
