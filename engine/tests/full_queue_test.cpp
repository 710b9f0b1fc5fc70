// SPDX-License-Identifier: Apache-2.0
// When a frame that finds the DUT's input queue full is a loss of the DUT.
#include "pace/full_queue.hpp"

#include <gtest/gtest.h>

namespace dutperf {
namespace {

constexpr std::uint64_t kClockHz = 1'000'000'000, kUs = 1'000, kMs = 1'000'000;

// A loop that turns every 10 us until `end`.
void run(FullQueue& queue, std::uint64_t from, std::uint64_t end) {
    for (std::uint64_t now = from; now <= end; now += 10 * kUs) queue.turn(now);
}

TEST(FullQueue, LetsEveryFrameWaitWhereItIsOff) {
    FullQueue queue;
    run(queue, kMs, 2 * kMs);
    EXPECT_FALSE(queue.is_dut_loss(0, 2 * kMs));
}

TEST(FullQueue, GivesAFrameAShortTime) {
    FullQueue queue;
    queue.use(kClockHz);
    run(queue, kMs, 2 * kMs);
    EXPECT_FALSE(queue.is_dut_loss(2 * kMs - 50 * kUs, 2 * kMs));
    EXPECT_TRUE(queue.is_dut_loss(2 * kMs - 51 * kUs, 2 * kMs));
}

TEST(FullQueue, WaitsAfterAStallOfTheSender) {
    FullQueue queue;
    queue.use(kClockHz);
    run(queue, kMs, 2 * kMs);
    queue.turn(2 * kMs + 200 * kUs);
    const std::uint64_t due = 2 * kMs;
    EXPECT_FALSE(queue.is_dut_loss(due, 2 * kMs + 300 * kUs));
    EXPECT_FALSE(queue.is_dut_loss(due, 2 * kMs + 200 * kUs + 2 * kMs)) << "ten times the stall";
    EXPECT_TRUE(queue.is_dut_loss(due, 2 * kMs + 201 * kUs + 2 * kMs));
}

TEST(FullQueue, LimitsTheGracePeriod) {
    FullQueue queue;
    queue.use(kClockHz);
    queue.turn(kMs);
    queue.turn(5 * kMs);
    EXPECT_FALSE(queue.is_dut_loss(kMs, 10 * kMs));
    EXPECT_TRUE(queue.is_dut_loss(kMs, 10 * kMs + 1));
}

}  // namespace
}  // namespace dutperf
