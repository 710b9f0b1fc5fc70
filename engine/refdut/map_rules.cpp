// SPDX-License-Identifier: Apache-2.0
#include "refdut/map_rules.hpp"

namespace dutperf {

namespace {

constexpr std::size_t kPortBits = 16;
constexpr std::size_t kIpv4At = 80, kPsidAt = 112;  // bits of the interface identifier (RFC 7597 6)

std::array<std::uint8_t, 2> bytes_of(std::uint16_t number) {
    return {static_cast<std::uint8_t>(number >> 8U), static_cast<std::uint8_t>(number)};
}

}  // namespace

std::optional<std::uint16_t> PortSharing::psid_of(std::uint16_t port) const {
    if (psid_length == 0) return std::uint16_t{0};
    if (offset != 0 && port >> (kPortBits - offset) == 0) return std::nullopt;
    const std::size_t behind = kPortBits - offset - psid_length;
    return static_cast<std::uint16_t>((port >> behind) & ((1U << psid_length) - 1));
}

Ipv6 MapRule::ipv6_of(const Ipv4& address, std::uint16_t its_psid) const {
    const auto psid_bytes = bytes_of(its_psid);
    Ipv6 made{};
    copy_bits(masked(address, address_bits()), 0, made, kIpv4At);
    copy_bits(psid_bytes, 0, made, kPsidAt);
    // the prefix, which overwrites the identifier where it is long
    copy_bits(ipv6.address, 0, made, 0, ipv6.length);
    const std::size_t suffix = address_bits() - ipv4.length, embedded_psid = ea_length - suffix;
    copy_bits(address, ipv4.length, made, ipv6.length, suffix);
    copy_bits(psid_bytes, kPortBits - embedded_psid, made, ipv6.length + suffix, embedded_psid);
    return made;
}

Ipv4 MapRule::ipv4_of(const Ipv6& address) const {
    Ipv4 made = masked(ipv4.address, ipv4.length);
    copy_bits(address, ipv6.length, made, ipv4.length, address_bits() - ipv4.length);
    return made;
}

bool MapRules::add(const MapRule& rule) {
    OfPrefix& all = by_ipv4_.at(rule.ipv4, {rule.sharing, std::nullopt, {}});
    if (all.sharing != rule.sharing) return false;
    if (rule.psid) {
        all.by_psid.insert_or_assign(*rule.psid, rule);
    } else {
        all.any = rule;
    }
    by_ipv6_.add(rule.ipv6, rule);
    needs_ports_ = needs_ports_ || rule.sharing.psid_length != 0;
    return true;
}

std::optional<Ipv6> MapRules::ipv6_of(const Ipv4& address, std::uint16_t port) const {
    const OfPrefix* all = by_ipv4_.find(address);
    if (all == nullptr) return std::nullopt;
    const auto psid = all->sharing.psid_of(port);
    if (!psid) return std::nullopt;
    const auto own = all->by_psid.find(*psid);
    if (own != all->by_psid.end()) return own->second.ipv6_of(address, *psid);
    return all->any ? std::optional(all->any->ipv6_of(address, *psid)) : std::nullopt;
}

}  // namespace dutperf
