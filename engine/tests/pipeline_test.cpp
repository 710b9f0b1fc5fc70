// SPDX-License-Identifier: Apache-2.0
// The reference DUT in virtual time: its configured properties hold exactly, to the frame and to the tick.
#include "refdut/pipeline.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace dutperf {
namespace {

constexpr std::uint64_t kClock = 1'000'000'000;  // ticks are ns
constexpr Ticks kMs = 1'000'000, kSpacing = 50'000;

struct TestBuffers {
    using Frame = int;
    int held = 0;
    std::set<int> corrupted;
    void release(Frame) { --held; }
    std::optional<Frame> copy(Frame frame) {
        ++held;
        return frame;
    }
    void corrupt(Frame frame, std::uint64_t) { corrupted.insert(frame); }
};

struct Bench {
    TestBuffers buffers;
    Pipeline<TestBuffers> pipeline;
    std::vector<Pipeline<TestBuffers>::Departure> out;

    explicit Bench(const Properties& properties) : pipeline(buffers, properties, kClock) {}
    Bench(const Properties& forward, const Properties& reverse) : pipeline(buffers, {forward, reverse}, kClock) {}

    // Offers `count` frames of one direction, `kSpacing` apart from `from` on, each of its own flow unless `flow` is
    // given.
    void offer(int count, Ticks from = kMs, std::size_t direction = 0, std::optional<std::uint64_t> flow = {}) {
        for (int k = 0; k < count; ++k) {
            const Ticks now = from + static_cast<Ticks>(k) * kSpacing;
            pipeline.advance(now, out);
            ++buffers.held;
            pipeline.arrive(now, k, direction, flow.value_or(static_cast<std::uint64_t>(k)));
        }
    }
    void finish() { pipeline.advance(std::uint64_t{1} << 50U, out); }

