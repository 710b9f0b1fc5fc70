// SPDX-License-Identifier: Apache-2.0
// What has arrived: a test frame, intact or not, or something else. The first two functions are in the receiving hot loop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "frame/headers.hpp"
#include "frame/tag.hpp"

namespace dutperf {

// The payload of a frame with our signature (UDP over IPv4 without options, or over IPv6 without extension headers), else nullptr.
inline const std::uint8_t* find_tag(const std::uint8_t* frame, std::size_t length) {
    constexpr std::size_t kUdp4 = ethernet::kSize + ipv4::kSize, kUdp6 = ethernet::kSize + ipv6::kSize;
    constexpr std::size_t kBehindUdp = udp::kSize + kTagSize;
    if (length < kUdp4 + kBehindUdp) return nullptr;
    const std::uint8_t* ip = frame + ethernet::kSize;
    const std::uint8_t* payload = nullptr;
    const std::uint16_t type = load<std::uint16_t>(frame + ethernet::kType);
    if (type == __builtin_bswap16(ethernet::kTypeIpv4)) {
        const bool fragment = (load_be16(ip + ipv4::kFragment) & ipv4::kFragmentMask) != 0;
        if (ip[0] != 0x45 || ip[ipv4::kProtocol] != kProtocolUdp || fragment) return nullptr;
        payload = frame + kUdp4 + udp::kSize;
    } else if (type == __builtin_bswap16(ethernet::kTypeIpv6)) {
        if (length < kUdp6 + kBehindUdp || ip[ipv6::kNextHeader] != kProtocolUdp) return nullptr;
        payload = frame + kUdp6 + udp::kSize;
    } else {
        return nullptr;
    }
    return has_signature(payload) ? payload : nullptr;
}

// Whether lengths and checksums of a frame that find_tag() accepted are right. A translator that miscounts a checksum fails here.
inline bool is_intact(const std::uint8_t* frame, std::size_t length, const std::uint8_t* payload) {
    const std::uint8_t* ip = frame + ethernet::kSize;
    const std::uint8_t* udp = payload - udp::kSize;
    const std::uint16_t udp_length = load_be16(udp + udp::kLength);
    if (udp_length < udp::kSize + kTagSize || udp + udp_length > frame + length) return false;
    const bool ipv4_header = ip[0] == 0x45;
    if (ipv4_header) {
        if (load_be16(ip + ipv4::kLength) != udp_length + ipv4::kSize) return false;
        if (checksum_fold(checksum_add(ip, ipv4::kSize)) != 0xFFFF) return false;
        if (load<std::uint16_t>(udp + udp::kChecksum) == 0) return true;  // RFC 768: IPv4 may do without
    } else {
        if ((ip[0] >> 4U) != 6 || load_be16(ip + ipv6::kPayloadLength) != udp_length) return false;
    }
    const std::size_t addresses_at = ipv4_header ? ipv4::kSource : ipv6::kSource, addresses_size = ipv4_header ? 8 : 32;
    const std::uint64_t sum = pseudo_header_sum(ip + addresses_at, addresses_size, udp_length, kProtocolUdp) + checksum_add(udp, udp_length);
    return checksum_fold(sum) == 0xFFFF;
}

// Everything that is no intact test frame of the running trial.
enum class OtherKind : std::uint8_t {
    arp_request,
    arp_reply,
    ndp_solicitation,
    ndp_advertisement,
    icmp_unreachable,
    icmp_time_exceeded,
    icmp_other,
    icmpv6_unreachable,
    icmpv6_packet_too_big,
    icmpv6_time_exceeded,
    icmpv6_other,
    wrong_direction,
    udp,
    tcp,
    ipv4_other,
    ipv6_other,
    not_ip,
    count
};

inline constexpr std::size_t kOtherKinds = static_cast<std::size_t>(OtherKind::count);
inline constexpr std::array<const char*, kOtherKinds> kOtherKindNames{"arp_request",
                                                                      "arp_reply",
                                                                      "ndp_solicitation",
                                                                      "ndp_advertisement",
                                                                      "icmp_unreachable",
                                                                      "icmp_time_exceeded",
                                                                      "icmp_other",
                                                                      "icmpv6_unreachable",
                                                                      "icmpv6_packet_too_big",
                                                                      "icmpv6_time_exceeded",
                                                                      "icmpv6_other",
                                                                      "wrong_direction",
                                                                      "udp",
                                                                      "tcp",
                                                                      "ipv4_other",
                                                                      "ipv6_other",
                                                                      "not_ip"};

OtherKind kind_of(const std::uint8_t* frame, std::size_t length);

}  // namespace dutperf
