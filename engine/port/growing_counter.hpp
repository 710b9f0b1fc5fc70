// SPDX-License-Identifier: Apache-2.0
// A counter of a driver as one that only grows, over 64 bits. Some drivers give their card's 32 bits as they are, which
// begin again after 2^32 frames (five minutes at 14.88 million a second); some begin at 0 when they start the card
// again. It has to be read before 2^31 frames have passed.
#pragma once

#include <cstdint>

namespace dutperf {

class GrowingCounter {
public:
    // What the driver says now; returns how many there were since the first reading's zero.
    std::uint64_t operator()(std::uint64_t said) {
        if (said < last_) {
            constexpr std::uint64_t kRange = std::uint64_t{1} << 32U;
            const bool wrapped = last_ < kRange && last_ - said > kRange / 2;
            const bool began_again = !wrapped && said < last_ / 2;
            if (!wrapped && !began_again) return before_ + last_;  // a reading that was torn: nothing is taken back
            before_ += wrapped ? kRange : last_;
        }
        last_ = said;
        return before_ + said;
    }

private:
    std::uint64_t before_ = 0, last_ = 0;
};

}  // namespace dutperf
