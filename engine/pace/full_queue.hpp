// SPDX-License-Identifier: Apache-2.0
// Whose a frame is that the other end's input queue has no room for (RFC 2544 section 26.3: what a DUT does not take is
// lost). Where a sender hands frames to the DUT's queue itself, in shared memory, a full queue is the DUT's, as it is
// behind a cable: a frame does not wait for it. Unless a stall of the sender made it full: what comes at once then gets
// the time that a DUT needs to take it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dutperf {

class FullQueue {
public:
    static constexpr std::uint64_t kWaitNs = 50'000;  // well below what makes a late burst (late_bursts.hpp)
    static constexpr std::uint64_t kStalls =
        10;  // a DUT that takes a tenth more than the rate makes up for a stall in ten times as long
    static constexpr std::uint64_t kMostPatienceNs = 5'000'000;

    // In ticks. Without a call every frame waits.
    void use(std::uint64_t clock_hz) {
        wait_ = clock_hz * kWaitNs / 1'000'000'000;
        most_patience_ = clock_hz * kMostPatienceNs / 1'000'000'000;
    }

    // At each turn of the sender's loop.
    void turn(std::uint64_t now) {
        if (last_ != 0 && now - last_ > wait_) [[unlikely]]
            patient_until_ = std::max(patient_until_, now + std::min((now - last_) * kStalls, most_patience_));
        last_ = now;
    }

    // Whether a frame that was due at `due` and still finds no room at `now` has met a queue that the DUT lets stand
    // full.
    [[nodiscard]] bool is_duts(std::uint64_t due, std::uint64_t now) const {
        return wait_ != 0 && now > due + wait_ && now > patient_until_;
    }

private:
    std::uint64_t wait_ = 0, most_patience_ = 0;  // 0: not in use
    std::uint64_t last_ = 0, patient_until_ = 0;
};

}  // namespace dutperf
