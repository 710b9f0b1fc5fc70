// SPDX-License-Identifier: Apache-2.0
// A pseudorandom order of the numbers below a size, without a table: a keyed bijection. RFC 9693 asks for all
// combinations of ports once each in a pseudorandom order; a shuffled list of 400 million would need gigabytes and
// minutes. It is a Feistel network over pairs of numbers below two nearly equal radices (Black and Rogaway, CT-RSA
// 2002); an image that is not below the size is mapped again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "flow/divisor.hpp"

namespace dutperf {

inline constexpr std::uint32_t kLargestPermutation = (std::uint32_t{1} << 31U) - (std::uint32_t{1} << 17U);

class Permutation {
public:
    // Of the numbers 0 … size-1; size is 1 … kLargestPermutation.
    Permutation(std::uint32_t size, std::uint64_t seed);

    [[nodiscard]] std::uint32_t of(std::uint32_t number) const;

    // Replaces each of `count` numbers below the size by its image. Later numbers up to a multiple of kLanes are
    // undefined afterwards.
    void map(std::uint32_t* numbers, std::size_t count) const;

    [[nodiscard]] std::uint32_t size() const { return size_; }

private:
    static constexpr std::size_t kRounds = 4;  // Luby and Rackoff (1988)

    template <class Number>
    [[nodiscard]] Number once(Number number) const;

    std::uint32_t size_;
    Divisor low_radix_;
    std::uint32_t high_radix_;
    std::array<std::uint64_t, kRounds> keys_{};
};

}  // namespace dutperf
