// SPDX-License-Identifier: Apache-2.0
#include "trial/trial.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace dutperf {
namespace {

constexpr std::uint64_t kDurationNs = 999'999'937;  // a prime

TrialSpec trial_of(std::uint64_t rate_fps, const Pattern& pattern) {
    TrialSpec spec;
    spec.seed = 7;
    spec.duration_ns = kDurationNs;
    spec.streams[0].emplace();
    spec.streams[0]->rate_fps = rate_fps;
    spec.streams[0]->pattern = pattern;
    return spec;
}

const std::vector<Pattern>& patterns() {
    static const std::vector<Pattern> all{Pattern{}, Poisson{}, Bursts{.frames = 32},
                                          Bursts{.frames = 100, .within_fps = 1'000'000'000},
                                          Bursts{.frames = 7, .within_fps = 60'001}};
    return all;
}

TEST(Trial, HasTheSameNumberOfFramesInEveryPattern) {
    for (const Pattern& pattern : patterns()) {
        for (const std::uint64_t rate : {1UL, 33UL, 59'999UL}) {
            const TrialSpec spec = trial_of(rate, pattern);
            EXPECT_EQ(spec.intended(Direction::forward), rate) << pattern.index();
            EXPECT_EQ(spec.due_before(Direction::forward, kDurationNs), rate);
            EXPECT_LT(spec.due_ns(Direction::forward, rate - 1), kDurationNs);
            EXPECT_EQ(spec.intended(Direction::reverse), 0U);
        }
    }
}

// A loss has the due time of its number: a frame counts as before a time exactly if it is due before it.
TEST(Trial, CountsFramesBeforeATimeByDueTime) {
    constexpr std::uint64_t kRate = 12'345;
    for (const Pattern& pattern : patterns()) {
        const TrialSpec spec = trial_of(kRate, pattern);
        std::vector<std::uint64_t> due;
        for (std::uint64_t k = 0; k < kRate; ++k) due.push_back(spec.due_ns(Direction::forward, k));
        ASSERT_TRUE(std::is_sorted(due.begin(), due.end())) << pattern.index();
        std::mt19937_64 random(5);
        for (int i = 0; i < 2000; ++i) {
            const std::uint64_t time = i % 2 == 0 ? random() % kDurationNs : due[random() % kRate] + random() % 2;
            const auto expected =
                static_cast<std::uint64_t>(std::lower_bound(due.begin(), due.end(), time) - due.begin());
            ASSERT_EQ(spec.due_before(Direction::forward, time), expected) << time << " pattern " << pattern.index();
        }
    }
}

TEST(Trial, EveryPathHasGeneratorsOfItsOwn) {
    std::set<std::uint64_t> seeds;
    for (std::size_t path = 0; path < kMostPaths; ++path) {
        for (int generator = 0; generator < 6; ++generator)
            seeds.insert(generator_seed(1, direction_at(path), static_cast<Generator>(generator)));
    }
    EXPECT_EQ(seeds.size(), 6 * kMostPaths);
}

TEST(Trial, DirectionsHaveArrivalsOfTheirOwn) {
    TrialSpec spec = trial_of(1'000, Poisson{});
    spec.streams[1] = spec.streams[0];
    EXPECT_NE(spec.due_ns(Direction::forward, 0), spec.due_ns(Direction::reverse, 0));
}

}  // namespace
}  // namespace dutperf
