// SPDX-License-Identifier: Apache-2.0
// Checks the due times of flows that begin one after the other against the sum of their rates, and which flow begins
// when.
#include "pace/joining.hpp"

#include <gtest/gtest.h>

#include <random>

#include "flow/frame_groups.hpp"
#include "pace/schedule.hpp"

namespace dutperf {
namespace {

struct Joined {
    std::uint64_t rate_fps;
    std::uint32_t flows;
    std::uint64_t apart_ns;
};

const std::vector<Joined>& examples() {
    static const std::vector<Joined> all{
        {1'000, 4, 500'000'000},
        {1, 3, 700'000'000},
        {999'983, 1'000, 1'000'003},
        {7, 1'000'000, 1},
        {1'000'000'000, 2, 86'400'000'000'000},
        {60'000, 250, 20'000'000},
    };
    return all;
}

// The frames of all flows up to `ns`, each with an n-th of the rate since it began.
long double frames_of_flows(const Joined& of, std::uint64_t ns) {
    long double frames = 0;
    for (std::uint64_t flow = 0; flow < of.flows && flow * of.apart_ns < ns; ++flow)
        frames += static_cast<long double>(ns - flow * of.apart_ns) * of.rate_fps / of.flows / 1e9L;
    return frames;
}

TEST(Joining, TheRateIsThatOfTheFlowsThatHaveBegun) {
    for (const Joined& of : examples()) {
        const Joining joining(of.rate_fps, of.flows, of.apart_ns);
        for (const std::uint64_t stages : {1, 2, 3, 7}) {
            const std::uint64_t ns = std::min<std::uint64_t>(stages * of.apart_ns + of.apart_ns / 3, 100'000'000'000);
            EXPECT_NEAR(static_cast<double>(joining.frames_before(ns)), static_cast<double>(frames_of_flows(of, ns)),
                        1.001)
                << of.rate_fps << ' ' << ns;
        }
    }
}

TEST(Joining, AFrameIsCountedExactlyWhereItIsDue) {
    std::mt19937_64 random(3);
    for (const Joined& of : examples()) {
        const Joining joining(of.rate_fps, of.flows, of.apart_ns);
        const std::uint64_t all_ns =
            std::min<std::uint64_t>(of.flows * of.apart_ns, 1'000'000'000'000) + 60'000'000'000;
        const std::uint64_t frames = joining.frames_before(all_ns);
        for (int i = 0; i < 300; ++i) {
            const std::uint64_t k = random() % frames, due_ns = joining.due_ns(k);
            EXPECT_LE(joining.frames_before(due_ns), k);
            EXPECT_GT(joining.frames_before(due_ns + 1), k);
        }
    }
}

TEST(Joining, TheScheduleHasTheSameTimes) {
    const Joining joining(60'000, 250, 20'000'000);
    JoiningTimes source(joining, 1'000'000'000);
    FewTimes few;
    for (std::uint64_t k = 0; k < 400'000;) {
        const std::uint32_t count = source.next(few);
        for (std::uint32_t i = 0; i < count; ++i, ++k) ASSERT_EQ(few[i], joining.due_ns(k)) << k;
    }
}

// 4 flows of 1000 frames/s, one more every 0.5 s: 125, 250 and 375 frames of 1, 2 and 3 flows, and then all in turn.
TEST(Joining, EachFlowBeginsAtItsTimeAndThenHasItsShare) {
    const Joining joining(1'000, 4, 500'000'000);
    const std::vector<std::uint64_t> first = joining.first_frames();
    EXPECT_EQ(first, (std::vector<std::uint64_t>{0, 125, 375, 750}));
    const FlowChoice choice{.flows = 4, .begins = std::make_shared<const std::vector<std::uint64_t>>(first)};
    for (std::uint32_t flow = 0; flow < 4; ++flow) {
        EXPECT_EQ(choice.of(first[flow]), flow);
        EXPECT_EQ(joining.due_ns(first[flow]), flow * 500'000'000);
    }
    const FrameGroups groups(KindOrder(), {choice});
    EXPECT_EQ(groups.among(125), (std::vector<std::uint64_t>{125, 0, 0, 0}));
    EXPECT_EQ(groups.among(750), (std::vector<std::uint64_t>{375, 250, 125, 0}));
    EXPECT_EQ(groups.among(1'750), (std::vector<std::uint64_t>{625, 500, 375, 250}));
}

TEST(FrameGroups, ThoseFromOneFrameToAnotherAreThoseBeforeTheLastWithoutThoseBeforeTheFirst) {
    const FlowChoice three{.flows = 3}, at_random{.flows = 4, .random = true, .seed = 7};
    for (const FrameGroups& groups :
         {FrameGroups(KindOrder({0, 1, 0}), {three, FlowChoice{.flows = 5}}),
          FrameGroups(KindOrder({0, 1, 0}), {three, at_random}), FrameGroups(KindOrder({3, 1}, 99), {three, three})}) {
        for (const auto& [first, end] : {std::pair{0U, 0U}, {0U, 1'000U}, {17U, 18U}, {123U, 4'567U}}) {
            std::vector<std::uint64_t> counts = groups.among(first);
            groups.add(first, end, counts);
            EXPECT_EQ(counts, groups.among(end)) << first;
        }
    }
}

}  // namespace
}  // namespace dutperf
