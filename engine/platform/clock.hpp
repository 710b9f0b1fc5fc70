// SPDX-License-Identifier: Apache-2.0
// The clock of every measurement: the time stamp counter (TSC). Its frequency is measured against CLOCK_MONOTONIC_RAW
// during the whole start-up. DPDK rounds its own estimate to 10 MHz, which would make rates wrong by up to 0.2 %.
#pragma once

#include <rte_cycles.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "platform/ticks.hpp"

namespace dutperf {

inline Ticks now_ticks() { return rte_rdtsc(); }

// Measures the TSC frequency from construction to hertz(); 100 ms give about 1 ppm.
class ClockCalibration {
public:
    ClockCalibration();
    [[nodiscard]] std::uint64_t hertz() const;  // waits until 100 ms have passed since construction

private:
    struct Instant {
        Ticks ticks;
        std::int64_t ns;
    };
    static Instant read_both();
    Instant begin_;
};

// The largest TSC offset between the first of `cores` and each other one, in ticks, measured by a ping-pong; nothing
// for one core.
std::optional<double> counter_skew(const std::vector<unsigned>& cores);

}  // namespace dutperf
