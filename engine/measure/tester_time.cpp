// SPDX-License-Identifier: Apache-2.0
#include "measure/tester_time.hpp"

namespace dutperf {

namespace {

std::uint64_t distance(std::int64_t one, std::int64_t other) {
    return static_cast<std::uint64_t>(one < other ? other - one : one - other);
}

// Samples by their rank, without a search through all cells for each.
class Ranks {
public:
    template <class AnyHistogram>
    explicit Ranks(const AnyHistogram& histogram) {
        histogram.for_each([this](auto value, std::uint64_t count) {
            samples_ += count;
            cells_.push_back({static_cast<std::int64_t>(value), samples_});
        });
    }

    [[nodiscard]] std::uint64_t samples() const { return samples_; }
    // The value of the sample with this rank, from 1 to samples().
    [[nodiscard]] std::int64_t at(std::uint64_t rank) const {
        return std::ranges::lower_bound(cells_, rank, {}, &Cell::ranks)->value;
    }

private:
    struct Cell {
        std::int64_t value;
        std::uint64_t ranks;  // of this cell and those before
    };

    std::vector<Cell> cells_;
    std::uint64_t samples_ = 0;
};

}  // namespace

std::vector<TesterTime::Step> TesterTime::steps() const {
    std::vector<Step> steps;
    std::uint64_t frames = 0;
    for (const std::uint64_t count : frames_) frames += count;
    for (std::size_t i = 0; i < frames_.size(); ++i) {
        if (frames_[i] == 0) continue;
        frames -= frames_[i];
        steps.push_back({.ticks = std::min(Eighths::largest_in(i), longest_), .frames = frames});
    }
    if (steps.empty()) steps.push_back({.ticks = 0, .frames = 0});
    return steps;
}

TesterTimes::TesterTimes(const TesterTime& sending, const TesterTime& receiving) {
    std::vector<TesterTime::Step> all;
    for (const auto& sent : sending.steps()) {
        for (const auto& received : receiving.steps())
            all.push_back({.ticks = sent.ticks + received.ticks, .frames = sent.frames + received.frames});
    }
    std::ranges::sort(all, {}, [](const auto& step) { return std::pair(step.ticks, step.frames); });
    for (const auto& step : all) {
        if (steps_.empty() || step.frames < steps_.back().frames) steps_.push_back(step);
    }
}

TesterShare TesterTimes::share_of(const Histogram& delays) const {
    const Ranks ranks(delays);
    if (ranks.samples() == 0) return {};
    const auto added_to = [&](std::uint64_t rank) {
        const auto value = static_cast<std::uint64_t>(ranks.at(rank));
        std::uint64_t added = value;
        for (const auto& step : steps_) {
            if (step.frames >= rank) continue;
            const auto least = static_cast<std::uint64_t>(ranks.at(rank - step.frames));
            added = std::min(added, value - least + step.ticks);
        }
        return added;
    };
    return {.p50 = added_to(rank_of(0.5, ranks.samples())),
            .p99 = added_to(rank_of(0.99, ranks.samples())),
            .p999 = added_to(rank_of(0.999, ranks.samples())),
            .max = added_to(ranks.samples())};
}

TesterChange TesterTimes::share_of(const SignedHistogram& changes) const {
    const Ranks ranks(changes);
    const std::uint64_t samples = ranks.samples();
    if (samples == 0) return {};
    const std::uint64_t middle = rank_of(0.5, samples);
    TesterChange moved{.min = distance(ranks.at(1), 0),
                       .p50 = distance(ranks.at(1), ranks.at(samples)),
                       .max = distance(ranks.at(samples), 0)};
    for (const auto& step : steps_) {
        const std::uint64_t touched = 2 * step.frames;
        if (touched >= samples) continue;
        const auto to = [&](std::uint64_t from, std::uint64_t rank) {
            return distance(ranks.at(from), ranks.at(rank)) + step.ticks;
        };
        moved.min = std::min(moved.min, to(1, 1 + touched));
        moved.max = std::min(moved.max, to(samples, samples - touched));
        if (touched < middle && middle + touched <= samples)
            moved.p50 = std::min(moved.p50, std::max(to(middle, middle - touched), to(middle, middle + touched)));
    }
    return moved;
}

}  // namespace dutperf
