// SPDX-License-Identifier: Apache-2.0
#include "measure/histogram.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace dutperf {
namespace {

TEST(Histogram, EmptyIsAllZeros) {
    const Histogram histogram;
    EXPECT_EQ(histogram.total(), 0U);
    EXPECT_EQ(histogram.quantile(0.5), 0U);
    EXPECT_EQ(histogram.min(), 0U);
}

TEST(Histogram, SmallValuesAreExact) {
    Histogram histogram;
    for (std::uint64_t value = 1; value <= 8000; ++value) histogram.record(value);
    EXPECT_EQ(histogram.quantile(0.5), 4000U);
    EXPECT_EQ(histogram.quantile(0.999), 7992U);
    EXPECT_EQ(histogram.quantile(1.0), 8000U);
}

TEST(Histogram, QuantilesAreWithinAnEighthOfAPerMilleOfTheSortedSample) {
    std::mt19937_64 random(3);
    std::lognormal_distribution<double> distribution(12, 3);
    Histogram histogram;
    std::vector<std::uint64_t> sample(50'000);
    for (auto& value : sample) {
        value = static_cast<std::uint64_t>(distribution(random));
        histogram.record(value);
    }
    std::ranges::sort(sample);
    for (const double share : {0.001, 0.01, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
        const auto exact = static_cast<double>(
            sample[static_cast<std::size_t>(std::ceil(share * static_cast<double>(sample.size()))) - 1]);
        EXPECT_NEAR(static_cast<double>(histogram.quantile(share)), exact, exact * 0.000125) << share;
    }
    EXPECT_EQ(histogram.min(), sample.front());
    EXPECT_EQ(histogram.max(), sample.back());
}

TEST(Histogram, QuantilesAreUnbiased) {
    constexpr std::uint64_t kFrom = 240'000'000;  // 100 ms at 2.4 GHz
    double error = 0;
    constexpr int kSamples = 2000;
    for (int i = 0; i < kSamples; ++i) {
        const std::uint64_t value = kFrom + static_cast<std::uint64_t>(i) * 977;
        Histogram histogram;
        histogram.record(kFrom - 100'000);
        histogram.record(value);
        histogram.record(2 * kFrom);
        error +=
            (static_cast<double>(histogram.quantile(0.5)) - static_cast<double>(value)) / static_cast<double>(value);
    }
    EXPECT_NEAR(error / kSamples, 0, 0.00001);
}

TEST(Histogram, AWeightIsSoManyRecords) {
    Histogram one, many;
    one.record(123'456, 1000);
    for (int i = 0; i < 1000; ++i) many.record(123'456);
    EXPECT_EQ(one.total(), many.total());
    EXPECT_EQ(one.quantile(0.99), many.quantile(0.99));
}

TEST(Histogram, HugeValuesKeepTheirMaximum) {
    Histogram histogram;
    histogram.record(std::uint64_t{1} << 50U);
    EXPECT_EQ(histogram.max(), std::uint64_t{1} << 50U);
}

TEST(Histogram, BucketsHoldEverySampleAndAreNarrow) {
    std::mt19937_64 random(5);
    std::lognormal_distribution<double> distribution(12, 3);
    Histogram histogram;
    std::vector<std::uint64_t> sample(20'000);
    for (auto& value : sample) {
        value = static_cast<std::uint64_t>(distribution(random));
        histogram.record(value);
    }
    const auto buckets = histogram.buckets();
    EXPECT_EQ(buckets.back().largest, histogram.max());
    std::uint64_t before = 0, seen = 0;
    for (const auto& bucket : buckets) {
        const auto within = [&](std::uint64_t value) {
            return value <= bucket.largest && (seen == 0 || value > before);
        };
        EXPECT_EQ(bucket.count, static_cast<std::uint64_t>(std::ranges::count_if(sample, within)));
        const auto smallest = std::ranges::min(
            sample, {}, [&](std::uint64_t value) { return within(value) ? value : std::uint64_t(-1); });
        EXPECT_LE(bucket.largest - smallest, smallest / 8 + 1);
        before = bucket.largest;
        seen += bucket.count;
    }
    EXPECT_EQ(seen, sample.size());
    EXPECT_TRUE(Histogram().buckets().empty());
}

TEST(SignedHistogram, RanksNegativeBeforePositive) {
    SignedHistogram histogram;
    for (const std::int64_t value : {-30, 5, -10, 20, 0, -20, 10}) histogram.record(value);
    EXPECT_EQ(histogram.total(), 7U);
    EXPECT_EQ(histogram.min(), -30);
    EXPECT_EQ(histogram.max(), 20);
    const std::vector<std::int64_t> sorted{-30, -20, -10, 0, 5, 10, 20};
    for (std::size_t rank = 1; rank <= sorted.size(); ++rank) {
        EXPECT_EQ(histogram.quantile(static_cast<double>(rank) / 7.0 - 0.01), sorted[rank - 1]) << rank;
    }
}

TEST(SignedHistogram, OneSignOnly) {
    SignedHistogram negative, positive;
    negative.record(-3);
    negative.record(-1);
    positive.record(2);
    EXPECT_EQ(negative.max(), -1);
    EXPECT_EQ(negative.quantile(0.5), -3);
    EXPECT_EQ(positive.min(), 2);
    EXPECT_EQ(SignedHistogram().quantile(0.5), 0);
}

}  // namespace
}  // namespace dutperf
