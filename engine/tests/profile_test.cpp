// SPDX-License-Identifier: Apache-2.0
// Checks the due times of rates that change against their definition, in steps of a nanosecond, and against the
// integral of the rate.
#include "pace/profile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "measure/part_delays.hpp"
#include "pace/schedule.hpp"
#include "trial/media.hpp"
#include "trial/trial.hpp"

namespace dutperf {
namespace {

using Segments = std::vector<Profile::Segment>;

const std::vector<Segments>& profiles() {
    static const std::vector<Segments> all{
        {{60'000'000'000, 1'000, 100'000}},
        {{60'000'000'000, 100'000, 1'000}},
        {{999'999'937, 0, 1'000'000'000}},
        {{999'999'937, 1'000'000'000, 0}},
        {{86'400'000'000'000, 0, 1'000'000'000}, {86'400'000'000'000, 1'000'000'000, 0}},
        {{1'000'000'007, 59'999, 59'999}},
        {{1'000'000, 1'000, 1'000}, {1'000'003, 0, 0}, {3'000'000, 50'000, 7}},
        {{500, 0, 0}, {1, 1'000'000'000, 999'999'999}, {17, 3, 1'000'000}},
        {{1'000'000'000, 1, 0}, {1'000'000'000, 0, 0}, {1'000'000'000, 0, 1}},
    };
    return all;
}

// The integral of the rate up to `ns`, in frames.
long double integral(const Segments& segments, std::uint64_t ns) {
    long double frames = 0, round = 0, left = 0;
    std::uint64_t length = 0;
    for (const auto& one : segments) {
        round += static_cast<long double>(one.from_fps + one.to_fps) * one.duration_ns / 2e9L;
        length += one.duration_ns;
    }
    left = ns % length;
    for (const auto& one : segments) {
        const long double time = std::min<long double>(left, one.duration_ns), from = one.from_fps, to = one.to_fps;
        frames += time * (from + (to - from) * time / one.duration_ns / 2) / 1e9L;
        left -= time;
    }
    return frames + round * (ns / length);
}

TEST(Profile, AFrameIsDueInTheLastNanosecondOfItsIntegral) {
    std::mt19937_64 random(5);
    for (const Segments& segments : profiles()) {
        const Profile profile(segments);
        std::uint64_t length = 0;
        for (const auto& one : segments) length += one.duration_ns;
        const std::uint64_t frames = profile.frames_before(3 * length);
        for (int i = 0; i < 20'000; ++i) {
            const std::uint64_t k = i < 100 ? i : random() % frames, due = profile.due_ns(k);
            ASSERT_LE(profile.frames_before(due), k) << "frame " << k << " of " << frames;
            ASSERT_GT(profile.frames_before(due + 1), k) << "frame " << k << " of " << frames;
        }
    }
}

TEST(Profile, CountsTheIntegralOfTheRate) {
    std::mt19937_64 random(7);
    for (const Segments& segments : profiles()) {
        const Profile profile(segments);
        std::uint64_t length = 0;
        for (const auto& one : segments) length += one.duration_ns;
        EXPECT_EQ(profile.frames_before(0), 0U);
        for (int i = 0; i < 10'000; ++i) {
            const std::uint64_t ns = random() % (3 * length);
            const long double expected = integral(segments, ns);
            const long double error = 1e-4L + expected * 1e-15L;
            ASSERT_GE(static_cast<long double>(profile.frames_before(ns)), expected - error) << ns;
            ASSERT_LE(static_cast<long double>(profile.frames_before(ns)), expected + 1 + error) << ns;
        }
    }
}

TEST(Profile, AConstantRateHasTheTimesOfOne) {
    const Profile profile({{1'000'000'000, 60'000, 60'000}});
    for (std::uint64_t k = 0; k < 200'000; ++k) ASSERT_EQ(profile.due_ns(k), due_after(k, 1'000'000'000, 60'000));
}

TEST(Profile, AScheduleListsTheSameTimes) {
    constexpr std::uint64_t kHz = 2'596'122'131;
    for (const Segments& segments : profiles()) {
        const Profile profile(segments);
        constexpr std::uint64_t kFrames = 10'000;
        for (const Share share : {Share{0, 1}, Share{2, 3}}) {
            Listed schedule(ProfileTimes(profile, kHz), kFrames, 32, share);
            schedule.start(1'000);
            for (std::uint64_t j = 0; !schedule.finished(); ++j) {
                const std::uint64_t due_ns = profile.due_ns(share.number(j));
                ASSERT_EQ(schedule.next_due(), 1'000 + ticks_of(due_ns, kHz)) << j;
                schedule.advance(1);
            }
            EXPECT_EQ(schedule.number(), share.among(kFrames));
        }
    }
}

TEST(Profile, NoFrameIsDueDuringAPause) {
    const Profile profile({{1'000'000, 10'000, 10'000}, {1'000'000, 0, 0}});
    EXPECT_EQ(profile.due_ns(9), 900'000U);
    EXPECT_EQ(profile.due_ns(10), 2'000'000U);
    EXPECT_EQ(profile.frames_before(1'000'000), 10U);
    EXPECT_EQ(profile.frames_before(2'000'000), 10U);
}

TrialSpec trial_of(const Profile& profile) {
    TrialSpec spec;
    spec.duration_ns = 10'000'000'000;
    spec.streams[0].emplace();
    spec.streams[0]->pattern = profile;
    spec.streams[0]->foreground.size = 64;
    return spec;
}

TEST(Profile, ATrialHasItsFramesAndItsHighestRate) {
    const TrialSpec spec = trial_of(Profile({{10'000'000'000, 0, 20'000}}));
    EXPECT_EQ(spec.intended(Direction::forward), 100'000U);
    EXPECT_EQ(spec.due_before(Direction::forward, 5'000'000'000), 25'000U);
    EXPECT_EQ(spec.due_ns(Direction::forward, 25'000), 5'000'000'000U);
    EXPECT_EQ(spec.streams[0]->highest_rate_fps(), 20'000U);
    EXPECT_EQ(spec.ends_of_parts(Direction::forward, 2), (std::vector<std::uint64_t>{25'000, 100'000}));
    EXPECT_EQ(spec.rate_ceiling_mbps(Direction::forward, 1), 20'000U * 84 * 8 * 11 / 10 / 1'000'000 + 1);
}

TEST(Profile, IsAtTheRateOfTheMediaForAShareOfItsTime) {
    constexpr std::uint64_t kLineRate = 1'488'095;
    const auto tolerance_ns = [](const Profile& profile) {
        const auto limit = media_limit(trial_of(profile), Direction::forward, 1000);
        return limit ? limit->tolerance_ns : 0;
    };
    EXPECT_NEAR(static_cast<double>(tolerance_ns(Profile({{10, 1'000, kLineRate}}))), 400.0,
                1.0);  // for 0.02 % of the time, 0.02 % of that
    EXPECT_EQ(tolerance_ns(Profile({{10, kLineRate, kLineRate}, {30, 1'000, 1'000}})), 500'000U);
    EXPECT_EQ(tolerance_ns(Profile({{10, 1'000, kLineRate / 2}})), 0U);
}

TEST(PartDelays, AreThoseOfTheFramesOfEachPart) {
    PartDelays delays({10, 10, 30});
    for (const std::uint64_t number : {0, 9, 10, 29, 3, 12}) delays.record(number, 100 + number);
    EXPECT_EQ(delays.delays()[0].total(), 3U);
    EXPECT_EQ(delays.delays()[0].max(), 109U);
    EXPECT_EQ(delays.delays()[1].total(), 0U);
    EXPECT_EQ(delays.delays()[2].total(), 3U);
    EXPECT_EQ(delays.delays()[2].min(), 110U);
}

}  // namespace
}  // namespace dutperf
