// SPDX-License-Identifier: Apache-2.0
#include "pace/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace dutperf {
namespace {

constexpr std::uint64_t kHz = 2'596'122'131;  // odd on purpose: nothing divides it

struct Case {
    std::uint64_t rate;
    std::uint32_t burst;
};

class ScheduleOf : public testing::TestWithParam<Case> {};

// Steps sum exactly to the definition at any burst: no drift in an hour at any rate.
TEST_P(ScheduleOf, EveryFrameIsDueWhenTheDefinitionSays) {
    const auto [rate, burst] = GetParam();
    constexpr Ticks kStart = 1'000'000'007;
    ConstantRate schedule(kHz, rate, ~std::uint64_t{0}, burst);
    schedule.start(kStart);
    std::mt19937 random(7);
    for (int i = 0; i < 20'000; ++i) {
        ASSERT_EQ(schedule.next_due(), kStart + due_after(schedule.number(), kHz, rate)) << schedule.number();
        ASSERT_EQ(schedule.next_due(), schedule.due_of(schedule.number()));
        schedule.advance(1 + static_cast<std::uint32_t>(random() % burst));
    }
}

// A frame is never early, and due frames are never held back.
TEST_P(ScheduleOf, DueCountsExactlyTheFramesWhoseTimeHasCome) {
    const auto [rate, burst] = GetParam();
    ConstantRate schedule(kHz, rate, 5'000, burst);
    schedule.start(0);
    std::mt19937_64 random(11);
    for (Ticks now = 0; !schedule.finished(); now += random() % (1 + 3 * kHz / rate)) {
        std::uint64_t expected = 0;
        while (expected < burst && schedule.number() + expected < 5'000 &&
               due_after(schedule.number() + expected, kHz, rate) <= now)
            ++expected;
        ASSERT_EQ(schedule.due(now), expected);
        if (expected == 0) {
            ASSERT_GT(schedule.next_due(), now);
        }
        schedule.advance(static_cast<std::uint32_t>(expected));
    }
    EXPECT_EQ(schedule.number(), 5'000U);
}

INSTANTIATE_TEST_SUITE_P(Rates, ScheduleOf,
                         testing::Values(Case{1, 1}, Case{1, 32}, Case{3, 32}, Case{59'999, 32}, Case{60'000, 1},
                                         Case{1'488'095, 32}, Case{14'880'952, 64}, Case{148'809'523, 512},
                                         Case{1'000'000'000, 32}));

struct Change {
    std::uint64_t first_fps, then_fps, first_frames, then_frames;
    Ticks change;
    std::uint32_t burst;
};

class ScheduleWithAChange : public testing::TestWithParam<Change> {
protected:
    // The definition itself.
    static Ticks due_of(std::uint64_t k) {
        const Change& of = GetParam();
        return kStart + (k < of.first_frames ? due_after(k, kHz, of.first_fps)
                                             : of.change + due_after(k - of.first_frames, kHz, of.then_fps));
    }
    static ChangingRate made() {
        const Change& of = GetParam();
        ChangingRate schedule({kHz, of.first_fps, of.first_frames, of.burst},
                              {kHz, of.then_fps, of.then_frames, of.burst}, of.change, of.burst);
        schedule.start(kStart);
        return schedule;
    }
    static constexpr Ticks kStart = 1'000'000'007;
};

TEST_P(ScheduleWithAChange, EveryFrameIsDueWhenTheDefinitionSays) {
    ChangingRate schedule = made();
    const std::uint64_t frames = GetParam().first_frames + GetParam().then_frames;
    std::mt19937 random(7);
    for (std::uint64_t k = 0; k < frames; k = schedule.number()) {
        ASSERT_EQ(schedule.next_due(), due_of(k)) << k;
        ASSERT_EQ(schedule.due_of(k), due_of(k));
        schedule.advance(
            static_cast<std::uint32_t>(std::min<std::uint64_t>(1 + random() % GetParam().burst, frames - k)));
    }
    EXPECT_TRUE(schedule.finished());
}

// Also if a burst has frames from before and after the change.
TEST_P(ScheduleWithAChange, DueCountsExactlyTheFramesWhoseTimeHasCome) {
    ChangingRate schedule = made();
    const std::uint64_t frames = GetParam().first_frames + GetParam().then_frames;
    const std::uint64_t slower = std::min(GetParam().first_fps, GetParam().then_fps);
    std::mt19937_64 random(11);
    for (Ticks now = kStart; !schedule.finished(); now += random() % (1 + 3 * kHz / slower)) {
        std::uint64_t expected = 0;
        while (expected < GetParam().burst && schedule.number() + expected < frames &&
               due_of(schedule.number() + expected) <= now)
            ++expected;
        ASSERT_EQ(schedule.due(now), expected) << schedule.number();
        schedule.advance(static_cast<std::uint32_t>(expected));
    }
    EXPECT_EQ(schedule.number(), frames);
}

// A frame of the first rate is due at the change, soon after it, or just before it.
INSTANTIATE_TEST_SUITE_P(Changes, ScheduleWithAChange,
                         testing::Values(Change{1'000, 500, 1'000, 700, kHz, 32},
                                         Change{59'999, 30'000, 3'000, 2'000, kHz / 20, 32},
                                         Change{500, 1'488'095, 100, 5'000, kHz / 5, 64},
                                         Change{14'880'952, 7'440'476, 4'000, 4'000, 698'000, 512},
                                         Change{3, 7, 1, 10, 1, 1}, Change{60'000, 60'000, 40, 0, kHz, 8}));

class HourOf : public testing::TestWithParam<Case> {};

// Step by step through an hour: the due time is the exact one, rounded down to a tick, so no error has added up.
// Checked in 128 bits by multiplication alone.
TEST_P(HourOf, IsExactToTheTick) {
    const auto [rate, burst] = GetParam();
    const std::uint64_t frames = rate * 3600;
    ConstantRate schedule(kHz, rate, frames + 1, burst);
    schedule.start(0);
    for (std::uint64_t left = frames; left != 0; left -= std::min<std::uint64_t>(left, burst))
        schedule.advance(static_cast<std::uint32_t>(std::min<std::uint64_t>(left, burst)));
    EXPECT_EQ(schedule.next_due(), kHz * 3600);  // frame number `rate * 3600`
    EXPECT_EQ(schedule.due_of(frames), kHz * 3600);
    for (const std::uint64_t k : {frames / 7, frames / 2 + 1, frames - 1}) {
        const Wide exact = static_cast<Wide>(k) * kHz, due = schedule.due_of(k);
        EXPECT_LE(due * rate, exact) << k;
        EXPECT_GT((due + 1) * rate, exact) << k;
    }
}

INSTANTIATE_TEST_SUITE_P(Hours, HourOf,
                         testing::Values(Case{1, 1}, Case{7, 32}, Case{59'999, 32}, Case{60'000, 7},
                                         Case{1'488'095, 512}, Case{14'880'952, 512}));

TEST(Schedule, ExactAfterAnHourAtTheHighestRate) {
    EXPECT_EQ(due_after(999'999'937UL * 3600, kHz, 999'999'937), kHz * 3600);
}

}  // namespace
}  // namespace dutperf
