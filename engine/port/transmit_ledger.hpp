// SPDX-License-Identifier: Apache-2.0
// What trials found out about a port's count of the frames that left it, kept from one trial to the next.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dutperf {

class TransmitLedger {
public:
    // Frames that a trial handed over and that had not left at its end: some wait in the NIC's queues, and others
    // behind them in the next trial.
    void keep_waiting(std::uint64_t frames, std::uint64_t driver_sent) { waiting_ = {frames, driver_sent}; }
    // How many of them still do.
    [[nodiscard]] std::uint64_t still_waiting(std::uint64_t driver_sent) const {
        return waiting_.frames - std::min(waiting_.frames, driver_sent - waiting_.driver_sent);
    }

    // More frames arrived than left by the count: it counts too few, or nothing, and a frame that is missing from it
    // may have left all the same.
    void disprove() { exact_ = false; }
    [[nodiscard]] bool is_exact() const { return exact_; }

private:
    struct {
        std::uint64_t frames = 0, driver_sent = 0;
    } waiting_;
    bool exact_ = true;
};

}  // namespace dutperf
