// SPDX-License-Identifier: Apache-2.0
// Cells for the values of a distribution: up to 2^(kBits + 1) exact ones, above that 2^kBits for each power of two.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace dutperf {

template <unsigned kBits>
struct Cells {
    static std::size_t index_of(std::uint64_t value) {
        const unsigned width = static_cast<unsigned>(std::bit_width(value | 1));
        const unsigned shift = width > kBits + 1 ? width - (kBits + 1) : 0;
        return (std::size_t{shift} << kBits) + (value >> shift);
    }
    static std::uint64_t largest_in(std::size_t index) {
        const std::size_t shift = std::max<std::size_t>(index >> kBits, 1) - 1;
        return ((index - (shift << kBits) + 1) << shift) - 1;
    }
};

}  // namespace dutperf
