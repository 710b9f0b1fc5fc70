// SPDX-License-Identifier: Apache-2.0
// Due times that are listed one by one, as those of a capture: frame k of a list with n times is due at
// floor(k / n) * period + times[k mod n]. The list is repeated as often as needed. The package computes the same times
// (src/dutperf/model/pattern.py).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "pace/due_after.hpp"
#include "pace/uniform_times.hpp"

namespace dutperf {

class Recorded {
public:
    // `times_ns` is not empty, does not decrease, and ends before `period_ns`.
    Recorded(std::shared_ptr<const std::vector<std::uint64_t>> times_ns, std::uint64_t period_ns)
        : times_ns_(std::move(times_ns)), period_ns_(period_ns) {}

    [[nodiscard]] std::uint64_t frames() const { return times_ns_->size(); }
    // When frame k is due, in ns from the start.
    [[nodiscard]] std::uint64_t due_ns(std::uint64_t k) const {
        return k / frames() * period_ns_ + (*times_ns_)[k % frames()];
    }
    // Frames that are due before `after_ns`.
    [[nodiscard]] std::uint64_t frames_before(std::uint64_t after_ns) const {
        const auto within = std::ranges::lower_bound(*times_ns_, after_ns % period_ns_) - times_ns_->begin();
        return after_ns / period_ns_ * frames() + static_cast<std::uint64_t>(within);
    }
    // The highest rate over any kWindow consecutive gaps, at most kHighestFps.
    [[nodiscard]] std::uint64_t highest_fps() const {
        std::uint64_t shortest_ns = ~std::uint64_t{0};
        for (std::uint64_t k = 0; k < frames(); ++k)
            shortest_ns = std::min(shortest_ns, due_ns(k + kWindow) - due_ns(k));
        return std::max<std::uint64_t>(1, kWindow * kHighestFps / std::max<std::uint64_t>(shortest_ns, kWindow));
    }

private:
    static constexpr std::uint64_t kWindow = 64, kHighestFps = 1'000'000'000;

    std::shared_ptr<const std::vector<std::uint64_t>> times_ns_;
    std::uint64_t period_ns_;
};

// The same in ticks; see PoissonTimes. There is no last time.
class RecordedTimes {
public:
    RecordedTimes(Recorded recorded, std::uint64_t clock_hz) : recorded_(std::move(recorded)), clock_hz_(clock_hz) {}

    std::uint32_t next(FewTimes& few) {
        for (std::uint64_t& time : few) time = ticks_of(recorded_.due_ns(number_++), clock_hz_);
        return kFewTimes;
    }

private:
    Recorded recorded_;
    std::uint64_t clock_hz_, number_ = 0;
};

}  // namespace dutperf
