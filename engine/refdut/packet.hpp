// SPDX-License-Identifier: Apache-2.0
// A frame that is being forwarded: its start in the buffer and its length without FCS. Translation to IPv6 and
// encapsulation use the room before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "frame/layout.hpp"

namespace dutperf {

inline constexpr std::size_t kTranslationGrowth = ipv6::kSize - ipv4::kSize;
inline constexpr std::size_t kMostGrowth = ipv6::kSize;  // in a tunnel

struct Packet {
    std::uint8_t* at;  // at least kMostGrowth bytes of the buffer are before it
    std::size_t length;

    [[nodiscard]] std::uint8_t* ip() const { return at + kEthernetPayloadAt; }
    [[nodiscard]] bool is_ipv6() const { return load_be16(at + ethernet::kType) == ethernet::kTypeIpv6; }
};

template <class Address>
Address address_at(const std::uint8_t* at) {
    Address address{};
    std::memcpy(address.data(), at, address.size());
    return address;
}

// An IPv4 packet without options that is no fragment.
inline bool is_whole_ipv4(const std::uint8_t* ip) {
    return ip[0] == ipv4::kFirstByte && (load_be16(ip + ipv4::kFragment) & ipv4::kFragmentMask) == 0;
}

// A UDP header and payload that fill `size` bytes.
inline bool is_whole_udp(const std::uint8_t* udp, std::size_t size) {
    return size >= udp::kSize && load_be16(udp + udp::kLength) == size;
}

struct Ports {
    std::uint16_t source = 0, destination = 0;
};

// The ports of a whole UDP or TCP packet; of an ICMP echo both are its identifier (RFC 7597 8.2). Nothing for others.
// Requires a length that fits.
std::optional<Ports> ports_of(const Packet& packet);

// The length of the IP packet; nothing if header and frame are inconsistent (RFC 1812 5.2.2, RFC 8200 3).
std::optional<std::size_t> ip_length(const Packet& packet);

// The flow hash, as for receive-side scaling: over both addresses, and over the ports of unfragmented UDP and TCP
// packets.
std::uint64_t flow_of(const Packet& packet);

}  // namespace dutperf
