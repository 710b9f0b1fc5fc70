// SPDX-License-Identifier: Apache-2.0
// Due times of patterns other than a constant rate: Poisson arrivals (exponential gaps) and bursts (RFC 2544 section
// 21). A source gives due times in ticks after the start, in order, a few at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "pace/due_after.hpp"
#include "pace/uniform_times.hpp"

namespace dutperf {

// A fixed number of frames at independent times, uniform over the sending time. Gaps are exponential and the mean rate
// is exact.
class PoissonTimes {
public:
    PoissonTimes(const UniformTimes& times, Ticks duration) : times_(times), duration_(duration) {
        waiting_[0] = times_.whole();
    }

    // Writes due times into `few` and returns their number. Not to be called after the last one.
    std::uint32_t next(FewTimes& few) {
        UniformTimes::Part part = waiting_[--depth_];
        while (!part.has_few()) {
            const auto [earlier, later] = times_.halves(part);
            waiting_[depth_++] = later;
            part = earlier;
        }
        const std::uint32_t count = times_.draw(part, few);
        for (std::uint32_t i = 0; i < count; ++i) few[i] = scaled(few[i], duration_);
        return count;
    }

    // Scales a time of UniformTimes to `duration`, rounded down.
    static std::uint64_t scaled(std::uint64_t time, std::uint64_t duration) {
        return static_cast<std::uint64_t>(static_cast<Wide>(time) * duration >> 64U);
    }

private:
    UniformTimes times_;
    Ticks duration_;
    std::array<UniformTimes::Part, 64> waiting_{};  // a stack of later halves: at most one of each level
    std::size_t depth_ = 1;
};

// Bursts of `frames` frames. A burst begins when its first frame would be due at the mean rate. The others follow at
// `within_fps`, which is not below the mean rate; 0: all at once, as fast as the sender can.
struct Bursts {
    std::uint64_t frames = 1, within_fps = 0;

    // When frame j of a burst is due, after the burst's beginning.
    [[nodiscard]] std::uint64_t within(std::uint64_t j, std::uint64_t clock_hz) const {
        return within_fps == 0 ? 0 : due_after(j, clock_hz, within_fps);
    }

    // When frame k is due.
    [[nodiscard]] std::uint64_t due_of(std::uint64_t k, std::uint64_t clock_hz, std::uint64_t rate_fps) const {
        return due_after(k - k % frames, clock_hz, rate_fps) + within(k % frames, clock_hz);
    }
};

class BurstTimes {
public:
    BurstTimes(const Bursts& bursts, std::uint64_t clock_hz, std::uint64_t rate_fps)
        : bursts_(bursts), clock_hz_(clock_hz), rate_fps_(rate_fps) {}

    // See PoissonTimes; there is no last time.
    std::uint32_t next(FewTimes& few) {
        if (in_burst_ == 0) begin_ = due_after(number_, clock_hz_, rate_fps_);
        const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(kFewTimes, bursts_.frames - in_burst_));
        for (std::uint32_t i = 0; i < count; ++i) few[i] = begin_ + bursts_.within(in_burst_ + i, clock_hz_);
        number_ += count;
        in_burst_ = in_burst_ + count == bursts_.frames ? 0 : in_burst_ + count;
        return count;
    }

private:
    Bursts bursts_;
    std::uint64_t clock_hz_, rate_fps_;
    std::uint64_t number_ = 0, in_burst_ = 0;
    Ticks begin_ = 0;
};

}  // namespace dutperf
