// SPDX-License-Identifier: Apache-2.0
// Changes of the delay from each frame to the next, in the order of sending (RFC 8219 7.3.2, RFC 5481): a frame that
// was reordered has its pairs like any other. Frames arrive mostly in order, so the delay of the last one is enough.
// Where numbers are missing, the delays of both neighbours of the gap are kept for a frame that comes later. If more
// than kKept numbers lie between it and the newest such neighbour, its pairs may be left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "measure/histogram.hpp"
#include "platform/blocks.hpp"

namespace dutperf {

class DelayChanges {
public:
    static constexpr std::size_t kKept = std::size_t{1} << 16U;

    // See Blocks::take_whole.
    void take_whole() { changes_.take_whole(); }

    // Takes frames of increasing numbers with a common delay in ticks. Each number comes once.
    void record(std::span<const std::uint64_t> run, std::uint64_t delay) {
        if (run.back() - run.front() == run.size() - 1) [[likely]]
            return record_following(run.front(), run.size(), delay);
        for (std::size_t i = 0, end = 0; i < run.size(); i = end) {
            for (end = i + 1; end < run.size() && run[end] == run[end - 1] + 1;) ++end;
            record_following(run[i], end - i, delay);
        }
    }

    // One for each pair of frames that follow each other and both arrived.
    [[nodiscard]] const SignedHistogram& changes() const { return changes_; }

private:
    struct Kept {
        std::uint64_t after = 0, delay = 0;  // the frame's number + 1; 0: none
    };

    // `count` frames from `first` on, which follow each other.
    void record_following(std::uint64_t first, std::uint64_t count, std::uint64_t delay) {
        if (first != next_) [[unlikely]] {
            if (first < next_) return record_reordered(first, count, delay);
            if (next_ != 0) keep(next_ - 1, last_);
            keep(first, delay);
        } else if (next_ != 0) {
            record_change(last_, delay);
        }
        if (count > 1) changes_.record(0, count - 1);
        next_ = first + count;
        last_ = delay;
    }

    void record_reordered(std::uint64_t first, std::uint64_t count, std::uint64_t delay) {
        for (std::uint64_t number = first; number != first + count; ++number) {
            if (const Kept* before = find(number - 1)) record_change(before->delay, delay);
            if (const Kept* following = find(number + 1)) record_change(delay, following->delay);
            keep(number, delay);
        }
    }

    void record_change(std::uint64_t from, std::uint64_t to) {
        changes_.record(static_cast<std::int64_t>(to) - static_cast<std::int64_t>(from));
    }

    void keep(std::uint64_t number, std::uint64_t delay) {
        kept_[number % kKept] = {.after = number + 1, .delay = delay};
    }
    // nullptr: the frame is not kept. No number follows ~0.
    [[nodiscard]] const Kept* find(std::uint64_t number) const {
        const Kept& kept = kept_[number % kKept];
        return kept.after != 0 && kept.after == number + 1 ? &kept : nullptr;
    }

    SignedHistogram changes_;
    Blocks<Kept> kept_ = Blocks<Kept>(kKept);
    std::uint64_t next_ = 0, last_ = 0;  // highest number so far + 1, and its delay
};

}  // namespace dutperf
