// SPDX-License-Identifier: Apache-2.0
// Flows that begin one after the other (RFC 8219 10.2.2): each of n flows has an n-th of the rate, and one more begins
// every `apart_ns`. So the rate of the stream grows in n stages: stage s, from (s - 1) * apart_ns on, has s flows and
// s / n of the rate. Frame k is due in the last nanosecond up to which the integral of the rate is at most k, as with a
// profile. The package computes the same times (src/dutperf/model/pattern.py).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pace/due_after.hpp"
#include "pace/uniform_times.hpp"

namespace dutperf {

class Joining {
public:
    // At least one flow.
    Joining(std::uint64_t rate_fps, std::uint32_t flows, std::uint64_t apart_ns)
        : rate_fps_(rate_fps), flows_(flows), apart_ns_(apart_ns) {}

    [[nodiscard]] std::uint32_t flows() const { return flows_; }

    // When frame k, which is in this stage, is due.
    [[nodiscard]] std::uint64_t due_in(std::uint32_t stage, std::uint64_t k) const {
        return (stage - 1) * apart_ns_ +
               static_cast<std::uint64_t>((integral_of(k) - integral_at(stage)) / (Wide{2} * stage * rate_fps_));
    }
    // The last stage that begins with frame k or before.
    [[nodiscard]] std::uint32_t stage_of(std::uint64_t k) const {
        std::uint32_t low = 1, high = flows_ + 1;
        while (high - low > 1) {
            const std::uint32_t middle = low + (high - low) / 2;
            (has_begun(middle, k) ? low : high) = middle;
        }
        return low;
    }
    [[nodiscard]] bool has_begun(std::uint32_t stage, std::uint64_t k) const {
        return integral_at(stage) <= integral_of(k);
    }

    // When frame k is due, in ns from the start.
    [[nodiscard]] std::uint64_t due_ns(std::uint64_t k) const { return due_in(stage_of(k), k); }
    // Frames that are due before `after_ns`.
    [[nodiscard]] std::uint64_t frames_before(std::uint64_t after_ns) const {
        const std::uint64_t begun = std::min<std::uint64_t>(after_ns / apart_ns_ + 1, flows_);
        const Wide since = Wide{2} * begun * rate_fps_ * (after_ns - (begun - 1) * apart_ns_);
        const Wide one_frame = integral_of(1);
        return static_cast<std::uint64_t>((integral_at(static_cast<std::uint32_t>(begun)) + since + one_frame - 1) /
                                          one_frame);
    }
    // The first frame of each stage.
    [[nodiscard]] std::vector<std::uint64_t> first_frames() const {
        std::vector<std::uint64_t> first(flows_);
        for (std::uint32_t stage = 1; stage <= flows_; ++stage)
            first[stage - 1] = frames_before((stage - 1) * apart_ns_);
        return first;
    }

private:
    // Integrals of the rate are in 1 / (2 n 10^9) frames: so they are integers.
    [[nodiscard]] Wide integral_of(std::uint64_t frames) const { return Wide{frames} * flows_ * 2'000'000'000U; }
    [[nodiscard]] Wide integral_at(std::uint32_t stage) const {
        return Wide{rate_fps_} * apart_ns_ * (std::uint64_t{stage} * (stage - 1));
    }

    std::uint64_t rate_fps_;
    std::uint32_t flows_;
    std::uint64_t apart_ns_;
};

// The due times in ticks; see PoissonTimes. There is no last time.
class JoiningTimes {
public:
    JoiningTimes(Joining joining, std::uint64_t clock_hz) : joining_(joining), clock_hz_(clock_hz) {}

    std::uint32_t next(FewTimes& few) {
        for (std::uint64_t& time : few) {
            while (stage_ < joining_.flows() && joining_.has_begun(stage_ + 1, number_)) ++stage_;
            time = ticks_of(joining_.due_in(stage_, number_++), clock_hz_);
        }
        return kFewTimes;
    }

private:
    Joining joining_;
    std::uint64_t clock_hz_, number_ = 0;
    std::uint32_t stage_ = 1;
};

}  // namespace dutperf
