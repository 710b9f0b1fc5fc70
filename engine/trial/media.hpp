// SPDX-License-Identifier: Apache-2.0
// What the media's rate means for a trial on cards: the clock by which a card sends is not the tester's, and frames
// wait in its ring where it is the slower.
#pragma once

#include <cstdint>
#include <optional>

#include "trial/trial.hpp"

namespace dutperf {

// Ethernet's clocks are right to 100 ppm (IEEE 802.3), and so are those that time stamp counters count by: at the
// media's rate a card may be slower than the schedule by both.
inline constexpr double kClocksDiffer = 200e-6;

// Frames/s that a medium of `mbps` carries of the stream's mix, gaps and preambles included.
double line_rate_fps(const StreamSpec& stream, std::uint32_t mbps);

// Nothing where the media's speed is not known (`mbps` 0), or the stream's rate is not the media's within what clocks
// may differ by. A pattern of bursts has no rate that could be compared.
std::optional<MediaLimit> media_limit(const TrialSpec& spec, Direction direction, std::uint32_t mbps);

// What may wait unseen in front of a card that sends `mbps`: `frames`, which its rings hold with a burst that has its
// stamps and was not taken yet.
TransmitWait transmit_wait(const StreamSpec& stream, std::uint64_t frames, std::uint32_t mbps);

}  // namespace dutperf
