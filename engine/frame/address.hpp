// SPDX-License-Identifier: Apache-2.0
// MAC, IPv4 and IPv6 addresses as bytes of a frame.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace dutperf {

using Mac = std::array<std::uint8_t, 6>;
using Ipv4 = std::array<std::uint8_t, 4>;
using Ipv6 = std::array<std::uint8_t, 16>;

inline constexpr Mac kBroadcastMac{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

std::optional<Mac> parse_mac(const std::string& text);
std::optional<Ipv4> parse_ipv4(const std::string& text);
std::optional<Ipv6> parse_ipv6(const std::string& text);
std::string to_string(const Mac& mac);
std::string to_string(const Ipv4& address);
std::string to_string(const Ipv6& address);

// The link-local address that follows from a MAC address (RFC 4291 2.5.6 and appendix A).
Ipv6 link_local(const Mac& mac);

// The multicast group to which Neighbour Solicitations for `address` are sent (RFC 4291 2.7.1), and its MAC (RFC 2464
// 7).
Ipv6 solicited_node(const Ipv6& address);
Mac multicast_mac(const Ipv6& group);

}  // namespace dutperf
