// SPDX-License-Identifier: Apache-2.0
// The part of ARP (RFC 826) and Neighbour Discovery (RFC 4861 7) that the tester needs to act as hosts on each side of
// the DUT: it answers for its own addresses and for all others that its traffic has there, and resolves the DUT's.
// Frames in, frames out; no port is used here. Each message is read behind VLAN tags too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frame/address.hpp"
#include "frame/address_range.hpp"

namespace dutperf {

using FrameBytes = std::vector<std::uint8_t>;

// The DUT's end of the link. If all are empty, the port is connected to the tester's other port.
struct Gateway {
    std::optional<Ipv4> ipv4;
    std::optional<Ipv6> ipv6;
    std::optional<Mac> mac;
};

// A host of the tester on a port. It has the link-local address of its MAC address too.
struct Host {
    Mac mac{};
    std::optional<Ipv4> ipv4;
    std::optional<Ipv6> ipv6;
    std::vector<std::uint16_t> vlans{};  // in which it asks for the DUT's addresses; empty: without a tag
    AddressRanges others{};          // for which it answers as well, but not whoever makes sure that an address is free
    Gateway dut{};                   // whose addresses are not the tester's, whatever the ranges are
    std::vector<Mac> other_hosts{};  // of the tester: a bridge passes on what they say
    std::vector<std::uint16_t> other_vlans{};  // of the port's other hosts, which it is not in
};

// An ARP packet, a Neighbour Solicitation or a Neighbour Advertisement.
struct NeighbourMessage {
    bool is_request;
    IpAddress sender;  // of an advertisement the address that it is about
    IpAddress target;  // of a request
    Mac mac;           // of the sender

    // Whether it only says that the sender has its address, or asks whether anybody has it.
    [[nodiscard]] bool wants_no_answer() const { return !is_request || sender.is_unspecified() || sender == target; }
};
std::optional<NeighbourMessage> read_neighbour_message(const std::uint8_t* frame, std::size_t length);

// Whether the address is one that the host itself has, as any host.
bool is_own(const Host& host, const IpAddress& address);

// Whether a message with this MAC address as its sender's is one of the tester's own: from another port by way of a
// bridge, or from this one by way of a loop.
bool is_of_tester(const Host& host, const Mac& mac);

// Whether the host answers a request for this address.
bool answers_for(const Host& host, const IpAddress& address);

// Whether the host sees the frame: hosts that share a port see those of their own VLANs.
bool is_seen_by(const Host& host, const std::uint8_t* frame, std::size_t length);

// The VLAN of a frame's outermost tag (IEEE 802.1Q); 0: none.
std::uint16_t vlan_of(const std::uint8_t* frame, std::size_t length);

// The frame with a tag of this VLAN (IEEE 802.1Q); 0: as it is.
FrameBytes in_vlan(FrameBytes frame, std::uint16_t vlan);

// The reply to an ARP request or Neighbour Solicitation for an address of the host, or to a question for listeners
// (MLD), with the same tags; nothing for any other frame. Some drivers hide tags: a host of several VLANs answers a
// request without a tag in each of them.
std::vector<FrameBytes> answers(const Host& host, const std::uint8_t* frame, std::size_t length);

// Whether it asks which groups have listeners (MLD).
bool is_listener_query(const std::uint8_t* frame, std::size_t length);

// MLDv2 reports (RFC 3810) that the host listens to the groups to which its IPv6 addresses are solicited: a switch that
// snoops passes on requests for no other groups. They name kMostGroups at most.
std::vector<FrameBytes> listener_reports(const Host& host);
inline constexpr std::size_t kMostGroups = 4096;

FrameBytes arp_request(const Host& host, const Ipv4& target);
FrameBytes neighbour_solicitation(const Host& host, const Ipv6& target);

// Questions whether anybody else has the host's own addresses (RFC 5227 2.1.1, RFC 4862 5.4.2). No station changes an
// entry because of them.
std::vector<FrameBytes> address_probes(const Host& host);
// The same question for any address.
FrameBytes address_probe(const Host& host, const IpAddress& address);

// The MAC address in an ARP reply or Neighbour Advertisement for `target`.
std::optional<Mac> arp_reply_mac(const Ipv4& target, const std::uint8_t* frame, std::size_t length);
std::optional<Mac> advertised_mac(const Ipv6& target, const std::uint8_t* frame, std::size_t length);

// The sender's MAC address in an ARP request or Neighbour Solicitation *from* `requester` (RFC 826 and RFC 4861 7.2.3
// learn it too).
std::optional<Mac> arp_requester_mac(const Ipv4& requester, const std::uint8_t* frame, std::size_t length);
std::optional<Mac> solicitor_mac(const Ipv6& requester, const std::uint8_t* frame, std::size_t length);

}  // namespace dutperf
