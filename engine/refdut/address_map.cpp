// SPDX-License-Identifier: Apache-2.0
#include "refdut/address_map.hpp"

#include <array>

namespace dutperf {

namespace {

constexpr std::size_t kReservedOctet = 8;  // RFC 6052 2.2: bits 64 to 71 are zero and not part of the IPv4 address

template <class Address>
bool bit(const Address& address, std::size_t i) {
    return ((address[i / 8] >> (7 - i % 8)) & 1U) != 0;
}

// Copies the bits of `from` from `at` on into `to` from `to_at` on, until either ends.
template <class From, class To>
void copy_suffix(const From& from, std::size_t at, To& to, std::size_t to_at) {
    for (; at < kBits<From> && to_at < kBits<To>; ++at, ++to_at) {
        if (bit(from, at)) to[to_at / 8] = static_cast<std::uint8_t>(to[to_at / 8] | (0x80U >> (to_at % 8)));
    }
}

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

AddressMap::AddressMap(const std::vector<ExplicitMapping>& mappings, const std::optional<Prefix<Ipv6>>& prefix)
    : prefix_(prefix) {
    for (const ExplicitMapping& mapping : mappings) {
        by_ipv4_.add(mapping.ipv4, mapping);
        by_ipv6_.add(mapping.ipv6, mapping);
    }
}

std::optional<Ipv6> AddressMap::to_ipv6(const Ipv4& address) const {
    if (const ExplicitMapping* mapping = by_ipv4_.find(address)) {
        Ipv6 mapped = masked(mapping->ipv6.address, mapping->ipv6.length);
        copy_suffix(address, mapping->ipv4.length, mapped, mapping->ipv6.length);
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
        copy_suffix(address, mapping->ipv6.length, mapped, mapping->ipv4.length);
        return mapped;
    }
    if (!prefix_ || masked(address, prefix_->length) != masked(prefix_->address, prefix_->length)) return std::nullopt;
    Ipv4 mapped{};
    const auto places = embedded_at(prefix_->length);
    for (std::size_t i = 0; i < mapped.size(); ++i) mapped[i] = address[places[i]];
    return mapped;
}

}  // namespace dutperf
