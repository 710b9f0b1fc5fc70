// SPDX-License-Identifier: Apache-2.0
// MAC, IPv4 and IPv6 addresses as bytes of a frame.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

namespace dutperf {

using Mac = std::array<std::uint8_t, 6>;
using Ipv4 = std::array<std::uint8_t, 4>;
using Ipv6 = std::array<std::uint8_t, 16>;

// An IPv4 address, in the first four bytes, or an IPv6 address.
struct IpAddress {
    bool is_ipv6 = false;
    Ipv6 bytes{};

    bool operator==(const IpAddress&) const = default;
    [[nodiscard]] Ipv4 ipv4() const { return {bytes[0], bytes[1], bytes[2], bytes[3]}; }
    // Whether it stands for no address, as in a probe whether an address is free (RFC 5227, RFC 4862 5.4).
    [[nodiscard]] bool is_unspecified() const { return bytes == Ipv6{}; }
};
inline IpAddress ip_of(const Ipv4& address) {
    return {.is_ipv6 = false, .bytes = {address[0], address[1], address[2], address[3]}};
}
inline IpAddress ip_of(const Ipv6& address) { return {.is_ipv6 = true, .bytes = address}; }

inline constexpr Mac kBroadcastMac{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

// From a frame.
template <class Address>
Address read_address(const std::uint8_t* at) {
    Address address{};
    std::memcpy(address.data(), at, address.size());
    return address;
}

std::optional<Mac> parse_mac(const std::string& text);
std::optional<Ipv4> parse_ipv4(const std::string& text);
std::optional<Ipv6> parse_ipv6(const std::string& text);
std::string to_string(const Mac& mac);
std::string to_string(const Ipv4& address);
std::string to_string(const Ipv6& address);
std::string to_string(const IpAddress& address);

// The link-local address that follows from a MAC address (RFC 4291 2.5.6 and appendix A).
Ipv6 link_local(const Mac& mac);

// The multicast group to which Neighbour Solicitations for `address` are sent (RFC 4291 2.7.1), and its MAC (RFC 2464
// 7).
Ipv6 solicited_node(const Ipv6& address);
Mac multicast_mac(const Ipv6& group);

}  // namespace dutperf
