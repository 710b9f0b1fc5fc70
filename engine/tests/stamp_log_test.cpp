// SPDX-License-Identifier: Apache-2.0
#include "trial/stamp_log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace dutperf {
namespace {

using Stamps = std::vector<StampLog::Stamp>;
using Delays = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

StampsMatched matched(const Stamps& left, const Stamps& arrived, Delays& delays) {
    return match_stamps(left, arrived, [&](auto number, auto delay_ns) { delays.emplace_back(number, delay_ns); });
}

TEST(MatchStamps, EachFrameGetsItsOwnDelayInTheOrderOfArrival) {
    Delays delays;
    const auto counts = matched({{3, 300}, {1, 100}, {2, 200}}, {{2, 290}, {1, 350}, {3, 301}}, delays);
    EXPECT_EQ(delays, (Delays{{2, 90}, {1, 250}, {3, 1}}));
    EXPECT_EQ(counts.both, 3U);
    EXPECT_EQ(counts.no_transmit + counts.impossible, 0U);
}

TEST(MatchStamps, LostFramesAndCopiesHaveNoDelay) {
    Delays delays;
    const auto counts = matched({{1, 100}, {2, 200}, {7, 700}}, {{1, 150}, {1, 160}, {7, 800}, {7, 801}}, delays);
    EXPECT_EQ(delays, (Delays{{1, 50}, {7, 100}}));
    EXPECT_EQ(counts.both, 2U);
}

TEST(MatchStamps, AFrameWithoutAStampOfItsLeavingIsCountedAndHasNoDelay) {
    Delays delays;
    const auto counts = matched({{1, 100}}, {{0, 150}, {1, 160}, {2, 170}, {2, 171}}, delays);  // 2: twice
    EXPECT_EQ(delays, (Delays{{1, 60}}));
    EXPECT_EQ(counts.no_transmit, 2U);
}

TEST(MatchStamps, AnArrivalBeforeTheLeavingIsImpossible) {
    Delays delays;
    const auto counts = matched({{1, 100}, {2, 200}}, {{1, 99}, {2, 200}}, delays);
    EXPECT_EQ(delays, (Delays{{1, 0}, {2, 0}}));
    EXPECT_EQ(counts.impossible, 1U);
}

TEST(MatchStamps, AnArrivalBeforeTheLeavingByTheErrorOfTheClocksIsPossible) {
    std::uint64_t largest_ns = 0;
    const auto counts = match_stamps(
        {{1, 100}, {2, 200}}, {{1, 90}, {2, 189}},
        [&](auto, auto delay_ns) { largest_ns = std::max(largest_ns, delay_ns); }, 10);
    EXPECT_EQ(largest_ns, 0U);
    EXPECT_EQ(counts.impossible, 1U);
}

}  // namespace
}  // namespace dutperf
