// SPDX-License-Identifier: Apache-2.0
#include "frame/address_range.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>

namespace dutperf {

namespace {

__extension__ using Wide = unsigned __int128;  // has every IPv6 address as a number

template <class Address>
Wide number_in(const Address& address, const Address& mask) {
    Wide number = 0;
    for (std::size_t bit = 0; bit < address.size() * CHAR_BIT; ++bit) {
        const std::size_t byte = bit / CHAR_BIT, shift = CHAR_BIT - 1 - bit % CHAR_BIT;
        if ((mask[byte] >> shift & 1) != 0) number = number << 1U | (address[byte] >> shift & 1U);
    }
    return number;
}

template <class Address>
Address with_number(Address address, const Address& mask, Wide number) {
    for (std::size_t bit = address.size() * CHAR_BIT; bit-- > 0;) {
        const std::size_t byte = bit / CHAR_BIT;
        const auto one = static_cast<std::uint8_t>(1U << (CHAR_BIT - 1 - bit % CHAR_BIT));
        if ((mask[byte] & one) == 0) continue;
        address[byte] = static_cast<std::uint8_t>((address[byte] & ~one) | ((number & 1) != 0 ? one : 0));
        number >>= 1U;
    }
    return address;
}

// The difference of the numbers of the last and of the first address.
template <class Address>
Wide span_of(const AddressRange<Address>& range) {
    return number_in(range.last, range.mask) - number_in(range.first, range.mask);
}

template <class Address>
void add_some(const AddressRange<Address>& range, std::size_t most, std::vector<IpAddress>& to) {
    const Wide first = number_in(range.first, range.mask), span = span_of(range);
    const std::size_t count = span < most ? static_cast<std::size_t>(span) + 1 : most;
    const Wide steps = std::max<std::size_t>(count, 2) - 1;
    for (std::size_t i = 0; i < count; ++i)
        to.push_back(ip_of(with_number(range.first, range.mask, first + span / steps * i + span % steps * i / steps)));
}

}  // namespace

std::vector<IpAddress> sample(const AddressRanges& ranges, std::size_t most) {
    struct Part {
        Wide span;
        bool is_ipv6;
        std::size_t index;
    };
    std::vector<Part> parts;
    for (std::size_t i = 0; i < ranges.ipv4.size(); ++i) parts.push_back({span_of(ranges.ipv4[i]), false, i});
    for (std::size_t i = 0; i < ranges.ipv6.size(); ++i) parts.push_back({span_of(ranges.ipv6[i]), true, i});
    std::ranges::stable_sort(parts, {}, &Part::span);  // what a short range leaves is for longer ones
    std::vector<IpAddress> chosen;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::size_t share = (most - chosen.size()) / (parts.size() - i);
        if (parts[i].is_ipv6) {
            add_some(ranges.ipv6[parts[i].index], share, chosen);
        } else {
            add_some(ranges.ipv4[parts[i].index], share, chosen);
        }
    }
    return chosen;
}

}  // namespace dutperf
