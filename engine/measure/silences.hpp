// SPDX-License-Identifier: Apache-2.0
// When frames came: the first and the last, and the longest times between two of them. One receiver keeps the longest silence alone. Where several
// share a direction each keeps its longest ones: at a moment the direction is silent if each of them is, so a joint silence is where silences overlap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace dutperf {

// Times are ticks of the receivers' clock.
struct Silence {
    std::uint64_t from = 0, to = 0;
    [[nodiscard]] std::uint64_t length() const { return to - from; }
};

class Silences {
public:
    // Keeps the `most` longest silences at least (> 0), and twice as many at most.
    explicit Silences(std::size_t most) : most_(most) { kept_.reserve(2 * most); }

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
    [[nodiscard]] const std::vector<Silence>& kept() const { return kept_; }
    [[nodiscard]] std::uint64_t least() const { return least_; }

private:
    void keep(Silence one) {
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
        std::ranges::transform(kept_, std::back_inserter(lengths), &Silence::length);
        const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(most_);
        std::ranges::nth_element(lengths, middle);
        least_ = *middle;
        std::erase_if(kept_, [this](const Silence& one) { return one.length() <= least_; });
    }

    std::size_t most_;
    std::uint64_t first_ = 0, last_ = 0, least_ = 0;
    std::vector<Silence> kept_;
};

// The arrivals of several receivers as one would have seen them.
struct JointArrivals {
    std::uint64_t first = 0, last = 0;
    Silence longest;  // exact where it is longer than `least` of each; otherwise none was longer than that
};

// Of those among `receivers` at which frames came; one at least.
inline JointArrivals joined(const std::vector<const Silences*>& receivers) {
    constexpr std::uint64_t kEver = std::numeric_limits<std::uint64_t>::max();
    JointArrivals joint{.first = kEver, .last = 0, .longest = {}};
    std::vector<Silence> silent{{0, kEver}};
    for (const Silences* one : receivers) {
        if (!one->any()) continue;
        joint.first = std::min(joint.first, one->first());
        joint.last = std::max(joint.last, one->last());
        std::vector<Silence> own{{0, one->first()}}, both;
        own.insert(own.end(), one->kept().begin(), one->kept().end());
        own.push_back({one->last(), kEver});
        for (std::size_t a = 0, b = 0; a < silent.size() && b < own.size();) {
            const Silence overlap{std::max(silent[a].from, own[b].from), std::min(silent[a].to, own[b].to)};
            if (overlap.from < overlap.to) both.push_back(overlap);
            ++(silent[a].to < own[b].to ? a : b);
        }
        silent = std::move(both);
    }
    for (const Silence& one : silent) {
        const bool between_arrivals = one.from >= joint.first && one.to <= joint.last;
        if (between_arrivals && one.length() > joint.longest.length()) joint.longest = one;
    }
    if (joint.longest.length() == 0) joint.longest = {joint.first, joint.first};
    return joint;
}

}  // namespace dutperf
