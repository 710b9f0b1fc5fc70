// SPDX-License-Identifier: Apache-2.0
// ARP (RFC 826) and Neighbour Discovery (RFC 4861 7): what the tester needs of them to stand in for a host on each side
// of the DUT. It answers for its own addresses and finds the MAC of the DUT's. Frames in, frames out; no port is
// touched here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "frame/address.hpp"

namespace dutperf {

using FrameBytes = std::vector<std::uint8_t>;

// The tester's own host on one port.
struct Host {
    Mac mac{};
    std::optional<Ipv4> ipv4;
    std::optional<Ipv6> ipv6;
};

// The answer to an ARP request or Neighbour Solicitation for one of the host's addresses; nothing for any other frame.
std::optional<FrameBytes> answer(const Host& host, const std::uint8_t* frame, std::size_t length);

FrameBytes arp_request(const Host& host, const Ipv4& wanted);
FrameBytes neighbour_solicitation(const Host& host, const Ipv6& wanted);

// The MAC address in an ARP reply or Neighbour Advertisement about `wanted`.
std::optional<Mac> arp_answer(const Ipv4& wanted, const std::uint8_t* frame, std::size_t length);
std::optional<Mac> neighbour_answer(const Ipv6& wanted, const std::uint8_t* frame, std::size_t length);

// The MAC address that an ARP request or Neighbour Solicitation *of* `asker` reveals (RFC 826 merges it, RFC 4861 7.2.3
// too).
std::optional<Mac> arp_asker(const Ipv4& asker, const std::uint8_t* frame, std::size_t length);
std::optional<Mac> neighbour_asker(const Ipv6& asker, const std::uint8_t* frame, std::size_t length);

}  // namespace dutperf
