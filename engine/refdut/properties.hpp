// SPDX-License-Identifier: Apache-2.0
// What the reference DUT is made to be. Each property is exact and independent of the others; where chance decides, it
// decides by the seed alone.
#pragma once

#include <cstdint>

namespace dutperf {

// Which frames something happens to, of those of one direction: a random share, every Nth, or both.
struct Choice {
    std::uint32_t ratio_ppb = 0;  // probability, in parts per billion
    std::uint64_t every = 0;      // frames number N-1, 2N-1, ... from 0; 0: none
};

enum class Jitter : std::uint8_t { none, normal, exponential };

struct Properties {
    std::uint64_t seed = 0;
    std::uint64_t capacity_fps = 0;     // of each core; 0: without limit
    std::uint32_t queue_frames = 1000;  // that may wait at each core, besides the one that it works on
    std::uint32_t cores = 1;            // simulated, shared by both directions; a flow's hash says which one serves it
    std::uint64_t delay_ns = 0;
    Jitter jitter = Jitter::none;
    std::uint64_t jitter_ns = 0;  // standard deviation (normal, never less than no delay at all) or mean (exponential)
    Choice extra_delay{};
    std::uint64_t extra_delay_ns = 0;
    Choice loss{}, duplicate{}, reorder{}, bit_error{};
};

// Something that befalls the DUT `after_ns` after the first frame that arrives from now on, for `duration_ns`.
struct Disturbance {
    std::uint64_t after_ns = 0;
    std::uint64_t duration_ns = 0;
};

}  // namespace dutperf
