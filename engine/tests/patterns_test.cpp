// SPDX-License-Identifier: Apache-2.0
// Checks patterns against independent definitions: Poisson arrivals by statistics, bursts by 128-bit arithmetic.
#include "pace/patterns.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "pace/schedule.hpp"

namespace dutperf {
namespace {

constexpr std::uint64_t kHz = 2'596'122'131;  // odd on purpose: nothing divides it
constexpr Ticks kStart = 1'000'000'007;
constexpr double kStretch = 0x1p64;

// All times of a source, in its order.
std::vector<Ticks> all_of(Listed::Source source, std::uint64_t frames) {
    std::vector<Ticks> times;
    FewTimes few{};
    while (times.size() < frames) {
        const std::uint32_t count = std::visit([&](auto& one) { return one.next(few); }, source);
        times.insert(times.end(), few.begin(), few.begin() + count);
    }
    times.resize(frames);
    return times;
}

std::vector<Ticks> poisson(std::uint64_t seed, std::uint64_t frames, Ticks duration) {
    return all_of(PoissonTimes({seed, frames}, duration), frames);
}

// Kolmogorov-Smirnov distance between a sample and a distribution, times the square root of the sample size.
double distance(std::vector<double> sample, const std::function<double(double)>& distribution) {
    std::sort(sample.begin(), sample.end());
    const auto size = static_cast<double>(sample.size());
    double largest = 0;
    for (std::size_t i = 0; i < sample.size(); ++i) {
        const double share = distribution(sample[i]);
        largest = std::max({largest, share - static_cast<double>(i) / size, static_cast<double>(i + 1) / size - share});
    }
    return largest * std::sqrt(size);
}
// exceeded by one fair sample in 134,000; seeds are fixed, so the result does not change
constexpr double kMaxDistance = 2.5;

TEST(PoissonTimes, GapsAreExponential) {
    constexpr std::uint64_t kFrames = 200'000;
    constexpr Ticks kDuration = 60 * kHz;
    for (const std::uint64_t seed : {1UL, 2UL, 3UL, 99UL}) {
        const std::vector<Ticks> times = poisson(seed, kFrames, kDuration);
        std::vector<double> gaps;  // in units of the mean gap
        for (std::size_t i = 1; i < times.size(); ++i)
            gaps.push_back(static_cast<double>(times[i] - times[i - 1]) * kFrames / kDuration);
        EXPECT_LT(distance(gaps, [](double gap) { return 1 - std::exp(-gap); }), kMaxDistance) << seed;
        double product = 0;  // mean product of neighbours: 1 if gaps are independent, 2 if neighbours are equal
        for (std::size_t i = 1; i < gaps.size(); ++i) product += gaps[i] * gaps[i - 1];
        EXPECT_NEAR(product / static_cast<double>(gaps.size() - 1), 1, 5 * std::sqrt(3.0 / kFrames)) << seed;
    }
}

TEST(PoissonTimes, TimesAreUniform) {
    for (const std::uint64_t frames : {33UL, 1'000UL, 300'000UL}) {
        std::vector<double> shares;
        for (const Ticks time : poisson(5, frames, kHz)) shares.push_back(static_cast<double>(time) / kHz);
        EXPECT_LT(distance(shares, [](double share) { return share; }), kMaxDistance) << frames;
    }
}

// The counts in each thousandth of a trial have the right variance too, at any number of frames.
TEST(PoissonTimes, CountsInEqualPartsHaveTheRightVariance) {
    constexpr std::uint64_t kParts = 1000;
    for (const std::uint64_t frames : {20'000UL, 3'000'000UL, 892'857'120UL, 50'000'000'000UL}) {
        const UniformTimes times(17, frames);
        const double mean = static_cast<double>(frames) / kParts;
        double chi_square = 0;
        std::uint64_t before = 0;
        for (std::uint64_t part = 1; part <= kParts; ++part) {
            const std::uint64_t upto =
                part == kParts
                    ? frames
                    : times.before(static_cast<std::uint64_t>(kStretch / kParts * static_cast<double>(part)));
            const double off = static_cast<double>(upto - before) - mean;
            chi_square += off * off / mean;
            before = upto;
        }
        EXPECT_NEAR(chi_square, kParts - 1, 5 * std::sqrt(2.0 * (kParts - 1))) << frames;
    }
}

// A time that is computed alone equals the one from the full list.
TEST(UniformTimes, AnyTimeIsComputedAlone) {
    for (const std::uint64_t frames : {1UL, 2UL, 32UL, 33UL, 64UL, 1'000UL, 70'000UL}) {
        const UniformTimes times(23, frames);
        const std::vector<Ticks> scaled = poisson(23, frames, kHz);
        ASSERT_TRUE(std::is_sorted(scaled.begin(), scaled.end()));
        ASSERT_LT(scaled.back(), kHz);
        std::mt19937_64 random(3);
        for (int i = 0; i < 500; ++i) {
            const std::uint64_t k = random() % frames;
            ASSERT_EQ(PoissonTimes::scaled(times.at(k), kHz), scaled[k]) << k << " of " << frames;
            ASSERT_LE(times.before(times.at(k)), k);
            ASSERT_GT(times.before(times.at(k) + 1), k);
        }
        EXPECT_EQ(times.before(0), 0U);
    }
    EXPECT_EQ(UniformTimes(23, 0).before(1), 0U);
}

TEST(UniformTimes, AnotherSeedHasOtherTimes) {
    const std::vector<Ticks> one = poisson(1, 1'000, kHz);
    EXPECT_EQ(one, poisson(1, 1'000, kHz));
    EXPECT_NE(one, poisson(2, 1'000, kHz));
}

struct BurstCase {
    std::uint64_t frames, rate_fps, within_fps;
};

class BurstsOf : public testing::TestWithParam<BurstCase> {
protected:
    // By definition, in 128 bits.
    static Ticks due_of(std::uint64_t k) {
        const BurstCase& of = GetParam();
        const Wide begin = static_cast<Wide>(k / of.frames) * of.frames * kHz / of.rate_fps;
        return static_cast<Ticks>(of.within_fps == 0 ? begin
                                                     : begin + static_cast<Wide>(k % of.frames) * kHz / of.within_fps);
    }
    static BurstTimes made() {
        return {{.frames = GetParam().frames, .within_fps = GetParam().within_fps}, kHz, GetParam().rate_fps};
    }
};

TEST_P(BurstsOf, EveryFrameIsDueWhenTheDefinitionSays) {
    constexpr std::uint64_t kFrames = 50'000;
    const std::vector<Ticks> times = all_of(made(), kFrames);
    for (std::uint64_t k = 0; k < kFrames; ++k) ASSERT_EQ(times[k], due_of(k)) << k;
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
}

INSTANTIATE_TEST_SUITE_P(Bursts, BurstsOf,
                         testing::Values(BurstCase{2, 1, 0}, BurstCase{32, 60'000, 0}, BurstCase{33, 59'999, 0},
                                         BurstCase{7, 999'999'937, 0}, BurstCase{32, 60'000, 1'488'095},
                                         BurstCase{1'000, 7, 14'880'952}, BurstCase{100, 60'000, 60'000},
                                         BurstCase{1'000'000, 1'000'000, 1'000'001}));

struct ListCase {
    const char* name;
    std::uint64_t frames;
    std::uint32_t burst;
    Listed::Source source;
};

class ListOf : public testing::TestWithParam<ListCase> {};

// Frames are never early, due frames are never held back, and the result is the same at any burst.
TEST_P(ListOf, DueCountsExactlyTheFramesWhoseTimeHasCome) {
    const auto& [name, frames, burst, source] = GetParam();
    const std::vector<Ticks> times = all_of(source, frames);
    Listed schedule(source, frames, burst);
    schedule.start(kStart);
    std::mt19937_64 random(11);
    const Ticks longest = 1 + 3 * times.back() / frames * std::max<std::uint64_t>(1, burst / 2);
    for (Ticks now = kStart; !schedule.finished(); now += random() % longest) {
        const std::uint64_t k = schedule.number();
        std::uint32_t expected = 0;
        while (expected < burst && k + expected < frames && kStart + times[k + expected] <= now) ++expected;
        ASSERT_EQ(schedule.due(now), expected) << k;
        ASSERT_EQ(schedule.next_due(), kStart + times[k]) << k;
        const std::uint32_t taken = expected < 2 ? expected : expected - static_cast<std::uint32_t>(random() % 2);
        schedule.advance(taken);
        for (std::uint64_t one = k; one < k + taken; ++one)
            ASSERT_EQ(schedule.due_of(one), kStart + times[one]) << "of the last burst";
    }
    EXPECT_EQ(schedule.number(), frames);
    EXPECT_EQ(schedule.due(~Ticks{0}), 0U);
}

// A sender that is hopelessly late sends burst by burst.
TEST_P(ListOf, NeverMoreThanABurst) {
    const auto& [name, frames, burst, source] = GetParam();
    Listed schedule(source, frames, burst);
    schedule.start(0);
    for (std::uint64_t left = frames; left != 0; left -= std::min<std::uint64_t>(left, burst)) {
        ASSERT_EQ(schedule.due(~Ticks{0}), std::min<std::uint64_t>(left, burst));
        schedule.advance(static_cast<std::uint32_t>(std::min<std::uint64_t>(left, burst)));
    }
    EXPECT_TRUE(schedule.finished());
}

std::vector<ListCase> lists() {
    std::vector<ListCase> cases;
    for (const std::uint32_t burst : {1U, 7U, 32U, 512U}) {
        for (const std::uint64_t frames : {1UL, 31UL, 5'000UL}) {
            cases.push_back({"poisson", frames, burst, PoissonTimes({3, frames}, kHz)});
            cases.push_back(
                {"bursts at once", frames, burst, BurstTimes({.frames = 100, .within_fps = 0}, kHz, 60'000)});
            cases.push_back(
                {"bursts at a rate", frames, burst, BurstTimes({.frames = 40, .within_fps = 1'488'095}, kHz, 60'000)});
        }
    }
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Lists, ListOf, testing::ValuesIn(lists()));

}  // namespace
}  // namespace dutperf
