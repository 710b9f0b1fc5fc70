// SPDX-License-Identifier: Apache-2.0
// How much of the delays is the tester's own, at most. A delay lasts from the stamp to the poll. The frame left at some
// time between its stamp and the end of the call that handed it over, and arrived at some time after the poll before,
// which found the queue empty. Sender and receiver count frames by the length of these times, once for each call. From
// both counts follows by how much a quantile of the delays may be too large: if all frames but N have no more than u of
// the tester's time, the quantile of rank r is at least the one of rank r - N, less u.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "measure/cells.hpp"
#include "measure/histogram.hpp"

namespace dutperf {

// Counts of frames by the tester's time in their delays, in ticks. A time counts as up to an eighth longer.
class TesterTime {
public:
    void record(std::uint64_t ticks, std::uint64_t frames) {
        longest_ = std::max(longest_, ticks);
        frames_[Eighths::index_of(std::min(ticks, kLongest))] += frames;
    }
    void add(const TesterTime& other) {
        longest_ = std::max(longest_, other.longest_);
        for (std::size_t i = 0; i < frames_.size(); ++i) frames_[i] += other.frames_[i];
    }

    // All but `frames` frames have no more than `ticks` of the tester's time.
    struct Step {
        std::uint64_t ticks, frames;
    };
    // Ascending by time; the last one has no frames.
    [[nodiscard]] std::vector<Step> steps() const;

private:
    using Eighths = Cells<3>;
    static constexpr std::uint64_t kLongest = std::uint64_t{1} << 40U;

    std::array<std::uint64_t, 320> frames_{};
    std::uint64_t longest_ = 0;
};

// The most that the tester may have added to quantiles of delays, in ticks.
struct TesterShare {
    std::uint64_t p50 = 0, p99 = 0, p999 = 0, max = 0;
};

// ... and by which it may have moved quantiles of changes of delay.
struct TesterChange {
    std::uint64_t min = 0, p50 = 0, max = 0;
};

// The times of senders and receivers of the same frames.
class TesterTimes {
public:
    TesterTimes(const TesterTime& sending, const TesterTime& receiving);

    [[nodiscard]] TesterShare share_of(const Histogram& delays) const;
    // Each frame has two changes.
    [[nodiscard]] TesterChange share_of(const SignedHistogram& changes) const;

private:
    std::vector<TesterTime::Step> steps_;  // of both together: ascending by time, descending by frames
};

}  // namespace dutperf
