// SPDX-License-Identifier: Apache-2.0
// The layout of a frame, and which bytes its checksums cover: Ethernet II, VLAN tags (IEEE 802.1Q), IP, extension
// headers (RFC 8200 4), UDP, and the engine's own tag. A Layout is a few numbers. The hot loops take it as a template
// argument, so that all offsets are constants.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "frame/headers.hpp"
#include "frame/tag.hpp"

namespace dutperf {

inline constexpr std::size_t kFcsSize = 4;          // included in frame sizes; the port adds and removes it
inline constexpr std::size_t kPreambleAndGap = 20;  // bytes on the medium for each frame (IEEE 802.3)
inline constexpr std::size_t kMinEthernetSize = 64,
                             kMinEthernetLength = kMinEthernetSize - kFcsSize;  // with FCS, and without

// Bytes [from, to) of a frame.
struct Range {
    std::size_t from, to;

    [[nodiscard]] constexpr std::size_t size() const { return to - from; }
    constexpr bool operator==(const Range&) const = default;
};

inline constexpr std::size_t kTagInUdp = udp::kSize;  // the tag starts the UDP payload

struct Layout {
    bool ipv6 = false;
    std::uint8_t vlan_tags = 0;         // before the EtherType
    std::uint16_t extensions_size = 0;  // bytes of all IPv6 extension headers

    constexpr bool operator==(const Layout&) const = default;

    // Offsets in the frame.
    [[nodiscard]] constexpr std::size_t type_at() const { return ethernet::kType + vlan_tags * ethernet::kVlanTagSize; }
    [[nodiscard]] constexpr std::size_t ip_at() const { return ethernet::kSize + vlan_tags * ethernet::kVlanTagSize; }
    [[nodiscard]] constexpr std::size_t ip_size() const {
        return ipv6 ? ipv6::kSize : ipv4::kSize;
    }  // without extension headers
    [[nodiscard]] constexpr std::size_t transport_at() const { return ip_at() + ip_size() + extensions_size; }
    [[nodiscard]] constexpr std::size_t tag_at() const { return transport_at() + kTagInUdp; }
    [[nodiscard]] constexpr std::size_t tag_end() const { return tag_at() + kTagSize; }
    [[nodiscard]] constexpr std::size_t source_at() const { return ip_at() + (ipv6 ? ipv6::kSource : ipv4::kSource); }
    [[nodiscard]] constexpr std::size_t destination_at() const {
        return ip_at() + (ipv6 ? ipv6::kDestination : ipv4::kDestination);
    }
    [[nodiscard]] constexpr Range source() const { return {source_at(), destination_at()}; }
    [[nodiscard]] constexpr Range destination() const { return {destination_at(), ip_at() + ip_size()}; }
    // The field that announces UDP: in the IP header, or the first byte of the extension header, where there is one
    // only.
    [[nodiscard]] constexpr std::size_t protocol_at() const {
        return extensions_size != 0 ? ip_at() + ipv6::kSize : ip_at() + (ipv6 ? ipv6::kNextHeader : ipv4::kProtocol);
    }
    [[nodiscard]] constexpr std::uint16_t type() const { return ipv6 ? ethernet::kTypeIpv6 : ethernet::kTypeIpv4; }

    // The bytes that are the same in all frames of this layout: before IP, and between IP and UDP.
    [[nodiscard]] constexpr Range types() const { return {ethernet::kType, ip_at()}; }
    [[nodiscard]] constexpr Range extensions() const { return {transport_at() - extensions_size, transport_at()}; }

    // The bytes that the IPv4 header checksum covers (RFC 791); empty for IPv6, which has none.
    [[nodiscard]] constexpr Range ip_covered() const { return {ip_at(), ipv6 ? ip_at() : ip_at() + ipv4::kSize}; }
    // Both addresses: the part of the IP header that the UDP checksum covers besides length and protocol (RFC 768, RFC
    // 8200 8.1).
    [[nodiscard]] constexpr Range addresses() const { return {source_at(), ip_at() + ip_size()}; }

    // The value of the IP length field for a UDP length.
    [[nodiscard]] constexpr std::size_t ip_length(std::size_t udp_length) const {
        return udp_length + extensions_size + (ipv6 ? 0 : ipv4::kSize);
    }

    // The smallest frame with room for the tag; then conversions between frame size and MTU. Frame sizes include the
    // FCS.
    [[nodiscard]] constexpr std::size_t min_frame_size() const {
        return std::max(kMinEthernetSize, tag_end() + kFcsSize);
    }
    [[nodiscard]] constexpr std::size_t mtu_of(std::size_t frame_size) const { return frame_size - kFcsSize - ip_at(); }
    [[nodiscard]] constexpr std::size_t frame_size_of(std::size_t mtu) const { return mtu + kFcsSize + ip_at(); }
};

// The layouts that the engine sends and recognises. The Ethernet payload begins at the same offset in both and in
// frames without IP.
inline constexpr Layout kIpv4Layout{.ipv6 = false}, kIpv6Layout{.ipv6 = true};
inline constexpr std::size_t kEthernetPayloadAt = kIpv4Layout.ip_at();
static_assert(kEthernetPayloadAt == kIpv6Layout.ip_at());

inline constexpr std::uint16_t kMinFrameSize = kIpv4Layout.min_frame_size(),
                               kMinFrameSizeIpv6 = kIpv6Layout.min_frame_size(), kMaxFrameSize = 9216;

// Unfolded sum for the UDP checksum of `frame`.
inline std::uint64_t udp_sum(const Layout& at, const std::uint8_t* frame, std::uint16_t udp_length) {
    return pseudo_header_sum(frame + at.addresses().from, at.addresses().size(), udp_length, kProtocolUdp) +
           checksum_add(frame + at.transport_at(), udp_length);
}
// For the IPv4 header checksum.
inline std::uint64_t ip_sum(const Layout& at, const std::uint8_t* frame) {
    return checksum_add(frame + at.ip_covered().from, at.ip_covered().size());
}

}  // namespace dutperf
