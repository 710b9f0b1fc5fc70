// SPDX-License-Identifier: Apache-2.0
// The time at which the loops of a trial end. Two threads may set it concurrently: the loop of the last sender (after
// the drain) and the thread that stops the trial (now). A stop wins.
#pragma once

#include <atomic>
#include <limits>

#include "pace/due_after.hpp"

namespace dutperf {

class TrialEnd {
public:
    // Called by the last sender. No effect if the trial was stopped already.
    void set_after_drain(Ticks at) {
        Ticks expected = kUnknown;
        at_.compare_exchange_strong(expected, at);
    }
    void set_now() { at_.store(0); }
    void set_at(Ticks at) { at_.store(at); }
    // 0: the trial was stopped.
    [[nodiscard]] Ticks at() const { return at_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool has_come(Ticks now) const { return now >= at(); }

private:
    static constexpr Ticks kUnknown = std::numeric_limits<Ticks>::max();
    std::atomic<Ticks> at_{kUnknown};
};

}  // namespace dutperf
