// SPDX-License-Identifier: Apache-2.0
// The schedule of a stream. It is to be started at the stream's beginning.
#pragma once

#include "pace/schedule.hpp"
#include "trial/trial.hpp"

namespace dutperf {

// A direction, and one sender's share of its schedule.
struct Shared {
    Direction direction;
    Share share;
};

AnySchedule schedule_of(const TrialSpec& spec, const Shared& of, std::uint64_t clock_hz);

}  // namespace dutperf
