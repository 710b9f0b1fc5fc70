// SPDX-License-Identifier: Apache-2.0
// What a DUT that forwards a frame does not change in it: the bytes behind its IP header. VLAN tags come and go, MAC
// addresses, TTL and checksums change, a translator replaces the IP header (RFC 7915), and padding is nobody's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dutperf {

enum class LengthOf : std::uint8_t { ipv4, ipv6, other };  // whose length it is: of an IP packet, or of a frame
inline constexpr std::size_t kLengthsOf = 3;

struct PacketLength {
    LengthOf of;
    std::uint16_t bytes;
};

// The bytes behind the IPv4 header, or behind the IPv6 header and a Fragment header; of a frame without IP all bytes
// but VLAN tags. Headers with impossible lengths count as none.
PacketLength packet_length(const std::uint8_t* frame, std::size_t length);

// Whether no router forwards this frame, because it is for neighbours only: ARP, Neighbour Discovery, IP multicast of
// link-local scope (RFC 4291, RFC 5771), MAC addresses that bridges keep (IEEE 802.1Q 8.6.3).
bool is_for_neighbours(const std::uint8_t* frame, std::size_t length);

}  // namespace dutperf
