// SPDX-License-Identifier: Apache-2.0
#include "refdut/address_map.hpp"

#include <array>

namespace dutperf {

namespace {

constexpr std::size_t kReservedOctet = 8;  // RFC 6052 2.2: bits 64 to 71 are zero and not part of the IPv4 address

// Offsets of the four bytes of the IPv4 address after a prefix of that length.
std::array<std::size_t, 4> embedded_at(std::uint8_t prefix_length) {
    std::array<std::size_t, 4> places{};
    std::size_t next = prefix_length / 8U;
    for (std::size_t& place : places) {
        if (next == kReservedOctet) ++next;
        place = next++;
    }
    return places;
}

}  // namespace

bool is_translation_prefix(const Prefix<Ipv6>& prefix) {
    constexpr std::array<std::uint8_t, 6> kAllowed{32, 40, 48, 56, 64, 96};
    return std::ranges::find(kAllowed, prefix.length) != kAllowed.end();
}

AddressMap::AddressMap(const std::vector<ExplicitMapping>& mappings, const std::optional<Prefix<Ipv6>>& prefix,
                       MapRules rules)
    : rules_(std::move(rules)), prefix_(prefix) {
    for (const ExplicitMapping& mapping : mappings) {
        by_ipv4_.add(mapping.ipv4, mapping);
        by_ipv6_.add(mapping.ipv6, mapping);
    }
}

std::optional<Ipv6> AddressMap::to_ipv6(const Ipv4& address, std::uint16_t port) const {
    if (rules_.cover(address)) return rules_.ipv6_of(address, port);
    if (const ExplicitMapping* mapping = by_ipv4_.find(address)) {
        Ipv6 mapped = masked(mapping->ipv6.address, mapping->ipv6.length);
        copy_bits(address, mapping->ipv4.length, mapped, mapping->ipv6.length);
        return mapped;
    }
    if (!prefix_) return std::nullopt;
    Ipv6 mapped = masked(prefix_->address, prefix_->length);
    const auto places = embedded_at(prefix_->length);
    for (std::size_t i = 0; i < address.size(); ++i) mapped[places[i]] = address[i];
    return mapped;
}

std::optional<Ipv4> AddressMap::to_ipv4(const Ipv6& address) const {
    if (const ExplicitMapping* mapping = by_ipv6_.find(address)) {
        Ipv4 mapped = masked(mapping->ipv4.address, mapping->ipv4.length);
        copy_bits(address, mapping->ipv6.length, mapped, mapping->ipv4.length);
        return mapped;
    }
    const bool is_embedded = prefix_ && masked(address, prefix_->length) == masked(prefix_->address, prefix_->length);
    const MapRule* rule = rules_.rule_of(address);
    if (rule != nullptr && !(is_embedded && prefix_->length > rule->ipv6.length)) return rule->ipv4_of(address);
    if (!is_embedded) return std::nullopt;
    Ipv4 mapped{};
    const auto places = embedded_at(prefix_->length);
    for (std::size_t i = 0; i < mapped.size(); ++i) mapped[i] = address[places[i]];
    return mapped;
}

}  // namespace dutperf
