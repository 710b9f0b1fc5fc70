// SPDX-License-Identifier: Apache-2.0
// Division by a number that is known before the loop, as a multiplication: no instruction divides lanes.
#pragma once

#include <bit>
#include <cstdint>

#include "frame/lanes.hpp"

namespace dutperf {

// For one number or lanes of them (Granlund and Montgomery, PLDI 1994).
class Divisor {
public:
    // Dividends are below 2^31; `by` is 1 … 2^31 - 1.
    explicit Divisor(std::uint32_t by)
        : by_(by),
          shift_(31U + static_cast<unsigned>(std::bit_width(by - 1))),
          factor_(static_cast<std::uint32_t>(((std::uint64_t{1} << shift_) + by - 1) / by)) {}

    template <class Number>
    [[nodiscard]] Number quotient(Number dividend) const {
        return multiply32(dividend, factor_) >> shift_;
    }
    template <class Number>
    [[nodiscard]] Number remainder(Number dividend, Number quotient) const {
        return dividend - multiply32(quotient, by_);
    }
    [[nodiscard]] std::uint32_t by() const { return by_; }

private:
    std::uint32_t by_;
    unsigned shift_;
    std::uint32_t factor_;  // at most 2^32 - 1, because 2^shift < 2^32 * by; the quotient is exact below 2^31
};

// What is left of greater numbers: they and the quotients are exact as doubles.
class Remainder {
public:
    explicit Remainder(std::uint32_t by) : by_(by), factor_(1.0 / by) {}

    // Of numbers below 2^40.
    [[nodiscard]] Lanes of(Lanes dividend) const {
        constexpr double kWhole = 0x1p52;  // with it added, a smaller number is rounded and in the low bits
        constexpr auto kBits = std::bit_cast<std::uint64_t>(kWhole);
        const auto number = reinterpret_cast<LanesOfDouble>(dividend | kBits) - kWhole;
        const Lanes quotient = reinterpret_cast<Lanes>(number * factor_ + kWhole) ^ kBits;
        const Lanes left = dividend - (multiply32(quotient, by_) + (multiply32(quotient >> 32U, by_) << 32U));
        return left + (-(left >> 63U) & by_);  // the quotient may be one too large: it is rounded to the nearest
    }

private:
    std::uint32_t by_;
    double factor_;
};

}  // namespace dutperf
