// SPDX-License-Identifier: Apache-2.0
// The part of ARP (RFC 826) and Neighbour Discovery (RFC 4861 7) that the tester needs to act as a host on each side of
// the DUT: it answers for its own addresses and resolves the DUT's. Frames in, frames out; no port is used here. Each
// message is read behind VLAN tags too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "frame/address.hpp"

namespace dutperf {

using FrameBytes = std::vector<std::uint8_t>;

// The tester's host on one port.
struct Host {
    Mac mac{};
    std::optional<Ipv4> ipv4;
    std::optional<Ipv6> ipv6;
    std::vector<std::uint16_t> vlans{};  // in which it asks for the DUT's addresses; empty: without a tag
};

// The VLAN of a frame's outermost tag (IEEE 802.1Q); 0: none.
std::uint16_t vlan_of(const std::uint8_t* frame, std::size_t length);

// The frame with a tag of this VLAN (IEEE 802.1Q); 0: as it is.
FrameBytes in_vlan(FrameBytes frame, std::uint16_t vlan);

// The reply to an ARP request or Neighbour Solicitation for one of the host's addresses, with the same tags; nothing
// for any other frame. Some drivers hide tags: a host of several VLANs answers a request without a tag in each of them.
std::vector<FrameBytes> answers(const Host& host, const std::uint8_t* frame, std::size_t length);

FrameBytes arp_request(const Host& host, const Ipv4& target);
FrameBytes neighbour_solicitation(const Host& host, const Ipv6& target);

// The MAC address in an ARP reply or Neighbour Advertisement for `target`.
std::optional<Mac> arp_reply_mac(const Ipv4& target, const std::uint8_t* frame, std::size_t length);
std::optional<Mac> advertised_mac(const Ipv6& target, const std::uint8_t* frame, std::size_t length);

// The sender's MAC address in an ARP request or Neighbour Solicitation *from* `requester` (RFC 826 and RFC 4861 7.2.3
// learn it too).
std::optional<Mac> arp_requester_mac(const Ipv4& requester, const std::uint8_t* frame, std::size_t length);
std::optional<Mac> solicitor_mac(const Ipv6& requester, const std::uint8_t* frame, std::size_t length);

}  // namespace dutperf
