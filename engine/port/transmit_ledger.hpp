// SPDX-License-Identifier: Apache-2.0
// State of a port's count of sent frames that is kept from one trial to the next.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dutperf {

class TransmitLedger {
public:
    // Records frames that a trial handed over and that had not left at its end: they wait in the NIC's queues and delay
    // frames of the next trial.
    void record_waiting(std::uint64_t frames, std::uint64_t driver_sent) { waiting_ = {frames, driver_sent}; }
    // Records frames that were handed over between two trials and that the driver has not counted yet.
    void add_uncounted(std::uint64_t frames, std::uint64_t driver_sent_before, std::uint64_t driver_sent) {
        const std::uint64_t all = still_waiting(driver_sent_before) + frames;
        record_waiting(all - std::min(all, driver_sent - driver_sent_before), driver_sent);
    }
    // How many of them still wait.
    [[nodiscard]] std::uint64_t still_waiting(std::uint64_t driver_sent) const {
        return waiting_.frames - std::min(waiting_.frames, driver_sent - waiting_.driver_sent);
    }

    // To be called when more frames arrived than were counted as sent: the counter is too low, and a frame that it does
    // not count may still have left.
    void mark_inexact() { exact_ = false; }
    [[nodiscard]] bool is_exact() const { return exact_; }

private:
    struct {
        std::uint64_t frames = 0, driver_sent = 0;
    } waiting_;
    bool exact_ = true;
};

}  // namespace dutperf
