// SPDX-License-Identifier: Apache-2.0
#include "refdut/service_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace dutperf {
namespace {

struct Row {
    const char* name;
    std::uint64_t rate_fps;
    std::uint32_t room;
    std::vector<Ticks> arrivals;
    std::vector<Ticks> departures;  // of those that were not dropped
};

// Time in ms: a clock of 1000 Hz.
std::vector<Ticks> departures_of(const Row& row) {
    ServiceQueue<int> queue(1000, row.rate_fps, row.room);
    std::vector<Ticks> left;
    const auto pop_due = [&](Ticks now) {
        while (queue.next() && *queue.next() <= now) left.push_back(queue.pop().at);
    };
    for (const Ticks at : row.arrivals) {
        pop_due(at);
        queue.push(at, 0);
    }
    pop_due(1'000'000);
    return left;
}

TEST(ServiceQueue, KnownArrivalsHaveKnownDepartures) {
    const std::vector<Row> rows{
        {"one at a time", 100, 0, {0, 10, 20}, {10, 20, 30}},
        {"idle between", 100, 0, {0, 15, 100}, {10, 25, 110}},
        {"no room to wait", 100, 0, {0, 1, 9, 10}, {10, 20}},
        {"room for two", 100, 2, {0, 0, 0, 0, 0}, {10, 20, 30}},
        {"room again", 100, 1, {0, 0, 0, 10, 10}, {10, 20, 30}},
        {"no rounding adds up", 300, 9, {0, 0, 0, 0, 0, 0, 0}, {3, 6, 10, 13, 16, 20, 23}},
        {"serving takes no time", 0, 0, {5, 5, 7}, {5, 5, 7}},
    };
    for (const Row& row : rows) EXPECT_EQ(departures_of(row), row.departures) << row.name;
}

// The load of a throughput search: above the capacity, the queue absorbs exactly the frames that it has room for.
TEST(ServiceQueue, OverloadLosesExactlyWhatTheQueueCannotTake) {
    constexpr std::uint64_t kClock = 1'000'000'000, kCapacity = 20'000, kOffered = 25'000;
    ServiceQueue<int> queue(kClock, kCapacity, 100);
    std::uint64_t lost = 0, passed = 0;
    for (std::uint64_t k = 0; k < kOffered; ++k) {
        const Ticks now = due_after(k, kClock, kOffered);
        while (queue.next() && *queue.next() <= now) queue.pop(), ++passed;
        if (!queue.push(now, 0)) ++lost;
    }
    EXPECT_EQ(passed + lost + queue.size(), kOffered);
    EXPECT_EQ(passed, kCapacity - 1);  // the last arrival is 40 us before the end of the second
    EXPECT_EQ(queue.size(), 101U);
}

TEST(ServiceQueue, APauseDelaysWaitingFrames) {
    ServiceQueue<int> queue(1000, 100, 5);
    queue.push(0, 1);
    queue.push(2, 2);
    queue.pause(4, 104);
    EXPECT_EQ(queue.pop().at, 110U);
    EXPECT_EQ(queue.pop().at, 120U);
    queue.pause(200, 300);
    queue.push(250, 3);
    queue.pause(260, 280);  // within the pause: no effect
    EXPECT_EQ(queue.pop().at, 310U);
}

}  // namespace
}  // namespace dutperf
