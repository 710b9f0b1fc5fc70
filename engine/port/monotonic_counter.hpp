// SPDX-License-Identifier: Apache-2.0
// Turns a driver's counter into a 64-bit counter that never decreases. Some drivers report the card's 32-bit counter,
// which wraps after 2^32 frames (five minutes at 14.88 million a second); some restart at 0 when they restart the card.
// It must be read at least once in 2^31 frames.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dutperf {

class MonotonicCounter {
public:
    // Takes the driver's current value and returns the total since the first value's zero.
    std::uint64_t operator()(std::uint64_t reading) {
        if (reading < last_) {
            constexpr std::uint64_t kRange = std::uint64_t{1} << 32U;
            const bool wrapped = last_ < kRange && last_ - reading > kRange / 2;
            const bool began_again = !wrapped && reading < last_ / 2;
            if (!wrapped && !began_again) return before_ + last_;  // a torn reading: never decrease
            before_ += wrapped ? kRange : last_;
        }
        last_ = reading;
        return before_ + reading;
    }

private:
    std::uint64_t before_ = 0, last_ = 0;
};

// The part of a counter that no other counter has. They are read one after the other, so the others must be read later:
// what they count meanwhile makes this part too small, never too large, until the next reading. It never decreases.
class RestOfCounter {
public:
    std::uint64_t operator()(std::uint64_t all, std::uint64_t in_others) {
        return rest_ = std::max(rest_, all - std::min(all, in_others));
    }

private:
    std::uint64_t rest_ = 0;
};

}  // namespace dutperf
