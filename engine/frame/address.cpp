// SPDX-License-Identifier: Apache-2.0
#include "frame/address.hpp"

#include <arpa/inet.h>

#include <cstdio>

namespace dutperf {

namespace {

template <class Address>
std::optional<Address> parse_ip(int family, const std::string& text) {
    Address address{};
    if (inet_pton(family, text.c_str(), address.data()) != 1) return std::nullopt;
    return address;
}

template <class Address>
std::string ip_text(int family, const Address& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    return inet_ntop(family, address.data(), text.data(), text.size());
}

}  // namespace

std::optional<Mac> parse_mac(const std::string& text) {
    std::array<unsigned, 6> part{};
    int used = 0;
    const int fields = std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%n", &part[0], &part[1], &part[2], &part[3],
                                   &part[4], &part[5], &used);
    if (fields != 6 || static_cast<std::size_t>(used) != text.size() || text.size() != 17) return std::nullopt;
    Mac mac{};
    for (std::size_t i = 0; i < mac.size(); ++i) mac[i] = static_cast<std::uint8_t>(part[i]);
    return mac;
}

std::optional<Ipv4> parse_ipv4(const std::string& text) { return parse_ip<Ipv4>(AF_INET, text); }

std::optional<Ipv6> parse_ipv6(const std::string& text) { return parse_ip<Ipv6>(AF_INET6, text); }

std::string to_string(const Mac& mac) {
    std::array<char, 18> text{};
    std::snprintf(text.data(), text.size(), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
                  mac[5]);
    return text.data();
}

std::string to_string(const Ipv4& address) { return ip_text(AF_INET, address); }

std::string to_string(const Ipv6& address) { return ip_text(AF_INET6, address); }

Ipv6 link_local(const Mac& mac) {
    constexpr std::uint8_t kUniversal = 0x02;
    return {0xFE,   0x80,   0,    0,    0,      0,      0,     0, static_cast<std::uint8_t>(mac[0] ^ kUniversal),
            mac[1], mac[2], 0xFF, 0xFE, mac[3], mac[4], mac[5]};
}

std::string to_string(const IpAddress& address) {
    return address.is_ipv6 ? to_string(address.bytes) : to_string(address.ipv4());
}

Ipv6 solicited_node(const Ipv6& address) {
    Ipv6 group{0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, 0, 0, 0};
    for (std::size_t i = 13; i < 16; ++i) group[i] = address[i];
    return group;
}

Mac multicast_mac(const Ipv6& group) { return {0x33, 0x33, group[12], group[13], group[14], group[15]}; }

}  // namespace dutperf
