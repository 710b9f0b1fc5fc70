// SPDX-License-Identifier: Apache-2.0
// Sets of IP addresses that are too many for a list: those between two addresses, or those that differ in some bits.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <optional>
#include <vector>

#include "frame/address.hpp"

namespace dutperf {

// The addresses whose bits in the mask are a number from that of `first` to that of `last`, and whose other bits are
// those of `first`.
template <class Address>
struct AddressRange {
    Address first{}, last{}, mask{};

    bool operator==(const AddressRange&) const = default;
    [[nodiscard]] bool contains(const Address& address) const {
        auto from = std::strong_ordering::equal, to = std::strong_ordering::equal;
        for (std::size_t i = 0; i < address.size(); ++i) {
            if (((address[i] ^ first[i]) & ~mask[i] & 0xFF) != 0) return false;
            const int here = address[i] & mask[i];
            if (std::is_eq(from)) from = here <=> (first[i] & mask[i]);
            if (std::is_eq(to)) to = here <=> (last[i] & mask[i]);
        }
        return std::is_gteq(from) && std::is_lteq(to);
    }
    // Bits in which addresses may differ from this one of the range, whatever each of them is: the range has them all.
    [[nodiscard]] Address free_bits(const Address& address) const {
        Address bits{};
        for (std::size_t i = address.size(); i-- > 0;) {
            for (unsigned bit = 1; bit < 0x100; bit <<= 1U) {
                if ((mask[i] & bit) == 0) continue;
                Address more = bits;
                more[i] = static_cast<std::uint8_t>(more[i] | bit);
                if (!has_all(address, more)) return bits;
                bits = more;
            }
        }
        return bits;
    }

private:
    [[nodiscard]] bool has_all(Address address, const Address& bits) const {
        Address highest = address;
        for (std::size_t i = 0; i < bits.size(); ++i) {
            address[i] = static_cast<std::uint8_t>(address[i] & ~bits[i]);
            highest[i] = static_cast<std::uint8_t>(highest[i] | bits[i]);
        }
        return contains(address) && contains(highest);
    }
};

struct AddressRanges {
    std::vector<AddressRange<Ipv4>> ipv4;
    std::vector<AddressRange<Ipv6>> ipv6;

    void add(const AddressRanges& others) {
        ipv4.insert(ipv4.end(), others.ipv4.begin(), others.ipv4.end());
        ipv6.insert(ipv6.end(), others.ipv6.begin(), others.ipv6.end());
    }
    [[nodiscard]] bool contain(const Ipv4& address) const { return find(ipv4, address) != nullptr; }
    [[nodiscard]] bool contain(const Ipv6& address) const { return find(ipv6, address) != nullptr; }
    [[nodiscard]] bool empty() const { return ipv4.empty() && ipv6.empty(); }
    void add(const IpAddress& address) {
        if (address.is_ipv6)
            ipv6.push_back({.first = address.bytes, .last = address.bytes});
        else
            ipv4.push_back({.first = address.ipv4(), .last = address.ipv4()});
    }
    // Bits in which other addresses of a range with `address` may differ from it; nothing if no range has it.
    [[nodiscard]] std::optional<IpAddress> free_bits(const IpAddress& address) const {
        const auto bits = [](const auto* range, const auto& of) {
            return range == nullptr ? std::nullopt : std::optional(ip_of(range->free_bits(of)));
        };
        return address.is_ipv6 ? bits(find(ipv6, address.bytes), address.bytes)
                               : bits(find(ipv4, address.ipv4()), address.ipv4());
    }

private:
    // nullptr: no range has the address.
    template <class Address>
    static const AddressRange<Address>* find(const std::vector<AddressRange<Address>>& ranges, const Address& address) {
        const auto found = std::ranges::find_if(ranges, [&](const auto& range) { return range.contains(address); });
        return found == ranges.end() ? nullptr : &*found;
    }
};

// Addresses of the ranges, `most` at all: all of a short range; of a long one the first, the last, and others evenly
// between them. A long range has no more of them than another one, unless that is short.
std::vector<IpAddress> sample(const AddressRanges& ranges, std::size_t most);

}  // namespace dutperf
