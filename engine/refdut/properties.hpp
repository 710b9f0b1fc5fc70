// SPDX-License-Identifier: Apache-2.0
// The configured properties of the reference DUT. Each is exact and independent of the others; random ones depend only
// on the seed.
#pragma once

#include <cstdint>
#include <optional>

#include "refdut/connection_table.hpp"
#include "refdut/wrong_answers.hpp"

namespace dutperf {

// Chooses frames of one direction: a random share, every Nth, or both.
struct Choice {
    std::uint32_t ratio_ppb = 0;  // probability, in parts per billion
    std::uint64_t every = 0;      // frames N-1, 2N-1, ... counted from 0; 0: none
};

enum class Jitter : std::uint8_t { none, normal, exponential };

struct Dns64Properties {
    std::size_t cache_names = 0;     // answers in the cache; 0: none
    std::uint32_t pending = 65'536;  // queries that wait for the server; further ones are lost
    ByWrong wrong_every{};           // which answers are wrong, by kind
};

struct Properties {
    std::uint64_t seed = 0;
    std::uint64_t capacity_fps = 0;     // of each core; 0: no limit
    std::uint32_t queue_frames = 1000;  // that may wait at each core, besides the one in service
    std::uint32_t cores = 1;            // simulated, shared by both directions; the flow hash selects one
    std::uint32_t flow_cache = 1024;    // flows that it knows: those of the frames served last
    std::uint64_t flow_miss_ns = 0;     // by which a frame of any other flow is served longer
    std::uint64_t delay_ns = 0;
    Jitter jitter = Jitter::none;
    std::uint64_t jitter_ns = 0;  // standard deviation (normal, total delay not below 0) or mean (exponential)
    Choice extra_delay{};
    std::uint64_t extra_delay_ns = 0;
    Choice loss{}, duplicate{}, reorder{}, bit_error{};
    std::optional<ConnectionProperties> nat{};
    std::optional<Dns64Properties> dns64{};

    [[nodiscard]] bool has_delay() const { return delay_ns != 0 || jitter != Jitter::none || extra_delay_ns != 0; }
};

// An injected fault: begins `after_ns` after the next frame that arrives and lasts `duration_ns`.
struct Disturbance {
    std::uint64_t after_ns = 0;
    std::uint64_t duration_ns = 0;
};

}  // namespace dutperf
