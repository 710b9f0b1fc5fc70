// SPDX-License-Identifier: Apache-2.0
// Classifies received frames: test frames, intact or not, and others by kind. find_tag() and is_intact() run in the
// receiving hot loop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "frame/address.hpp"
#include "frame/dissect.hpp"
#include "frame/layout.hpp"

namespace dutperf {

// The EtherType. The frame must be long enough to have one.
inline std::uint16_t type_of(const std::uint8_t* frame) { return load_be16(frame + ethernet::kType); }

// find_tag() for frames whose EtherType matches the layout.
template <Layout L>
inline const std::uint8_t* find_tag_at(const std::uint8_t* frame, std::size_t length) {
    if (length < L.tag_end() || frame[L.protocol_at()] != kProtocolUdp) return nullptr;
    if constexpr (!L.ipv6) {
        const std::uint8_t* ip = frame + L.ip_at();
        const bool fragment = (load_be16(ip + ipv4::kFragment) & ipv4::kFragmentMask) != 0;
        if (ip[0] != ipv4::kFirstByte || fragment) return nullptr;
    }
    return has_signature(frame + L.tag_at()) ? frame + L.tag_at() : nullptr;
}

// The tag of a frame that has our signature (UDP over IPv4 without options or over IPv6 without extension headers);
// otherwise nullptr.
inline const std::uint8_t* find_tag(const std::uint8_t* frame, std::size_t length) {
    if (length < kEthernetPayloadAt) return nullptr;
    switch (type_of(frame)) {
        case kIpv4Layout.type(): return find_tag_at<kIpv4Layout>(frame, length);
        case kIpv6Layout.type(): return find_tag_at<kIpv6Layout>(frame, length);
        default: return nullptr;
    }
}

// is_intact() for frames of one layout, which find_tag_at() accepted.
template <Layout L>
inline bool is_intact_at(const std::uint8_t* frame, std::size_t length) {
    const std::uint8_t *ip = frame + L.ip_at(), *udp = frame + L.transport_at();
    const std::uint16_t udp_length = load_be16(udp + udp::kLength);
    if (udp_length < udp::kSize + kTagSize || L.transport_at() + udp_length > length) return false;
    if constexpr (L.ipv6) {
        if ((ip[0] >> 4U) != 6 || load_be16(ip + ipv6::kPayloadLength) != L.ip_length(udp_length)) return false;
        if (load<std::uint16_t>(udp + udp::kChecksum) == 0) return false;  // RFC 8200 8.1
    } else {
        if (load_be16(ip + ipv4::kLength) != L.ip_length(udp_length)) return false;
        if (checksum_fold(ip_sum(L, frame)) != 0xFFFF) return false;
        if (load<std::uint16_t>(udp + udp::kChecksum) == 0) return true;  // RFC 768: optional with IPv4
    }
    return checksum_fold(udp_sum(L, frame, udp_length)) == 0xFFFF;
}

// Whether the lengths and checksums are right, of a frame that find_tag() accepted. A translator that computes a wrong
// checksum is detected here.
inline bool is_intact(const std::uint8_t* frame, std::size_t length) {
    return type_of(frame) == kIpv6Layout.type() ? is_intact_at<kIpv6Layout>(frame, length)
                                                : is_intact_at<kIpv4Layout>(frame, length);
}

// Frames that are not intact test frames of the running trial.
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
    other_run,  // test frames that another engine sent
    fragment,   // of an IP packet (RFC 791, RFC 8200 4.5) to one station
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
                                                                      "other_run",
                                                                      "fragment",
                                                                      "udp",
                                                                      "tcp",
                                                                      "ipv4_other",
                                                                      "ipv6_other",
                                                                      "not_ip"};

OtherKind kind_of(const std::uint8_t* frame, std::size_t length);
// That of the frame's packet in all tunnels.
OtherKind kind_in_tunnels(const std::uint8_t* frame, std::size_t length, const InnermostPacket& innermost);

// What an ICMP or ICMPv6 error message says (RFC 792, RFC 4443): why somebody dropped a packet.
struct IcmpError {
    bool ipv6;
    std::uint8_t type, code;
    std::uint32_t mtu;  // that the packet did not fit; 0: the message does not name any
    // Of the packet that it is about, if it was sent from there: by the station that has the address (RFC 1122 3.2.2,
    // RFC 4443 2.2). A router that refuses a packet names itself.
    std::optional<IpAddress> holder{};

    bool operator==(const IcmpError&) const = default;
};

// Nothing for a packet that is no error message.
std::optional<IcmpError> icmp_error_of(const InnermostPacket& innermost);

}  // namespace dutperf
