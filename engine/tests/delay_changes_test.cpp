// SPDX-License-Identifier: Apache-2.0
#include "measure/delay_changes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

namespace dutperf {
namespace {

using Numbers = std::vector<std::uint64_t>;

// The changes in the order of sending; nothing for a frame that was lost.
std::vector<std::int64_t> expected(const std::vector<std::optional<std::uint64_t>>& delays) {
    std::vector<std::int64_t> changes;
    for (std::size_t i = 1; i < delays.size(); ++i) {
        if (delays[i] && delays[i - 1])
            changes.push_back(static_cast<std::int64_t>(*delays[i]) - static_cast<std::int64_t>(*delays[i - 1]));
    }
    std::ranges::sort(changes);
    return changes;
}

std::vector<std::int64_t> sorted(const DelayChanges& recorded) {
    std::vector<std::int64_t> changes;
    recorded.changes().for_each(
        [&](std::int64_t value, std::uint64_t count) { changes.insert(changes.end(), count, value); });
    return changes;
}

TEST(DelayChanges, AFrameThatWasOvertakenHasItsPairs) {
    // every third frame takes 950 longer, and three frames overtake it
    std::vector<std::optional<std::uint64_t>> delays;
    for (std::size_t i = 0; i < 30; ++i) delays.emplace_back(i % 3 == 0 ? 1000 : 50);
    std::vector<std::uint64_t> order(delays.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint64_t i) { return 300 * i + *delays[i]; });
    ASSERT_FALSE(std::ranges::is_sorted(order));
    DelayChanges changes;
    for (const std::uint64_t number : order) changes.record(Numbers{number}, *delays[number]);
    EXPECT_EQ(sorted(changes), expected(delays));
    EXPECT_EQ(changes.changes().min(), -950);
    EXPECT_EQ(changes.changes().max(), 950);
}

TEST(DelayChanges, ALostFrameHasNone) {
    DelayChanges changes;
    changes.record(Numbers{1, 2, 4}, 10);
    changes.record(Numbers{5}, 17);
    EXPECT_EQ(sorted(changes), (std::vector<std::int64_t>{0, 7}));
}

TEST(DelayChanges, WhateverTheOrderAndTheBurstsEveryPairCountsOnce) {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        std::vector<std::optional<std::uint64_t>> delays(200);
        const std::uint64_t lost = random() % 4, spread = 1 + random() % 40;
        std::vector<std::pair<std::uint64_t, std::uint64_t>> arrivals;
        for (std::uint64_t i = 0; i < delays.size(); ++i) {
            if (random() % 10 < lost) continue;
            arrivals.emplace_back(i + random() % spread, i);
        }
        std::ranges::stable_sort(arrivals, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
        DelayChanges changes;
        std::uint64_t end = 0;
        for (std::size_t i = 0; i < arrivals.size();) {
            Numbers run{arrivals[i++].second};
            // a longer run is above all frames before it
            const bool above = run.front() >= end;
            end = std::max(end, run.front() + 1);
            while (above && i < arrivals.size() && random() % 3 != 0 && arrivals[i].second >= end) {
                run.push_back(arrivals[i++].second);
                end = run.back() + 1;
            }
            const std::uint64_t delay = random() % 5000;
            for (const std::uint64_t number : run) delays[number] = delay;
            changes.record(run, delay);
        }
        ASSERT_EQ(sorted(changes), expected(delays)) << "round " << round;
    }
}

TEST(DelayChanges, AGapIsRememberedForAsManyNumbersAsAreKept) {
    DelayChanges changes;
    changes.record(Numbers{0}, 5);
    changes.record(Numbers{2}, 5);
    for (std::uint64_t number = 3; number < DelayChanges::kKept; ++number) changes.record(Numbers{number}, 5);
    changes.record(Numbers{1}, 9);
    EXPECT_EQ(changes.changes().total(), DelayChanges::kKept - 1);
    EXPECT_EQ(changes.changes().max(), 4);
    EXPECT_EQ(changes.changes().min(), -4);
}

}  // namespace
}  // namespace dutperf
