// SPDX-License-Identifier: Apache-2.0
// Both ends of MAP-E and 6rd, and an AFTR, as the reference DUT forwards; for tests and fuzzers.
#pragma once

#include <string>
#include <vector>

#include "refdut/forwarder.hpp"

namespace dutperf {

inline constexpr std::size_t kLeft = 0, kRight = 1;
inline constexpr std::size_t kMtu = 1500;

inline ExplicitMapping mapping(const std::string& ipv4, const std::string& ipv6) {
    return {*parse_prefix4(ipv4), *parse_prefix6(ipv6)};
}

// Routes to an exit.
inline void lead(Routes& routes, std::size_t exit, const std::vector<std::string>& prefixes) {
    for (const std::string& one : prefixes) {
        if (const auto four = parse_prefix4(one)) routes.ipv4.add(*four, exit);
        if (const auto six = parse_prefix6(one)) routes.ipv6.add(*six, exit);
    }
}

// 198.18.0.2 is shared by CEs with PSIDs of 8 bits behind ports' first six.
inline MapRules shared_by_ces() {
    MapRules rules;
    rules.add({.ipv4 = *parse_prefix4("198.18.0.0/24"),
               .ipv6 = *parse_prefix6("2001:2::/48"),
               .ea_length = 16,
               .sharing = {.offset = 6, .psid_length = 8},
               .psid = {}});
    return rules;
}

inline AddressMap map_e() { return {{mapping("0.0.0.0/0", "2001:2:0:4000::b")}, std::nullopt, shared_by_ces()}; }

inline AddressMap six_rd() {
    return {{mapping("198.18.64.128/25", "2001:2::/49"), mapping("198.18.64.254", "::/0")}, std::nullopt};
}

inline Forwarder map_ce() {
    Routes routes;
    lead(routes, kLeft, {"198.18.0.0/16", "2001:2:0:8000::/56"});
    lead(routes, kRight, {"2001:2:0:4000::/64", "2001:2:0:9000::/56"});
    lead(routes, kTunnelExit, {"198.19.0.0/16", "2001:2:0:234:0:c612:2:34"});
    return {routes, std::nullopt, kMtu, Tunnel(map_e(), true)};
}

inline Forwarder map_br() {
    Routes routes;
    lead(routes, kRight, {"198.19.0.0/16"});
    lead(routes, kLeft, {"2001:2::/48"});
    lead(routes, kTunnelExit, {"198.18.0.0/16", "2001:2:0:4000::b"});
    return {routes, std::nullopt, kMtu, Tunnel(map_e(), true)};
}

inline Forwarder six_rd_ce() {
    Routes routes;
    lead(routes, kLeft, {"2001:2:0:300::/56"});
    lead(routes, kRight, {"198.18.64.128/25"});
    lead(routes, kTunnelExit, {"::/0", "198.18.64.131"});
    return {routes, std::nullopt, kMtu, Tunnel(six_rd(), false)};
}

inline Forwarder six_rd_br() {
    Routes routes;
    lead(routes, kRight, {"2001:2:0:8000::/56"});
    lead(routes, kLeft, {"198.18.64.128/25"});
    lead(routes, kTunnelExit, {"2001:2::/49", "198.18.64.254"});
    return {routes, std::nullopt, kMtu, Tunnel(six_rd(), false)};
}

inline Forwarder aftr() {
    Routes routes;
    lead(routes, kRight, {"198.19.0.0/16"});
    lead(routes, kLeft, {"2001:2::/48"});
    lead(routes, kTunnelExit, {"2001:2:0:4000::af"});
    lead(routes, kNatExit, {"198.19.254.129"});
    Forwarder made(routes, std::nullopt, kMtu,
                   Tunnel({{mapping("0.0.0.0/0", "2001:2:0:4000::af")}, std::nullopt}, true));
    made.set_nat(
        {.pool = {.addresses = {{198, 19, 254, 129}}, .first_port = 0x3000, .last_port = 0x30FF}, .translator = {}}, {},
        1'000'000'000);
    return made;
}

}  // namespace dutperf
