// SPDX-License-Identifier: Apache-2.0
#include "measure/late_bursts.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace dutperf {
namespace {

constexpr std::uint64_t kStart = 1'000'000, kDuration = 250'000;  // a bin has 1,000 ticks
constexpr std::uint64_t kThreshold = 1'000, kLate = 300;

struct Call {
    std::uint64_t due, late;
    std::uint32_t count;
};

struct Row {
    const char* name;
    std::vector<Call> calls;
    std::map<std::size_t, std::uint64_t> bins;
};

LateBursts recorded(const std::vector<Call>& calls) {
    LateBursts burst;
    burst.start(kStart, kStart + kDuration, kThreshold, kLate);
    for (const Call& call : calls) burst.record(kStart + call.due, kStart + call.due + call.late, call.count);
    return burst;
}

std::map<std::size_t, std::uint64_t> filled(const MissingFrames::Bins& all) {
    std::map<std::size_t, std::uint64_t> bins;
    for (std::size_t bin = 0; bin < all.size(); ++bin) {
        if (all[bin] != 0) bins[bin] = all[bin];
    }
    return bins;
}

TEST(LateBursts, ByTheTable) {
    const std::vector<Row> rows{
        {"none late", {{0, 0, 1}, {500, kThreshold, 32}}, {}},
        {"one late call", {{500, 0, 1}, {600, kThreshold + 1, 7}, {700, 0, 1}}, {{0, 7}}},
        {"a burst ends when it has caught up",
         {{0, 5'000, 10}, {100, 2'000, 10}, {200, 900, 10}, {300, 101, 10}, {400, 100, 10}, {500, 900, 10}},
         {{0, 40}}},
        {"parts of the sending time",
         {{999, 2'000, 1}, {1'000, 2'000, 2}, {50'000, 2'000, 3}, {249'999, 2'000, 4}},
         {{0, 1}, {1, 2}, {50, 3}, {249, 4}}},
        {"the last part includes the end", {{kDuration, 2'000, 5}}, {{249, 5}}},
    };
    for (const Row& row : rows) EXPECT_EQ(filled(recorded(row.calls).bins()), row.bins) << row.name;
}

TEST(LateBursts, TheLongestBurst) {
    EXPECT_EQ(recorded({{0, 0, 9}}).longest(), 0U);
    // 3 and 4 in one burst, which ends before a punctual frame; then 5
    EXPECT_EQ(recorded({{0, 2'000, 3}, {100, 500, 4}, {200, 100, 32}, {300, 2'000, 5}}).longest(), 7U);
    EXPECT_EQ(recorded({{0, 2'000, 3}, {200, 0, 32}, {300, 2'000, 5}}).longest(), 5U);
}

TEST(LateBursts, FramesThatAreLateWithoutABurst) {
    const LateBursts frames = recorded({{0, kLate, 1},
                                        {100, kLate + 1, 2},
                                        {1'500, kThreshold, 4},
                                        {2'500, kThreshold + 1, 8},
                                        {2'600, kLate / 2 + 1, 16},
                                        {2'700, kLate / 2, 32},
                                        {2'800, kLate, 64},
                                        {3'400, 0, 512},
                                        {3'500, kLate + 1, 128},
                                        {3'600, 0, 256}});
    EXPECT_EQ(filled(frames.late_bins()), (std::map<std::size_t, std::uint64_t>{{0, 2}, {1, 4}, {2, 24}, {3, 128}}));
    EXPECT_EQ(frames.late_frames(), 158U);
    EXPECT_EQ(filled(frames.bins()), (std::map<std::size_t, std::uint64_t>{{2, 120}}));
}

TEST(LateBursts, WhenAFrameIsLate) {
    EXPECT_EQ(LateBursts::late_ns(10), 1'000'000U);
    EXPECT_EQ(LateBursts::late_ns(1'000), 500'000U);
    EXPECT_EQ(LateBursts::late_ns(1'000'000), 200'000U);
}

TEST(LateBursts, OfSeveralSenders) {
    LateBursts all = recorded({{0, 2'000, 3}});
    all.add(recorded({{0, 2'000, 4}, {5'000, 2'000, 1}}));
    EXPECT_EQ(all.frames(), 8U);
    EXPECT_EQ(all.longest(), 8U) << "their bursts may have come at once";
    EXPECT_EQ(filled(all.bins()), (std::map<std::size_t, std::uint64_t>{{0, 7}, {5, 1}}));
    EXPECT_EQ(filled(all.late_bins()), filled(all.bins()));
}

}  // namespace
}  // namespace dutperf
