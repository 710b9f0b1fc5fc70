// SPDX-License-Identifier: Apache-2.0
#include "flow/permutation.hpp"

#include <cmath>

#include "flow/flow_source.hpp"
#include "frame/random_bits.hpp"

namespace dutperf {

namespace {

std::uint32_t root_above(std::uint32_t size) {
    auto root = static_cast<std::uint32_t>(std::sqrt(static_cast<double>(size)));
    while (std::uint64_t{root} * root < size) ++root;
    return root;
}

// 32 mixed bits of a number below 2^32, in the lower half.
template <class Number>
Number mixed(Number number, std::uint64_t key) {
    const Number product = multiply32(number ^ key, 0x9E3779B1U);
    const Number again = multiply32((product ^ (product >> 32U)) + (key >> 32U), 0x85EBCA6BU);
    return again ^ (again >> 29U);
}

// A number below twice the radix, modulo the radix.
std::uint64_t reduced(std::uint64_t number, std::uint32_t radix) { return number >= radix ? number - radix : number; }
Lanes reduced(Lanes number, std::uint32_t radix) { return min32(number, number - radix); }  // below 0: large halves

}  // namespace

Permutation::Permutation(std::uint32_t size, std::uint64_t seed)
    : size_(size), low_radix_(root_above(size)), high_radix_((size + low_radix_.by() - 1) / low_radix_.by()) {
    for (std::size_t round = 0; round < kRounds; ++round) keys_[round] = random_bits(seed, round);
}

// Inlined, because a call would load all constants again for each lanes.
template <class Number>
[[gnu::always_inline]] inline Number Permutation::once(Number number) const {
    Number high = low_radix_.quotient(number);
    Number low = low_radix_.remainder(number, high);
    for (std::size_t round = 0; round < kRounds; round += 2) {
        high = reduced(high + scale_to_range(mixed(low, keys_[round]), high_radix_), high_radix_);
        low = reduced(low + scale_to_range(mixed(high, keys_[round + 1]), low_radix_.by()), low_radix_.by());
    }
    return multiply32(high, low_radix_.by()) + low;
}

std::uint32_t Permutation::of(std::uint32_t number) const {
    std::uint64_t image = once(std::uint64_t{number});
    while (image >= size_) image = once(image);
    return static_cast<std::uint32_t>(image);
}

// Images beyond the size are few: less than one in the square root of the size.
void Permutation::map(std::uint32_t* numbers, std::size_t count) const {
    const Permutation own = *this;  // to the compiler, the stores could change any member
    Lanes beyond{};
    for (std::size_t i = 0; i < count; i += kLanes) {
        const Lanes image = own.once(load_lanes(&numbers[i]));
        beyond |= own.size_ - 1 - image;  // negative beyond the size
        store_lanes(&numbers[i], image);
    }
    if (any_of(beyond) >> 63U == 0) [[likely]]
        return;
    for (std::size_t i = 0; i < count; ++i) {
        while (numbers[i] >= size_) numbers[i] = static_cast<std::uint32_t>(once(std::uint64_t{numbers[i]}));
    }
}

}  // namespace dutperf
