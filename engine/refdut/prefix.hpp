// SPDX-License-Identifier: Apache-2.0
// IPv4 and IPv6 prefixes, and a table for longest-prefix matching.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flow/flow_source.hpp"
#include "frame/address.hpp"
#include "frame/bytes.hpp"

namespace dutperf {

template <class Address>
struct Prefix {
    Address address{};
    std::uint8_t length = 0;  // bits
};

template <class Address>
inline constexpr std::size_t kBits = 8 * sizeof(Address);

// The address with all bits after the first `length` cleared.
template <class Address>
Address masked(Address address, std::size_t length) {
    for (std::size_t i = 0; i < address.size(); ++i) {
        const std::size_t kept = std::min<std::size_t>(8, length > 8 * i ? length - 8 * i : 0);
        address[i] = static_cast<std::uint8_t>(address[i] & (0xFF00U >> kept));
    }
    return address;
}

template <class Bytes>
bool bit(const Bytes& bytes, std::size_t i) {
    return ((bytes[i / 8] >> (7 - i % 8)) & 1U) != 0;
}

// Copies `count` bits of `from` from `at` on over those of `to` from `to_at` on, until either ends.
template <class From, class To>
void copy_bits(const From& from, std::size_t at, To& to, std::size_t to_at, std::size_t count = SIZE_MAX) {
    for (; count > 0 && at < 8 * from.size() && to_at < 8 * to.size(); --count, ++at, ++to_at) {
        const unsigned mask = 0x80U >> (to_at % 8);
        to[to_at / 8] = static_cast<std::uint8_t>(bit(from, at) ? to[to_at / 8] | mask : to[to_at / 8] & ~mask);
    }
}

// "198.18.0.0/16" or "2001:2::/48"; an address alone is a prefix of full length. Nothing for other text.
std::optional<Prefix<Ipv4>> parse_prefix4(const std::string& text);
std::optional<Prefix<Ipv6>> parse_prefix6(const std::string& text);

template <class Address>
struct AddressHash {
    std::size_t operator()(const Address& address) const {
        std::uint64_t hash = 0;
        for (std::size_t i = 0; i < address.size(); i += 4) hash = random_bits(hash, load_be32(address.data() + i));
        return hash;
    }
};

template <class Address, class Value>
class PrefixTable {
public:
    // A second value for the same prefix replaces the first.
    void add(const Prefix<Address>& prefix, const Value& value) { at(prefix, value) = value; }

    // The value of exactly this prefix; `otherwise` becomes it where there is none.
    Value& at(const Prefix<Address>& prefix, const Value& otherwise) {
        auto at = std::ranges::find_if(lengths_, [&](const auto& one) { return one.first <= prefix.length; });
        if (at == lengths_.end() || at->first != prefix.length) at = lengths_.insert(at, {prefix.length, {}});
        return at->second.try_emplace(masked(prefix.address, prefix.length), otherwise).first->second;
    }

    [[nodiscard]] bool is_empty() const { return lengths_.empty(); }

    // The value of the longest prefix that `address` matches; nullptr if it matches none.
    [[nodiscard]] const Value* find(const Address& address) const {
        for (const auto& [length, values] : lengths_) {
            const auto found = values.find(masked(address, length));
            if (found != values.end()) return &found->second;
        }
        return nullptr;
    }

private:
    std::vector<std::pair<std::uint8_t, std::unordered_map<Address, Value, AddressHash<Address>>>>
        lengths_;  // longest first
};

}  // namespace dutperf
