// SPDX-License-Identifier: Apache-2.0
// The clock of every measurement: the time stamp counter. Its frequency is measured against CLOCK_MONOTONIC_RAW over
// the whole start-up, because DPDK rounds its own estimate to 10 MHz, which would make every rate wrong by up to 0.2 %.
#pragma once

#include <rte_cycles.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "platform/ticks.hpp"

namespace dutperf {

inline Ticks now_ticks() { return rte_rdtsc(); }

// Measures from its construction to hertz(): 100 ms give about 1 ppm.
class ClockCalibration {
public:
    ClockCalibration();
    [[nodiscard]] std::uint64_t hertz() const;  // waits until at least 100 ms have passed since construction

private:
    struct Instant {
        Ticks ticks;
        std::int64_t ns;
    };
    static Instant read_both();
    Instant begin_;
};

// The largest difference between the counters of `cores` that a ping-pong between each of them and the first can show,
// in ticks; nothing for one core.
std::optional<double> counter_skew(const std::vector<unsigned>& cores);

}  // namespace dutperf
