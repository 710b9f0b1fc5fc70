// SPDX-License-Identifier: Apache-2.0
// Where everything stands in a frame, and what its checksums cover: Ethernet II, tags (IEEE 802.1Q), IP, its extension
// headers (RFC 8200 4), UDP, and the engine's own tag. A Layout is a value of a few numbers and a constant wherever it
// is known: the hot loops take it as a template argument.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "frame/headers.hpp"
#include "frame/tag.hpp"

namespace dutperf {

inline constexpr std::size_t kFcsSize = 4;          // counted in frame sizes, added and removed by the port
inline constexpr std::size_t kPreambleAndGap = 20;  // bytes: what a medium takes beside each frame (IEEE 802.3)
inline constexpr std::size_t kMinEthernetSize = 64,
                             kMinEthernetLength = kMinEthernetSize - kFcsSize;  // with FCS, and without

// Bytes of a frame, from its start; `to` is the first one behind.
struct Range {
    std::size_t from, to;

    [[nodiscard]] constexpr std::size_t size() const { return to - from; }
    constexpr bool operator==(const Range&) const = default;
};

inline constexpr std::size_t kTagInUdp = udp::kSize;  // the tag is where the payload begins

struct Layout {
    bool ipv6 = false;
    std::uint8_t vlan_tags = 0;         // before the type of what Ethernet carries
    std::uint16_t extensions_size = 0;  // bytes of all IPv6 extension headers

    constexpr bool operator==(const Layout&) const = default;

    // Offsets in the frame.
    [[nodiscard]] constexpr std::size_t type_at() const { return ethernet::kType + vlan_tags * kVlanTagSize; }
    [[nodiscard]] constexpr std::size_t ip_at() const { return ethernet::kSize + vlan_tags * kVlanTagSize; }
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
    // Of what says that UDP follows: the IP header, or its last extension header, whose first byte it is where there is
    // one only.
    [[nodiscard]] constexpr std::size_t protocol_at() const {
        return extensions_size != 0 ? ip_at() + ipv6::kSize : ip_at() + (ipv6 ? ipv6::kNextHeader : ipv4::kProtocol);
    }
    [[nodiscard]] constexpr std::uint16_t type() const { return ipv6 ? ethernet::kTypeIpv6 : ethernet::kTypeIpv4; }

    // What is the same in all frames of this layout before IP, and between IP and UDP.
    [[nodiscard]] constexpr Range types() const { return {ethernet::kType, ip_at()}; }
    [[nodiscard]] constexpr Range extensions() const { return {transport_at() - extensions_size, transport_at()}; }

    // What the IP header's checksum covers (RFC 791): nothing of IPv6, which has none.
    [[nodiscard]] constexpr Range ip_covered() const { return {ip_at(), ipv6 ? ip_at() : ip_at() + ipv4::kSize}; }
    // What UDP's covers of the IP header, besides length and protocol (RFC 768, RFC 8200 8.1): both addresses.
    [[nodiscard]] constexpr Range addresses() const { return {source_at(), ip_at() + ip_size()}; }

    // What IP's length field holds where UDP has so many bytes.
    [[nodiscard]] constexpr std::size_t ip_length(std::size_t udp_length) const {
        return udp_length + extensions_size + (ipv6 ? 0 : ipv4::kSize);
    }

    // The smallest frame that has room for the tag, and the MTU that one needs; FCS included in the frame's size.
    [[nodiscard]] constexpr std::size_t min_frame_size() const {
        return std::max(kMinEthernetSize, tag_end() + kFcsSize);
    }
    [[nodiscard]] constexpr std::size_t mtu_of(std::size_t frame_size) const { return frame_size - kFcsSize - ip_at(); }
    [[nodiscard]] constexpr std::size_t frame_size_of(std::size_t mtu) const { return mtu + kFcsSize + ip_at(); }

private:
    static constexpr std::size_t kVlanTagSize = 4;
};

// What the engine sends and knows again. Ethernet's payload begins at the same place in both, and in frames that carry
// no IP.
inline constexpr Layout kIpv4Layout{.ipv6 = false}, kIpv6Layout{.ipv6 = true};
inline constexpr std::size_t kEthernetPayloadAt = kIpv4Layout.ip_at();
static_assert(kEthernetPayloadAt == kIpv6Layout.ip_at());

inline constexpr std::uint16_t kMinFrameSize = kIpv4Layout.min_frame_size(),
                               kMinFrameSizeIpv6 = kIpv6Layout.min_frame_size(), kMaxFrameSize = 9216;

// Unfolded sums of what UDP's checksum covers of `frame`: of the pseudo-header, and of all of it.
inline std::uint64_t udp_pseudo_sum(const Layout& at, const std::uint8_t* frame, std::uint16_t udp_length) {
    return pseudo_header_sum(frame + at.addresses().from, at.addresses().size(), udp_length, kProtocolUdp);
}
inline std::uint64_t udp_sum(const Layout& at, const std::uint8_t* frame, std::uint16_t udp_length) {
    return udp_pseudo_sum(at, frame, udp_length) + checksum_add(frame + at.transport_at(), udp_length);
}
// Of what IPv4's covers.
inline std::uint64_t ip_sum(const Layout& at, const std::uint8_t* frame) {
    return checksum_add(frame + at.ip_covered().from, at.ip_covered().size());
}

}  // namespace dutperf
