// SPDX-License-Identifier: Apache-2.0
// When frames came: the first and the last, and the longest times between two of them. One receiver keeps the longest
// arrival gap alone. Where several share a direction each keeps its longest ones: at a moment the direction is silent
// if each of them is, so a joint arrival gap is where arrival gaps overlap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace dutperf {

// Times are ticks of the receivers' clock.
struct ArrivalGap {
    std::uint64_t from = 0, to = 0;
    [[nodiscard]] std::uint64_t length() const { return to - from; }
};

class ArrivalGaps {
public:
    // Keeps the `most` longest arrival gaps at least (> 0), and twice as many at most.
    explicit ArrivalGaps(std::size_t most) : most_(most) { kept_.reserve(2 * most); }

    void note(std::uint64_t arrival) {
        if (first_ == 0) [[unlikely]]
            first_ = last_ = arrival;
        if (arrival - last_ > least_) [[unlikely]]
            keep({last_, arrival});
        last_ = arrival;
    }

    [[nodiscard]] bool any() const { return first_ != 0; }  // whether frames came: what follows is about them
    [[nodiscard]] std::uint64_t first() const { return first_; }
    [[nodiscard]] std::uint64_t last() const { return last_; }
    // In the order in which they were; every longer one than `least()` is there.
    [[nodiscard]] const std::vector<ArrivalGap>& kept() const { return kept_; }
    [[nodiscard]] std::uint64_t least() const { return least_; }

private:
    void keep(ArrivalGap one) {
        if (most_ == 1) {
            kept_.assign(1, one);
            least_ = one.length();
            return;
        }
        kept_.push_back(one);
        if (kept_.size() == 2 * most_) forget_the_shorter();
    }

    void forget_the_shorter() {
        std::vector<std::uint64_t> lengths;
        std::ranges::transform(kept_, std::back_inserter(lengths), &ArrivalGap::length);
        const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(most_);
        std::ranges::nth_element(lengths, middle);
        least_ = *middle;
        std::erase_if(kept_, [this](const ArrivalGap& one) { return one.length() <= least_; });
    }

    std::size_t most_;
    std::uint64_t first_ = 0, last_ = 0, least_ = 0;
    std::vector<ArrivalGap> kept_;
};

// The arrivals of several receivers as one would have seen them.
struct MergedArrivals {
    std::uint64_t first = 0, last = 0;
    ArrivalGap longest;  // exact where it is longer than `least` of each; otherwise none was longer than that
};

// Of those among `receivers` at which frames came; one at least.
inline MergedArrivals merge_arrivals(const std::vector<const ArrivalGaps*>& receivers) {
    constexpr std::uint64_t kEver = std::numeric_limits<std::uint64_t>::max();
    MergedArrivals merged{.first = kEver, .last = 0, .longest = {}};
    std::vector<ArrivalGap> gaps{{0, kEver}};
    for (const ArrivalGaps* one : receivers) {
        if (!one->any()) continue;
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
    for (const ArrivalGap& one : gaps) {
        const bool between_arrivals = one.from >= merged.first && one.to <= merged.last;
        if (between_arrivals && one.length() > merged.longest.length()) merged.longest = one;
    }
    if (merged.longest.length() == 0) merged.longest = {merged.first, merged.first};
    return merged;
}

}  // namespace dutperf