    [[nodiscard]] std::uint64_t lost(Loss loss, std::size_t direction = 0) const {
        return pipeline.counts(direction).lost[static_cast<std::size_t>(loss)];
    }
    [[nodiscard]] std::vector<int> left() const {
        std::vector<int> frames;
        for (const auto& one : out) frames.push_back(one.frame);
        return frames;
    }
    [[nodiscard]] Ticks delay(std::size_t i) const { return out[i].due - out[i].arrived; }
};

std::vector<int> counting(int count) {
    std::vector<int> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

TEST(Pipeline, WithoutPropertiesEverythingPassesAtOnce) {
    Bench run({});
    run.offer(1000);
    run.finish();
    EXPECT_EQ(run.left(), counting(1000));
    for (std::size_t i = 0; i < 1000; ++i) EXPECT_EQ(run.delay(i), 0U);
    EXPECT_EQ(run.pipeline.held(0), 0U);
}

// Two flows are known, three in turn are not: of those, each frame meets a flow that was evicted just before.
TEST(Pipeline, AFrameOfAnUnknownFlowIsServedLonger) {
    for (const std::uint64_t flows : {2, 3}) {
        Bench run({.capacity_fps = 1'000, .flow_cache = 2, .flow_miss_ns = kMs / 4});
        for (int k = 0; k < 60; ++k) run.offer(1, kMs, 0, static_cast<std::uint64_t>(k) % flows);
        run.finish();
        ASSERT_EQ(run.out.size(), 60U);
        const std::uint64_t misses = flows == 2 ? 2 : 60;
        EXPECT_EQ(run.delay(59), 60 * kMs + misses * kMs / 4);
    }
}

TEST(Pipeline, EveryNthIsExact) {
    Bench run({.extra_delay = {.every = 100},
               .extra_delay_ns = 7 * kMs,
               .loss = {.every = 10},
               .duplicate = {.every = 30},
               .bit_error = {.every = 7}});
    run.offer(2100);
    run.finish();
    EXPECT_EQ(run.lost(Loss::every_nth), 210U);
    EXPECT_EQ(run.lost(Loss::random), 0U);
    EXPECT_EQ(run.out.size(), 2100U - 210 + run.pipeline.counts(0).duplicated);
    EXPECT_EQ(run.pipeline.counts(0).duplicated, 0U);  // every 30th is also a 10th
    EXPECT_EQ(run.pipeline.counts(0).corrupted, 300U - 30);
    EXPECT_EQ(run.pipeline.counts(0).delayed, 0U);
}

TEST(Pipeline, DuplicatesFollowTheirOriginals) {
    Bench run({.duplicate = {.every = 3}});
    run.offer(7);
    run.finish();
    EXPECT_EQ(run.left(), (std::vector{0, 1, 2, 2, 3, 4, 5, 5, 6}));
    EXPECT_TRUE(run.out[3].copy);
    EXPECT_EQ(run.pipeline.counts(0).duplicated, 2U);
    EXPECT_EQ(run.pipeline.counts(0).reordered, 0U);
}

TEST(Pipeline, AReorderedFrameArrivesAfterTheNext) {
    Bench run({.reorder = {.every = 3}});
    run.offer(7);
    run.finish();
    EXPECT_EQ(run.left(), (std::vector{0, 1, 3, 2, 4, 6, 5}));
    EXPECT_EQ(run.pipeline.counts(0).reordered, 2U);
}

TEST(Pipeline, ACopyOfAReorderedFrameIsOnlyADuplicate) {
    Bench run({.extra_delay = {.every = 4},
               .extra_delay_ns = kSpacing + 1,
               .duplicate = {.every = 4},
               .reorder = {.every = 4}});
    run.offer(6);
    run.finish();
    EXPECT_EQ(run.left(), (std::vector{0, 1, 2, 4, 3, 3, 5}));
    EXPECT_EQ(run.pipeline.counts(0).duplicated, 1U);
    EXPECT_EQ(run.pipeline.counts(0).reordered, 1U);
}

TEST(Pipeline, TheLastFrameLeavesInOrderAfterATimeout) {
    Bench run({.reorder = {.every = 3}});
    run.offer(3);
    run.finish();
    EXPECT_EQ(run.left(), counting(3));
    EXPECT_EQ(run.pipeline.counts(0).reordered, 0U);
}

TEST(Pipeline, ExtraDelayOfEveryNthReorders) {
    Bench run({.delay_ns = kMs, .extra_delay = {.every = 4}, .extra_delay_ns = 3 * kSpacing + 1});
    run.offer(8);
    run.finish();
    EXPECT_EQ(run.left(), (std::vector{0, 1, 2, 4, 5, 6, 3, 7}));
    EXPECT_EQ(run.pipeline.counts(0).delayed, 2U);
    EXPECT_EQ(run.pipeline.counts(0).reordered, 1U);
    for (std::size_t i = 0; i < 8; ++i)
        EXPECT_EQ(run.delay(i), kMs + (run.out[i].frame % 4 == 3 ? 3 * kSpacing + 1 : 0));
}

TEST(Pipeline, RatiosAreAsConfiguredAndReproducible) {
    constexpr int kFrames = 200'000;
    const Properties properties{.seed = 1,
                                .loss = {.ratio_ppb = 10'000'000},
                                .duplicate = {.ratio_ppb = 20'000'000},
                                .reorder = {.ratio_ppb = 5'000'000},
                                .bit_error = {.ratio_ppb = 1'000'000}};
    Bench run(properties), again(properties), other({.seed = 2, .loss = {.ratio_ppb = 10'000'000}});
    for (Bench* one : {&run, &again, &other}) {
        one->offer(kFrames);
        one->finish();
    }
    const auto within = [](std::uint64_t count, double expected) {
        EXPECT_NEAR(static_cast<double>(count), expected, 5 * std::sqrt(expected));
    };
    within(run.lost(Loss::random), 0.01 * kFrames);
    within(run.pipeline.counts(0).duplicated, 0.02 * 0.99 * kFrames);
    within(run.pipeline.counts(0).reordered, 0.005 * 0.99 * kFrames);
    within(run.buffers.corrupted.size(), 0.001 * 0.99 * kFrames);
    EXPECT_EQ(run.left(), again.left());
    EXPECT_NE(run.left(), other.left());
    EXPECT_EQ(run.out.size(), kFrames - run.lost(Loss::random) + run.pipeline.counts(0).duplicated);
    EXPECT_EQ(static_cast<std::size_t>(run.buffers.held), run.out.size()) << "lost frames were released";
}

struct Moments {
    double mean = 0, deviation = 0;
};

Moments moments_of(const Bench& run) {
    Moments moments;
    const auto count = static_cast<double>(run.out.size());
    for (std::size_t i = 0; i < run.out.size(); ++i) moments.mean += static_cast<double>(run.delay(i)) / count;
    for (std::size_t i = 0; i < run.out.size(); ++i)
        moments.deviation += std::pow(static_cast<double>(run.delay(i)) - moments.mean, 2) / count;
    moments.deviation = std::sqrt(moments.deviation);
    return moments;
}

TEST(Pipeline, JitterHasTheConfiguredMoments) {
    Bench normal({.delay_ns = 10 * kMs, .jitter = Jitter::normal, .jitter_ns = kMs}),
        exponential({.delay_ns = kMs, .jitter = Jitter::exponential, .jitter_ns = kMs});
    for (Bench* run : {&normal, &exponential}) {
        run->offer(100'000);
        run->finish();
    }
    EXPECT_NEAR(moments_of(normal).mean, 10.0 * kMs, 0.02 * kMs);
    EXPECT_NEAR(moments_of(normal).deviation, kMs, 0.02 * kMs);
    EXPECT_NEAR(moments_of(exponential).mean, 2.0 * kMs, 0.02 * kMs);
    EXPECT_NEAR(moments_of(exponential).deviation, kMs, 0.03 * kMs);
    EXPECT_GT(normal.pipeline.counts(0).reordered, 1000U) << "frames are delayed independently";
}

TEST(Pipeline, CapacityIsSharedByDirectionsAndDroppedAtTheTail) {
    Bench run({.capacity_fps = 10'000, .queue_frames = 10});  // half of what is offered
    run.offer(1000);
    run.finish();
    EXPECT_EQ(run.lost(Loss::queue), 1000U - run.out.size());
    EXPECT_EQ(run.out.size(), 499U + 11);  // 499 served by the last arrival at 49.95 ms, and 11 inside then
    for (std::size_t i = 1; i < run.out.size(); ++i) EXPECT_EQ(run.out[i].due - run.out[i - 1].due, 100'000U);
}

TEST(Pipeline, OneFlowHasOneCoreAndManyHaveAll) {
    const Properties properties{.capacity_fps = 1000, .queue_frames = 10, .cores = 4};
    Bench fixed(properties), random(properties);
    fixed.offer(2000, kMs, 0, 12345);
    random.offer(2000);
    fixed.finish();
    random.finish();
    EXPECT_NEAR(static_cast<double>(fixed.out.size()), 110, 1);
    EXPECT_NEAR(static_cast<double>(random.out.size()), 440, 20);
}

TEST(Pipeline, AStallHoldsFramesAndOverflowsTheQueue) {
    Bench run({.capacity_fps = 0, .queue_frames = 19});
    run.pipeline.stall_for({.after_ns = 10 * kMs, .duration_ns = 2 * kMs});
    run.offer(400);  // 20 ms
    run.finish();
    EXPECT_EQ(run.lost(Loss::queue), 20U);  // of the 40 that arrive in 2 ms
    EXPECT_EQ(run.out.size(), 380U);
    for (const auto& one : run.out)
        EXPECT_EQ(one.due, one.arrived < 11 * kMs || one.arrived >= 13 * kMs ? one.arrived : 13 * kMs);
}

TEST(Pipeline, AResetLosesHeldAndArrivingFrames) {
    Bench run({.delay_ns = kMs});
    run.offer(10);
    run.pipeline.reset_for({.after_ns = 5 * kMs, .duration_ns = 2 * kMs});
    run.offer(400, 10 * kMs);
    run.finish();
    EXPECT_EQ(run.lost(Loss::reset), 19U + 40);  // those due later than the reset, and those that arrive in its 2 ms
    EXPECT_EQ(run.out.size(), 351U);
    EXPECT_TRUE(
        std::ranges::none_of(run.out, [](const auto& one) { return one.due > 15 * kMs && one.arrived < 17 * kMs; }));
    EXPECT_EQ(run.pipeline.held(0), 0U);
}

// Of originals alone: received = forwarded + lost + held.
TEST(Pipeline, ACopyThatIsDelayedIsNotHeld) {
    Bench run({.delay_ns = 1'000 * kMs, .duplicate = {.every = 1}});
    run.offer(10);
    run.pipeline.advance(500 * kMs, run.out);
    EXPECT_EQ(run.pipeline.held(0), 10U);
    run.finish();
    EXPECT_EQ(run.out.size(), 20U);
    EXPECT_EQ(run.pipeline.held(0), 0U);
}

TEST(Pipeline, DirectionsAreCountedSeparately) {
    Bench run({.loss = {.every = 2}});
    run.offer(10, kMs, 0);
    run.offer(4, 100 * kMs, 1);
    run.finish();
    EXPECT_EQ(run.lost(Loss::every_nth, 0), 5U);
    EXPECT_EQ(run.lost(Loss::every_nth, 1), 2U);
}

TEST(Pipeline, DirectionsMayHavePropertiesOfTheirOwn) {
    Bench run({.loss = {.every = 5}}, {.delay_ns = kMs});
    run.offer(10, kMs, 0);
    run.offer(10, 100 * kMs, 1);
    run.finish();
    EXPECT_EQ(run.lost(Loss::every_nth, 0), 2U);
    EXPECT_EQ(run.lost(Loss::every_nth, 1), 0U);
    for (std::size_t i = 0; i < run.out.size(); ++i) EXPECT_EQ(run.delay(i), run.out[i].direction == 0 ? 0U : kMs);
}

// What is served already passes a busy core, and has its direction's other properties.
TEST(Pipeline, AFrameMadeByTheDutPassesNoCore) {
    Bench run({.capacity_fps = 1, .queue_frames = 0}, {.delay_ns = kMs, .loss = {.every = 2}});
    run.offer(1);
    run.buffers.held += 2;
    for (const Ticks now : {3 * kMs, 4 * kMs}) run.pipeline.accept_served(now, kMs, 7, 1);
    EXPECT_EQ(run.pipeline.held(1), 1U);
    run.pipeline.advance(5 * kMs, run.out);
    EXPECT_EQ(run.left(), std::vector<int>{7});
    EXPECT_EQ(run.out[0].arrived, kMs);
    EXPECT_EQ(run.out[0].due, 4 * kMs);
    EXPECT_EQ(run.lost(Loss::every_nth, 1), 1U);
    EXPECT_EQ(run.pipeline.held(0), 1U);
    EXPECT_EQ(run.pipeline.held(1), 0U);
}

}  // namespace
}  // namespace dutperf
