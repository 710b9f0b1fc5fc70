// SPDX-License-Identifier: Apache-2.0
// Division by a number that is known before the loop, as a multiplication (Granlund and Montgomery, PLDI 1994). For one
// number, or for lanes of them: no instruction divides lanes.
#pragma once

#include <bit>
#include <cstdint>

#include "frame/lanes.hpp"

namespace dutperf {

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

}  // namespace dutperf
