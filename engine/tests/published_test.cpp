// SPDX-License-Identifier: Apache-2.0
#include "trial/published.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "trial/trial_end.hpp"

namespace dutperf {
namespace {

struct Four {
    std::uint64_t a = 0, b = 0, c = 0, d = 0;
};

TEST(Published, IsReadWhileItsWriterIsPreempted) {
    Published<Four> value({1, 1, 1, 1});
    value.prepare({2, 2, 2, 2});  // the writer is preempted here: a reader that waited for it would never return
    EXPECT_EQ(value.read().a, 1U);
    value.publish();
    EXPECT_EQ(value.read().a, 2U);
}

TEST(Published, IsNeverReadTorn) {
    Published<Four> value;
    std::atomic<bool> over{false};
    std::thread writer([&] {
        for (std::uint64_t i = 1; i <= 200'000; ++i) {
            value.prepare({i, i, i, i});
            value.publish();
        }
        over = true;
    });
    std::uint64_t torn = 0, older = 0, last = 0;
    while (!over) {
        const Four one = value.read();
        torn += one.a != one.b || one.b != one.c || one.c != one.d ? 1U : 0U;
        older += one.a < last ? 1U : 0U;
        last = one.a;
    }
    writer.join();
    EXPECT_EQ(torn, 0U);
    EXPECT_EQ(older, 0U);
    EXPECT_EQ(value.read().d, 200'000U);
}

TEST(TrialEnd, AStopWinsWhicheverComesFirst) {
    for (const bool stop_first : {true, false}) {
        TrialEnd end;
        EXPECT_FALSE(end.has_come(~Ticks{0} - 1));
        if (stop_first) end.set_now();
        end.set_after_drain(1'000'000);  // by the loop of the last sender, which does not know of the stop
        EXPECT_EQ(end.has_come(999'999), stop_first);
        EXPECT_TRUE(end.has_come(1'000'000));
        if (!stop_first) end.set_now();
        EXPECT_TRUE(end.has_come(1));
    }
}

}  // namespace
}  // namespace dutperf
