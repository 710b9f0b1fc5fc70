// SPDX-License-Identifier: Apache-2.0
// Rates that change: a profile is a list of segments with a linear change of the rate in each. After the last segment
// the first one follows again. Frame k is due in the last nanosecond up to which the integral of the rate is at most k.
// All of it uses integers, so the package computes the same times (src/dutperf/model/pattern.py).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "pace/due_after.hpp"
#include "pace/uniform_times.hpp"

namespace dutperf {

class Profile {
public:
    struct Segment {
        std::uint64_t duration_ns = 1, from_fps = 0, to_fps = 0;

        // The integral of the rate over the segment. Integrals are in 1 / kOneFrame frames: so they are integers.
        [[nodiscard]] Wide integral() const { return static_cast<Wide>(from_fps + to_fps) * duration_ns; }
        // The last ns up to which the integral is at most `limit`, which is less than that of the whole segment.
        [[nodiscard]] std::uint64_t last_ns(Wide limit) const;
    };

    static constexpr std::uint64_t kOneFrame = 2'000'000'000;

    // Some rate must not be 0.
    explicit Profile(std::vector<Segment> segments);

    [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
    [[nodiscard]] std::uint64_t highest_fps() const;
    // The share of the time with a rate of at least `fps`.
    [[nodiscard]] double share_from(double fps) const;
    // Frames that are due before `after_ns`.
    [[nodiscard]] std::uint64_t frames_before(std::uint64_t after_ns) const;
    // When frame k is due, in ns from the start.
    [[nodiscard]] std::uint64_t due_ns(std::uint64_t k) const;

private:
    std::vector<Segment> segments_;
    std::vector<std::uint64_t> begins_ns_{0};  // of the segments, and the end of the last one
    std::vector<Wide> begins_{0};              // the same as integrals
};

// The due times of a profile, in ticks; see PoissonTimes. There is no last time.
class ProfileTimes {
public:
    ProfileTimes(Profile profile, std::uint64_t clock_hz) : profile_(std::move(profile)), clock_hz_(clock_hz) {}

    std::uint32_t next(FewTimes& few) {
        for (std::uint64_t& time : few) {
            while (since_ >= segment().integral()) {
                since_ -= segment().integral();
                begin_ns_ += segment().duration_ns;
                at_ = at_ + 1 == profile_.segments().size() ? 0 : at_ + 1;
            }
            time = ticks_of(begin_ns_ + segment().last_ns(since_), clock_hz_);
            since_ += Profile::kOneFrame;
        }
        return kFewTimes;
    }

private:
    [[nodiscard]] const Profile::Segment& segment() const { return profile_.segments()[at_]; }

    Profile profile_;
    std::uint64_t clock_hz_;
    std::size_t at_ = 0;
    std::uint64_t begin_ns_ = 0;  // of this segment
    Wide since_ = 0;              // the integral from there to the next frame
};

}  // namespace dutperf
