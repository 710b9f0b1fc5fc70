// SPDX-License-Identifier: Apache-2.0
#include "frame/arrival.hpp"

#include <algorithm>
#include <span>

#include "frame/dissect.hpp"

namespace dutperf {

namespace {

// RFC 792
OtherKind icmp_kind(std::uint8_t type) {
    switch (type) {
        case 3: return OtherKind::icmp_unreachable;
        case 11: return OtherKind::icmp_time_exceeded;
        default: return OtherKind::icmp_other;
    }
}

// RFC 4443, RFC 4861
OtherKind icmpv6_kind(std::uint8_t type) {
    switch (type) {
        case 1: return OtherKind::icmpv6_unreachable;
        case 2: return OtherKind::icmpv6_packet_too_big;
        case 3: return OtherKind::icmpv6_time_exceeded;
        case 135: return OtherKind::ndp_solicitation;
        case 136: return OtherKind::ndp_advertisement;
        default: return OtherKind::icmpv6_other;
    }
}

// What an IP packet carries, behind the header and hop-by-hop options.
struct Carried {
    std::uint8_t protocol;
    bool fragment;
    std::span<const std::uint8_t> bytes;
};

std::span<const std::uint8_t> from(std::span<const std::uint8_t> packet, std::size_t at) {
    return packet.subspan(std::min(at, packet.size()));
}

std::optional<Carried> carried_by_ipv4(std::span<const std::uint8_t> packet) {
    if (packet.size() < ipv4::kSize) return std::nullopt;
    const std::uint8_t* ip = packet.data();
    return Carried{.protocol = ip[ipv4::kProtocol],
                   .fragment = (load_be16(ip + ipv4::kFragment) & ipv4::kFragmentMask) != 0,
                   .bytes = from(packet, 4 * std::size_t{ip[0] & 0x0FU})};
}

std::optional<Carried> carried_by_ipv6(std::span<const std::uint8_t> packet) {
    if (packet.size() < ipv6::kSize) return std::nullopt;
    Carried carried{.protocol = packet[ipv6::kNextHeader], .fragment = false, .bytes = packet.subspan(ipv6::kSize)};
    // multicast listener reports have hop-by-hop options
    if (carried.protocol == ipv6::kHopByHop && carried.bytes.size() >= ipv6::kExtensionUnit) {
        const std::size_t size = ipv6::kExtensionUnit * (std::size_t{carried.bytes[1]} + 1);
        carried.protocol = carried.bytes[0];
        carried.bytes = from(carried.bytes, size);
    }
    carried.fragment = carried.protocol == ipv6::kFragment && carried.bytes.size() >= ipv6::kExtensionUnit &&
                       (load_be16(carried.bytes.data() + 2) & ipv6::kFragmentMask) != 0;
    return carried;
}

// `to_group`: of stations. A DUT that fragments test frames sends these to one.
OtherKind kind_of_ip(const std::optional<Carried>& carried, bool ipv6, bool to_group) {
    const OtherKind other = ipv6 ? OtherKind::ipv6_other : OtherKind::ipv4_other;
    if (!carried) return other;
    if (carried->fragment) return to_group ? other : OtherKind::fragment;
    const bool any = !carried->bytes.empty();
    switch (carried->protocol) {
        case kProtocolIcmp: return ipv6 ? other : any ? icmp_kind(carried->bytes[0]) : OtherKind::icmp_other;
        case kProtocolIcmpv6: return !ipv6 ? other : any ? icmpv6_kind(carried->bytes[0]) : OtherKind::icmpv6_other;
        case kProtocolUdp: return OtherKind::udp;
        case kProtocolTcp: return OtherKind::tcp;
        default: return other;
    }
}

bool is_error(std::uint8_t type, bool ipv6) {
    constexpr std::uint8_t kFirstInformational = 128;  // RFC 4443 2.1
    return ipv6 ? type < kFirstInformational : type == 3 || type == 4 || type == 11 || type == 12;
}

std::uint32_t mtu_in(std::span<const std::uint8_t> message, bool ipv6) {
    if (ipv6) return message[0] == 2 ? load_be32(message.data() + 4) : 0;
    return message[0] == 3 && message[1] == 4 ? load_be16(message.data() + 6) : 0;  // RFC 1191
}

IpAddress address_at(const std::uint8_t* ip, bool ipv6, bool destination) {
    if (ipv6) return ip_of(read_address<Ipv6>(ip + (destination ? ipv6::kDestination : ipv6::kSource)));
    return ip_of(read_address<Ipv4>(ip + (destination ? ipv4::kDestination : ipv4::kSource)));
}

// The packet that an error is about follows its header.
std::optional<IpAddress> holder_in(const std::uint8_t* ip, std::span<const std::uint8_t> message, bool ipv6) {
    const std::span quoted = message.subspan(icmp::kSize);
    if (quoted.size() < (ipv6 ? ipv6::kSize : ipv4::kSize)) return std::nullopt;
    const IpAddress sender = address_at(ip, ipv6, false);
    return sender == address_at(quoted.data(), ipv6, true) ? std::optional(sender) : std::nullopt;
}

}  // namespace

OtherKind kind_of(const std::uint8_t* frame, std::size_t length) {
    const Network network = network_of(frame, length);
    const std::uint8_t* payload = frame + network.at;
    const std::size_t rest = length - network.at;
    const bool to_group = length != 0 && (frame[0] & 1U) != 0;
    switch (network.type) {
        case ethernet::kTypeIpv4: return kind_of_ip(carried_by_ipv4({payload, rest}), false, to_group);
        case ethernet::kTypeIpv6: return kind_of_ip(carried_by_ipv6({payload, rest}), true, to_group);
        case ethernet::kTypeArp:
            return rest >= 8 && load_be16(payload + 6) == 2 ? OtherKind::arp_reply : OtherKind::arp_request;
        default: return OtherKind::not_ip;
    }
}

OtherKind kind_in_tunnels(const std::uint8_t* frame, std::size_t length, const InnermostPacket& innermost) {
    const auto& [packet, ipv6] = innermost;
    if (packet.empty()) return kind_of(frame, length);
    const bool to_group = (frame[0] & 1U) != 0;
    return kind_of_ip(ipv6 ? carried_by_ipv6(packet) : carried_by_ipv4(packet), ipv6, to_group);
}

std::optional<IcmpError> icmp_error_of(const InnermostPacket& innermost) {
    const auto& [packet, ipv6] = innermost;
    if (packet.empty()) return std::nullopt;
    const auto carried = ipv6 ? carried_by_ipv6(packet) : carried_by_ipv4(packet);
    if (!carried || carried->fragment || carried->protocol != (ipv6 ? kProtocolIcmpv6 : kProtocolIcmp) ||
        carried->bytes.size() < icmp::kSize || !is_error(carried->bytes[0], ipv6))
        return std::nullopt;
    return IcmpError{.ipv6 = ipv6,
                     .type = carried->bytes[0],
                     .code = carried->bytes[1],
                     .mtu = mtu_in(carried->bytes, ipv6),
                     .holder = holder_in(packet.data(), carried->bytes, ipv6)};
}

}  // namespace dutperf
