// SPDX-License-Identifier: Apache-2.0
#include "frame/arrival.hpp"

#include "frame/dissect.hpp"

namespace dutperf {

namespace {

constexpr std::uint8_t kHopByHop = 0;

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

OtherKind ipv4_kind(const std::uint8_t* ip, std::size_t length) {
    if (length < ipv4::kSize) return OtherKind::ipv4_other;
    const std::size_t header = 4 * std::size_t{ip[0] & 0x0FU};
    switch (ip[ipv4::kProtocol]) {
        case kProtocolIcmp: return length > header ? icmp_kind(ip[header]) : OtherKind::icmp_other;
        case kProtocolUdp: return OtherKind::udp;
        case kProtocolTcp: return OtherKind::tcp;
        default: return OtherKind::ipv4_other;
    }
}

OtherKind ipv6_kind(const std::uint8_t* ip, std::size_t length) {
    if (length < ipv6::kSize) return OtherKind::ipv6_other;
    std::uint8_t next = ip[ipv6::kNextHeader];
    std::size_t at = ipv6::kSize;
    if (next == kHopByHop && length >= at + 8) {  // multicast listener reports carry one
        next = ip[at];
        at += 8 * (std::size_t{ip[at + 1]} + 1);
    }
    switch (next) {
        case kProtocolIcmpv6: return length > at ? icmpv6_kind(ip[at]) : OtherKind::icmpv6_other;
        case kProtocolUdp: return OtherKind::udp;
        case kProtocolTcp: return OtherKind::tcp;
        default: return OtherKind::ipv6_other;
    }
}

}  // namespace

OtherKind kind_of(const std::uint8_t* frame, std::size_t length) {
    const Network network = network_of(frame, length);
    const std::uint8_t* payload = frame + network.at;
    const std::size_t rest = length - network.at;
    switch (network.type) {
        case ethernet::kTypeIpv4: return ipv4_kind(payload, rest);
        case ethernet::kTypeIpv6: return ipv6_kind(payload, rest);
        case ethernet::kTypeArp:
            return rest >= 8 && load_be16(payload + 6) == 2 ? OtherKind::arp_reply : OtherKind::arp_request;
        default: return OtherKind::not_ip;
    }
}

}  // namespace dutperf
