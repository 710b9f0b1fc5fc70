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

// When `at` is, or was, by CLOCK_MONOTONIC, which other programs on this machine can read. The further it is from now,
// the more the kernel's corrections of that clock may add, at most 500 ppm.
double monotonic_s(Ticks at, std::uint64_t clock_hz);
// A time of the counter in ns since 1970, by CLOCK_REALTIME.
std::uint64_t wall_clock_ns(Ticks at, std::uint64_t clock_hz);
// What CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, in ns: it changes where somebody sets the clock, not where it is
// corrected.
std::int64_t wall_clock_ahead_ns(std::uint64_t clock_hz);

// An instant by the TSC and by a clock of the kernel, which said `ns` within `width` / 2 of `ticks`.
struct ClockInstant {
    Ticks ticks;
    std::int64_t ns;
    Ticks width;
};
// Now, by CLOCK_REALTIME or another clock of clock_gettime(2).
ClockInstant instant_by(int clock);

// One reading of the TSC and a NIC's clock, which was `nic` within `width` / 2 of `ticks`.
struct ClockPair {
    Ticks ticks = 0;
    std::uint64_t nic = 0;
    Ticks width = 0;
};

// Measures the TSC frequency from construction to hertz(); 100 ms give about 1 ppm.
class ClockCalibration {
public:
    ClockCalibration();
    [[nodiscard]] std::uint64_t hertz() const;  // waits until 100 ms have passed since construction

private:
    ClockInstant begin_;
};

// The largest TSC offset between the first of `cores` and each other one, in ticks, measured by a ping-pong; nothing
// for one core.
std::optional<double> counter_skew(const std::vector<unsigned>& cores);

}  // namespace dutperf
