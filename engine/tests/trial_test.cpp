// SPDX-License-Identifier: Apache-2.0
#include "trial/trial.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "trial/stream_schedule.hpp"

namespace dutperf {
namespace {

constexpr std::uint64_t kDurationNs = 999'999'937;  // a prime

TrialSpec trial_of(std::uint64_t rate_fps, const Pattern& pattern) {
    TrialSpec spec;
    spec.seed = 7;
    spec.duration_ns = kDurationNs;
    spec.streams[0].emplace();
    spec.streams[0]->rate_fps = rate_fps;
    spec.streams[0]->pattern = pattern;
    return spec;
}

const std::vector<Pattern>& patterns() {
    static const std::vector<Pattern> all{Pattern{}, Poisson{}, Bursts{.frames = 32},
                                          Bursts{.frames = 100, .within_fps = 1'000'000'000},
                                          Bursts{.frames = 7, .within_fps = 60'001}};
    return all;
}

TEST(Trial, HasTheSameNumberOfFramesInEveryPattern) {
    for (const Pattern& pattern : patterns()) {
        for (const std::uint64_t rate : {1UL, 33UL, 59'999UL}) {
            const TrialSpec spec = trial_of(rate, pattern);
            EXPECT_EQ(spec.intended(Direction::forward), rate) << pattern.index();
            EXPECT_EQ(spec.due_before(Direction::forward, kDurationNs), rate);
            EXPECT_LT(spec.due_ns(Direction::forward, rate - 1), kDurationNs);
            EXPECT_EQ(spec.intended(Direction::reverse), 0U);
        }
    }
}

// A loss has the due time of its number: a frame counts as before a time exactly if it is due before it.
TEST(Trial, CountsFramesBeforeATimeByDueTime) {
    constexpr std::uint64_t kRate = 12'345;
    for (const Pattern& pattern : patterns()) {
        const TrialSpec spec = trial_of(kRate, pattern);
        std::vector<std::uint64_t> due;
        for (std::uint64_t k = 0; k < kRate; ++k) due.push_back(spec.due_ns(Direction::forward, k));
        ASSERT_TRUE(std::is_sorted(due.begin(), due.end())) << pattern.index();
        std::mt19937_64 random(5);
        for (int i = 0; i < 2000; ++i) {
            const std::uint64_t time = i % 2 == 0 ? random() % kDurationNs : due[random() % kRate] + random() % 2;
            const auto expected =
                static_cast<std::uint64_t>(std::lower_bound(due.begin(), due.end(), time) - due.begin());
            ASSERT_EQ(spec.due_before(Direction::forward, time), expected) << time << " pattern " << pattern.index();
        }
    }
}

// A stream that begins late and ends early is the same stream in a shorter trial, later.
TEST(Trial, AStreamSendsInItsInterval) {
    constexpr std::uint64_t kBeginNs = 123'456'789, kSendsNs = 500'000'003, kRate = 12'345;
    std::vector<Pattern> all = patterns();
    all.emplace_back(Profile({{.duration_ns = 70'000'001, .from_fps = 0, .to_fps = 20'000}}));
    all.emplace_back(
        Recorded(std::make_shared<const std::vector<std::uint64_t>>(std::vector<std::uint64_t>{0, 7, 900}), 100'003));
    for (const Pattern& pattern : all) {
        TrialSpec spec = trial_of(kRate, pattern), shorter = spec;
        spec.streams[0]->interval = {.begin_ns = kBeginNs, .sends_ns = kSendsNs, .grace_ns = {}};
        shorter.duration_ns = kSendsNs;
        const std::uint64_t frames = shorter.intended(Direction::forward);
        ASSERT_EQ(spec.intended(Direction::forward), frames);
        for (std::uint64_t k = 0; k < frames; ++k)
            ASSERT_EQ(spec.due_ns(Direction::forward, k), kBeginNs + shorter.due_ns(Direction::forward, k)) << k;
        for (const std::uint64_t within : {0UL, 1UL, 100'000'000UL, 333'333'333UL, kSendsNs}) {
            EXPECT_EQ(spec.due_before(Direction::forward, kBeginNs + within),
                      shorter.due_before(Direction::forward, within));
        }
        EXPECT_EQ(spec.due_before(Direction::forward, kBeginNs / 2), 0U);
        EXPECT_EQ(spec.due_before(Direction::forward, kDurationNs), frames);
        const std::vector<std::uint64_t> ends = spec.ends_of_parts(Direction::forward, 10);
        EXPECT_EQ(ends[0], 0U);
        EXPECT_GT(ends[1], 0U);
        EXPECT_EQ(ends[6], frames);
    }
}

TEST(Trial, ARateChangesAfterTheBeginningOfTheStream) {
    TrialSpec spec = trial_of(1'000, Pattern{});
    spec.streams[0]->interval = {.begin_ns = 200'000'000, .sends_ns = 500'000'000, .grace_ns = {}};
    spec.streams[0]->then = RateChange{.rate_fps = 10'000, .after_ns = 100'000'000};
    EXPECT_EQ(spec.intended(Direction::forward), 100U + 4'000U);
    EXPECT_EQ(spec.due_ns(Direction::forward, 99), 299'000'000U);
    EXPECT_EQ(spec.due_ns(Direction::forward, 100), 300'000'000U);
    EXPECT_EQ(spec.due_ns(Direction::forward, 101), 300'100'000U);
}

// A schedule that starts at the stream's beginning has the due times of the definition, here at a clock of 1 GHz.
TEST(Trial, SchedulesHaveTheDueTimesOfTheirStreams) {
    constexpr Ticks kStart = 1'000'000'007;
    constexpr std::uint64_t kRate = 12'345, kBeginNs = 123'456'789;
    std::vector<Pattern> all = patterns();
    all.emplace_back(Profile({{.duration_ns = 70'000'001, .from_fps = 0, .to_fps = 20'000}}));
    all.emplace_back(
        Recorded(std::make_shared<const std::vector<std::uint64_t>>(std::vector<std::uint64_t>{0, 7, 900}), 100'003));
    for (const Pattern& pattern : all) {
        for (const bool changes : {false, true}) {
            TrialSpec spec = trial_of(kRate, pattern);
            if (changes && !std::holds_alternative<std::monostate>(pattern)) continue;
            if (changes) spec.streams[0]->then = RateChange{.rate_fps = 54'321, .after_ns = 77'777'777};
            spec.streams[0]->interval = {.begin_ns = kBeginNs, .sends_ns = 500'000'003, .grace_ns = {}};
            AnySchedule made = schedule_of(spec, {Direction::forward, {}}, 1'000'000'000);
            const auto check = [&](auto& schedule) {
                schedule.start(kStart + kBeginNs);
                for (std::uint64_t k = 0; !schedule.finished(); schedule.advance(1), ++k) {
                    // after a change they are rounded up
                    const std::uint64_t late = changes && spec.due_ns(Direction::forward, k) >= kBeginNs + 77'777'777;
                    ASSERT_EQ(schedule.next_due(), kStart + spec.due_ns(Direction::forward, k) + late) << k;
                }
                EXPECT_EQ(schedule.number(), spec.intended(Direction::forward));
            };
            std::visit(check, made);
        }
    }
}

// Of three paths two send at one time.
TEST(Trial, SumsOverStreamsAreOfThoseThatSendTogether) {
    TrialSpec spec;
    spec.duration_ns = 100;
    spec.streams = PerDirection<std::optional<StreamSpec>>(3);
    for (auto& stream : spec.streams) stream.emplace();
    const auto rate = [](Direction path) { return std::uint32_t{10} << index_of(path); };
    const std::vector<Direction> all = spec.active();
    EXPECT_EQ(spec.most_at_once(all, rate), 70U);
    EXPECT_EQ(spec.most_at_once({}, rate), 0U);
    spec.streams[0]->interval = {.begin_ns = 0, .sends_ns = 50, .grace_ns = {}};
    spec.streams[1]->interval = {.begin_ns = 40, .sends_ns = 20, .grace_ns = {}};
    spec.streams[2]->interval = {.begin_ns = 60, .sends_ns = {}, .grace_ns = {}};
    EXPECT_EQ(spec.most_at_once(all, rate), 40U);
    EXPECT_TRUE(spec.send_together(all[0], all[1]));
    EXPECT_FALSE(spec.send_together(all[1], all[2]));
    EXPECT_FALSE(spec.send_together(all[2], all[0]));
}

TEST(Trial, EveryPathHasGeneratorsOfItsOwn) {
    std::set<std::uint64_t> seeds;
    for (std::size_t path = 0; path < kMostPaths; ++path) {
        for (int generator = 0; generator < 6; ++generator)
            seeds.insert(generator_seed(1, direction_at(path), static_cast<Generator>(generator)));
    }
    EXPECT_EQ(seeds.size(), 6 * kMostPaths);
}

TEST(Trial, DirectionsHaveArrivalsOfTheirOwn) {
    TrialSpec spec = trial_of(1'000, Poisson{});
    spec.streams[1] = spec.streams[0];
    EXPECT_NE(spec.due_ns(Direction::forward, 0), spec.due_ns(Direction::reverse, 0));
}

}  // namespace
}  // namespace dutperf
