// SPDX-License-Identifier: Apache-2.0
// Decides whether a frame that finds the DUT's input queue full is a loss of the DUT (RFC 2544 section 26.3). Where a
// sender writes to the DUT's queue itself, in shared memory, a frame that does not fit is lost, as it would be behind a
// cable; the sender does not wait for room. There is one exception: after a stall the sender offers overdue frames at
// once, so the DUT gets a grace period to take them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dutperf {

class FullQueue {
public:
    static constexpr std::uint64_t kWaitNs = 50'000;  // well below the threshold of a late burst (late_bursts.hpp)
    // a DUT that is a tenth faster than the rate needs ten times the stall to catch up
    static constexpr std::uint64_t kGracePerStall = 10;
    static constexpr std::uint64_t kMaxGraceNs = 5'000'000;

    // Turns the check on. Without this call every frame waits for room.
    void use(std::uint64_t clock_hz) {
        wait_ = clock_hz * kWaitNs / 1'000'000'000;
        max_grace_ = clock_hz * kMaxGraceNs / 1'000'000'000;
    }

    [[nodiscard]] bool is_used() const { return wait_ != 0; }

    // To be called at each turn of the sender's loop.
    void turn(std::uint64_t now) {
        if (last_ != 0 && now - last_ > wait_) [[unlikely]]
            grace_until_ = std::max(grace_until_, now + std::min((now - last_) * kGracePerStall, max_grace_));
        last_ = now;
    }

    // Whether the DUT loses a frame that was due at `due` and finds no room at `now`.
    [[nodiscard]] bool is_dut_loss(std::uint64_t due, std::uint64_t now) const {
        return wait_ != 0 && now > due + wait_ && now > grace_until_;
    }

private:
    std::uint64_t wait_ = 0, max_grace_ = 0;  // in ticks; 0: off
    std::uint64_t last_ = 0, grace_until_ = 0;
};

}  // namespace dutperf
