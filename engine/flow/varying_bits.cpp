// SPDX-License-Identifier: Apache-2.0
#include "flow/varying_bits.hpp"

#include "frame/random_bits.hpp"

namespace dutperf {

namespace {

// The upper 128 bits of the product. Most factors are small, and then half of the multiplications are left out.
Number128 multiply_high(Number128 one, Number128 other) {
    constexpr Number128 kLow = ~std::uint64_t{0};
    if ((other >> 64U) == 0) return ((one >> 64U) * other + ((one & kLow) * other >> 64U)) >> 64U;
    const Number128 low = (one & kLow) * (other & kLow), middle = (one >> 64U) * (other & kLow) + (low >> 64U),
                    rest = (one & kLow) * (other >> 64U) + (middle & kLow);
    return (one >> 64U) * (other >> 64U) + (middle >> 64U) + (rest >> 64U);
}

// Uniform over 0 … count - 1. The bias is below 2^-64 for counts of up to 2^64, and below 2^-32 for greater ones of up
// to 2^96.
Number128 random_below(Number128 count, std::uint64_t number, std::uint64_t seed) {
    const std::uint64_t bits = random_bits(seed, number);
    const Number128 more = Number128{bits} << 64U | splitmix64(bits + kGamma);
    return count == 0 ? more : multiply_high(more, count);
}

// The number modulo the count; 0: as many as there are numbers. A division of 128 bits is a call, and slow.
Number128 in_range(std::uint64_t number, Number128 count) {
    return count == 0 || number < count ? number : number % static_cast<std::uint64_t>(count);
}

}  // namespace

Number128 VaryingBits::value(std::uint64_t number, std::uint64_t seed) const {
    if (!values.empty()) return values[number % values.size()] & mask();
    switch (mode) {
        case FieldMode::fixed: return first & mask();
        case FieldMode::increasing: return (first + in_range(number, count) * step) & mask();
        case FieldMode::decreasing: return (first - in_range(number, count) * step) & mask();
        case FieldMode::random: return (first + random_below(count, number, seed)) & mask();
    }
    return 0;
}

}  // namespace dutperf
