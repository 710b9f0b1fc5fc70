// SPDX-License-Identifier: Apache-2.0
// Reads received frames with any headers: finds the tag behind them and checks every length and checksum on the way.
// Plain frames (UDP directly over IP, directly over Ethernet) are recognised faster by frame/arrival.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "frame/headers.hpp"
#include "frame/layout.hpp"

namespace dutperf {

struct Dissected {
    const std::uint8_t* tag = nullptr;  // nullptr: no test frame
    bool intact = false;                // every length and checksum is right
    // The same, except that checksums of UDP or TCP hold the sum of the pseudo-header alone: a kernel leaves the rest
    // to the card, and a virtual link has none.
    bool unfinished = false;
    // The same, except that a UDP checksum over IPv6 whose sum is right is 0, not all ones: hosts discard the packet
    // (RFC 8200 8.1).
    bool zero = false;
    // A UDP checksum over IPv6, outside of tunnels, is absent (0): that is why the frame is not intact, if it is not.
    bool unsummed = false;
    // Of the innermost IP packet: the addresses, of the destinations of a source route the last one, and the bytes from
    // the tag to its end. All are 0 if there is none.
    Range source{}, destination{};
    std::size_t payload = 0;
    bool behind_udp = false;    // the tag is directly behind a UDP header
    Range outer_destination{};  // of the outermost IP packet, if that is another one
};

// Walks over Ethernet, VLAN tags (IEEE 802.1Q, 802.1ad), MPLS (RFC 3032), IPv4 with options, IPv6 with extension
// headers (RFC 8200, RFC 8754, RFC 4302), ESP (RFC 4303), Mobility (RFC 6275), UDP, TCP, ICMP, ICMPv6, GRE (RFC 2784,
// RFC 2890), VXLAN (RFC 7348), GTP-U (TS 29.281), and what tunnels carry. The tag is directly behind one of the
// headers, or one of `from_end` bytes before the end of the outermost IP packet or of the frame. Reads nothing outside
// the frame.
Dissected dissect(const std::uint8_t* frame, std::size_t length, std::span<const std::uint16_t> from_end = {});

// What dissect() read of an intact test frame. It finds every frame of the same length intact, with the tag at the same
// place, that has the same bytes at `same` and these sums.
struct Reading {
    // Ones' complement sum (RFC 1071) over `ranges` and `plus`, in memory order: all ones.
    struct Sum {
        std::vector<Range> ranges;
        std::uint64_t plus = 0;
        std::size_t not_zero_at = 0;  // a checksum that must not be 0 ("none"); 0: there is no such field
    };
    std::vector<Range> same;
    std::vector<Sum> sums;
};
Dissected dissect(const std::uint8_t* frame, std::size_t length, std::span<const std::uint16_t> from_end,
                  Reading& reading);

// The IP packet in all tunnels of a frame, or where there is none the frame's own; not what an ICMP error quotes.
struct InnermostPacket {
    std::span<const std::uint8_t> bytes;  // to the end of the frame; empty: there is no IP packet
    bool ipv6;
};
InnermostPacket innermost_packet(const std::uint8_t* frame, std::size_t length);

// What follows Ethernet's addresses and VLAN tags.
struct Network {
    std::size_t at;      // where it begins; the length of the frame if it has no EtherType
    std::uint16_t type;  // its EtherType
};
Network network_of(const std::uint8_t* frame, std::size_t length);

}  // namespace dutperf
