// SPDX-License-Identifier: Apache-2.0
#include "measure/tester_time.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace dutperf {
namespace {

TEST(TesterTime, StepsSayHowManyFramesHaveMore) {
    TesterTime time;
    time.record(3, 90);
    time.record(1000, 9);
    time.record(300'000, 1);
    const auto steps = time.steps();
    ASSERT_EQ(steps.size(), 3U);
    EXPECT_EQ(steps[0].ticks, 3U);
    EXPECT_EQ(steps[0].frames, 10U);
    EXPECT_GE(steps[1].ticks, 1000U);
    EXPECT_LE(steps[1].ticks, 1125U);
    EXPECT_EQ(steps[1].frames, 1U);
    EXPECT_EQ(steps[2].ticks, 300'000U);
    EXPECT_EQ(steps[2].frames, 0U);
}

TEST(TesterTimes, AFewFramesThatWereHeldUpDoNotMoveTheQuantilesBelowThem) {
    Histogram delays;
    TesterTime receiving;
    delays.record(50, 99'950);
    delays.record(8000, 50);
    receiving.record(2, 99'950);
    receiving.record(8000, 50);
    const TesterShare share = TesterTimes({}, receiving).share_of(delays);
    EXPECT_EQ(share.p50, 2U);
    EXPECT_EQ(share.p99, 2U);
    EXPECT_EQ(share.p999, 2U);
    EXPECT_EQ(share.max, 7952U);
}

TEST(TesterTimes, AStallThatHeldUpManyMovesThem) {
    Histogram delays;
    TesterTime receiving;
    delays.record(50, 70'000);
    for (std::uint64_t i = 1; i <= 30'000; ++i) delays.record(50 + i);  // polled at once
    receiving.record(2, 70'000);
    receiving.record(30'000, 30'000);
    const TesterShare share = TesterTimes({}, receiving).share_of(delays);
    EXPECT_EQ(share.p50, 2U);
    EXPECT_NEAR(static_cast<double>(share.p999), 29'900, 10);
}

// The bound is right for whatever the tester did.
TEST(TesterTimes, TheDutsOwnQuantilesAreNeverSmallerThanTheFigureWithoutTheShare) {
    std::mt19937 random(5);
    for (int round = 0; round < 60; ++round) {
        std::lognormal_distribution<double> own_time(round % 7, 2), dut_time(4, 1);
        Histogram measured, true_delays;
        SignedHistogram measured_changes, true_changes;
        TesterTime sending, receiving;
        std::int64_t last = 0, last_true = 0;
        for (int i = 0; i < 3000; ++i) {
            const auto sent = static_cast<std::uint64_t>(own_time(random)), came = random() % (sent + 1),
                       dut = static_cast<std::uint64_t>(dut_time(random));
            sending.record(sent, 1);
            receiving.record(came, 1);
            measured.record(dut + random() % (sent + 1) + random() % (came + 1));
            true_delays.record(dut);
            const auto now = static_cast<std::int64_t>(dut + sent + came), now_true = static_cast<std::int64_t>(dut);
            if (i > 0) {
                measured_changes.record(now - last);
                true_changes.record(now_true - last_true);
            }
            last = now;
            last_true = now_true;
        }
        const TesterTimes times(sending, receiving);
        const TesterShare share = times.share_of(measured);
        EXPECT_GE(true_delays.quantile(0.5) + share.p50, measured.quantile(0.5));
        EXPECT_GE(true_delays.quantile(0.99) + share.p99, measured.quantile(0.99));
        EXPECT_GE(true_delays.quantile(0.999) + share.p999, measured.quantile(0.999));
        EXPECT_GE(true_delays.max() + share.max, measured.max());
        const TesterChange moved = times.share_of(measured_changes);
        EXPECT_GE(true_changes.max() + static_cast<std::int64_t>(moved.max), measured_changes.max());
        EXPECT_LE(true_changes.min() - static_cast<std::int64_t>(moved.min), measured_changes.min());
        EXPECT_LE(std::abs(true_changes.quantile(0.5) - measured_changes.quantile(0.5)),
                  static_cast<std::int64_t>(moved.p50));
    }
}

TEST(TesterTimes, NoDelaysHaveNoShare) {
    EXPECT_EQ(TesterTimes({}, {}).share_of(Histogram()).p999, 0U);
    EXPECT_EQ(TesterTimes({}, {}).share_of(SignedHistogram()).max, 0U);
}

}  // namespace
}  // namespace dutperf
