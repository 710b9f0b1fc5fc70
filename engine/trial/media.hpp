// SPDX-License-Identifier: Apache-2.0
// The effect of the media's rate on trials with cards: a card sends by its own clock, and frames wait in its ring if
// that clock is slower than the tester's.
#pragma once

#include <cstdint>
#include <optional>

#include "trial/test_bed.hpp"
#include "trial/trial.hpp"

namespace dutperf {

// The tolerance of Ethernet clocks is 100 ppm (IEEE 802.3), and so is that of time stamp counters. At the media's rate
// a card may be slower than the schedule by the sum of both.
inline constexpr double kMaxClockDifference = 200e-6;

// The line rate for the stream's mix of test frames on a medium of `mbps`, including gaps and preambles, and the
// additional frames between them.
double line_rate_fps(const StreamSpec& stream, std::uint32_t mbps);

// Nothing if the media's speed is unknown (`mbps` 0), or if the stream's rate differs from the line rate by more than
// the clocks may differ. Patterns have no rate to compare. A line that is filled is always at its rate. `others`: the
// share of the medium that the port's other paths need.
std::optional<MediaLimit> media_limit(const TrialSpec& spec, Direction direction, std::uint32_t mbps,
                                      double others = 0);

// The share of a medium of `mbps` that the frames of the other paths from the same port need at one time while this one
// sends, at most.
double share_of_others(const TestBed& bed, const TrialSpec& spec, Direction direction, std::uint32_t mbps);

// The frames that may wait unseen before a card that sends at `mbps`. `frames`: the size of its rings plus one burst
// that is stamped but not accepted yet.
TransmitWait transmit_wait(const StreamSpec& stream, std::uint64_t frames, std::uint32_t mbps);

}  // namespace dutperf
