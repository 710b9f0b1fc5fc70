// SPDX-License-Identifier: Apache-2.0
// When frame k of a constant rate is due, by definition. Schedules that step from frame to frame must agree with it.
#pragma once

#include <cstdint>

#include "platform/ticks.hpp"

namespace dutperf {

__extension__ using Wide = unsigned __int128;

// Ticks from the start to the due time of frame k.
inline Ticks due_after(std::uint64_t k, std::uint64_t clock_hz, std::uint64_t rate_fps) {
    return static_cast<Ticks>(static_cast<Wide>(k) * clock_hz / rate_fps);
}

inline Ticks ticks_of(std::uint64_t ns, std::uint64_t clock_hz) { return due_after(ns, clock_hz, 1'000'000'000); }

}  // namespace dutperf
