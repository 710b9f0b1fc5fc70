// SPDX-License-Identifier: Apache-2.0
// When frames arrived: the first, the last, the longest arrival gaps, and the time in all long ones. A single receiver
// keeps only its longest gap. Where several receivers share a direction, each keeps its longest gaps. The direction has
// a gap where all receivers have one, so a merged gap is the overlap of theirs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace dutperf {

// In ticks of the receivers' clock.
struct ArrivalGap {
    std::uint64_t from = 0, to = 0;
    [[nodiscard]] std::uint64_t length() const { return to - from; }
};

class ArrivalGaps {
public:
    // Keeps at least the `count` (> 0) longest arrival gaps, and at most twice as many. Those of more than `long_gap`
    // ticks are long.
    ArrivalGaps(std::size_t count, std::uint64_t long_gap) : count_(count), long_gap_(long_gap) {
        kept_.reserve(2 * count);
    }

    void note(std::uint64_t arrival) {
        if (first_ == 0) [[unlikely]]
            first_ = last_ = arrival;
        if (arrival - last_ > looked_at_) [[unlikely]]
            look_at({last_, arrival});
        last_ = arrival;
    }

    [[nodiscard]] bool any() const { return first_ != 0; }  // whether frames arrived; the following need one
    [[nodiscard]] std::uint64_t first() const { return first_; }
    [[nodiscard]] std::uint64_t last() const { return last_; }
    // In order of time; contains every gap longer than threshold().
    [[nodiscard]] const std::vector<ArrivalGap>& kept() const { return kept_; }
    [[nodiscard]] std::uint64_t threshold() const { return threshold_; }
    [[nodiscard]] std::uint64_t long_gap() const { return long_gap_; }
    // Sum of the lengths of the long gaps.
    [[nodiscard]] std::uint64_t in_long_gaps() const { return in_long_gaps_; }

private:
    void look_at(ArrivalGap one) {
        if (one.length() > long_gap_) in_long_gaps_ += one.length();
        if (one.length() > threshold_) keep(one);
        looked_at_ = std::min(threshold_, long_gap_);
    }

    void keep(ArrivalGap one) {
        if (count_ == 1) {
            kept_.assign(1, one);
            threshold_ = one.length();
            return;
        }
        kept_.push_back(one);
        if (kept_.size() == 2 * count_) drop_shorter();
    }

    void drop_shorter() {
        std::vector<std::uint64_t> lengths;
        std::ranges::transform(kept_, std::back_inserter(lengths), &ArrivalGap::length);
        const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(count_);
        std::ranges::nth_element(lengths, middle);
        threshold_ = *middle;
        std::erase_if(kept_, [this](const ArrivalGap& one) { return one.length() <= threshold_; });
    }

    std::size_t count_;
    std::uint64_t long_gap_, in_long_gaps_ = 0;
    std::uint64_t first_ = 0, last_ = 0, threshold_ = 0, looked_at_ = 0;
    std::vector<ArrivalGap> kept_;
};

// The arrivals of several receivers as a single receiver would have recorded them.
struct MergedArrivals {
    std::uint64_t first = 0, last = 0;
    ArrivalGap longest;  // exact if it is longer than each threshold(); otherwise no gap was longer than that
    std::optional<std::uint64_t> in_long_gaps;  // none: not all long gaps of a receiver were kept
};

// Ignores receivers without frames; at least one must have some.
inline MergedArrivals merge_arrivals(const std::vector<const ArrivalGaps*>& receivers) {
    constexpr std::uint64_t kEver = std::numeric_limits<std::uint64_t>::max();
    MergedArrivals merged{.first = kEver, .last = 0, .longest = {}, .in_long_gaps = 0};
    std::size_t with_frames = 0;
    bool all_kept = true;
    std::vector<ArrivalGap> gaps{{0, kEver}};
    for (const ArrivalGaps* one : receivers) {
        if (!one->any()) continue;
        ++with_frames;
        all_kept = all_kept && one->threshold() <= one->long_gap();
        *merged.in_long_gaps += one->in_long_gaps();
        merged.first = std::min(merged.first, one->first());
        merged.last = std::max(merged.last, one->last());
        std::vector<ArrivalGap> own{{0, one->first()}}, both;
        own.insert(own.end(), one->kept().begin(), one->kept().end());
        own.push_back({one->last(), kEver});
        for (std::size_t a = 0, b = 0; a < gaps.size() && b < own.size();) {
            const ArrivalGap overlap{std::max(gaps[a].from, own[b].from), std::min(gaps[a].to, own[b].to)};
            if (overlap.from < overlap.to) both.push_back(overlap);
            ++(gaps[a].to < own[b].to ? a : b);
        }
        gaps = std::move(both);
    }
    std::uint64_t in_long = 0;
    for (const ArrivalGap& one : gaps) {
        const bool between_arrivals = one.from >= merged.first && one.to <= merged.last;
        if (between_arrivals && one.length() > receivers.front()->long_gap()) in_long += one.length();
        if (between_arrivals && one.length() > merged.longest.length()) merged.longest = one;
    }
    if (merged.longest.length() == 0) merged.longest = {merged.first, merged.first};
    if (with_frames > 1) merged.in_long_gaps = all_kept ? std::optional(in_long) : std::nullopt;
    return merged;
}

}  // namespace dutperf
