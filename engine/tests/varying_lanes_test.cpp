// SPDX-License-Identifier: Apache-2.0
#include "flow/varying_lanes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "frame/random_bits.hpp"

namespace dutperf {
namespace {

constexpr std::size_t kNumbers = 64;
using Numbers = std::array<std::uint64_t, kNumbers>;
constexpr std::uint64_t kMost = (std::uint64_t{1} << 40U) - 1;

VaryingBits field(std::uint32_t bits, FieldMode mode, Number128 first, Number128 count, Number128 step = 1) {
    return {.bits = bits, .mode = mode, .first = first, .step = step, .count = count, .values = {}};
}

void expect_same(const VaryingBits& bits, const Numbers& numbers, const Numbers& seeds) {
    const auto lanes = VaryingLanes::of(bits);
    ASSERT_TRUE(lanes);
    alignas(kLanesAlignment) Numbers low{};
    lanes->fill(numbers.data(), seeds.data(), kNumbers, low.data());
    for (std::size_t i = 0; i < kNumbers; ++i) {
        const Number128 value = (Number128{lanes->high()} << 64U | low[i]) & bits.mask(),
                        wanted = bits.value(numbers[i], seeds[i]);
        ASSERT_EQ(static_cast<std::uint64_t>(value >> 64U), static_cast<std::uint64_t>(wanted >> 64U)) << numbers[i];
        ASSERT_EQ(static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(wanted)) << numbers[i];
    }
}

// SplitMix64 backwards.
std::uint64_t unmixed(std::uint64_t z) {
    const auto unshifted = [](std::uint64_t of, unsigned shift) {
        std::uint64_t all = of;
        for (unsigned done = shift; done < 64; done += shift) all = of ^ (all >> shift);
        return all;
    };
    const auto inverse = [](std::uint64_t odd) {
        std::uint64_t by = odd;
        for (int i = 0; i < 6; ++i) by *= 2 - odd * by;
        return by;
    };
    z = unshifted(z, 31) * inverse(0x94D049BB133111EBU);
    z = unshifted(z, 27) * inverse(0xBF58476D1CE4E5B9U);
    return unshifted(z, 30);
}

class VaryingLanesTest : public testing::Test {
protected:
    std::mt19937_64 random_{1};

    Numbers any(std::uint64_t most) {
        Numbers made{};
        for (std::uint64_t& one : made) one = random_() % most;
        return made;
    }
    void expect_same_of(const VaryingBits& bits) {
        expect_same(bits, any(kMost), any(~std::uint64_t{0}));
        Numbers edges{};
        for (std::size_t i = 0; i < kNumbers; ++i) edges[i] = i < kNumbers / 2 ? i : kMost - i;
        expect_same(bits, edges, any(~std::uint64_t{0}));
    }
};

TEST_F(VaryingLanesTest, HasTheValuesOfTheField) {
    for (const std::uint32_t bits : {1U, 8U, 16U, 20U, 32U, 63U, 64U}) {
        for (const std::uint64_t count : {0ULL, 1ULL, 2ULL, 3ULL, 7ULL, 256ULL, 64511ULL, 65536ULL, (1ULL << 31U) + 1,
                                          (1ULL << 32U) - 1, 1ULL << 40U, 1ULL << 63U}) {
            const std::uint64_t first = random_();
            if (count < 1ULL << 32U || count >= 1ULL << 40U) {
                for (const std::uint64_t step : {1ULL, 2ULL, 0xFFFFFFFFFFULL}) {
                    expect_same_of(field(bits, FieldMode::increasing, first, count, step));
                    expect_same_of(field(bits, FieldMode::decreasing, first, count, step));
                }
            }
            expect_same_of(field(bits, FieldMode::fixed, first, count));
            expect_same_of(field(bits, FieldMode::random, first, count));
        }
    }
}

TEST_F(VaryingLanesTest, HasIpv6Addresses) {
    const Number128 network = Number128{0x2001'0002'0000'8000U} << 64U;
    expect_same_of(field(128, FieldMode::increasing, network + 2, 1000));
    expect_same_of(field(128, FieldMode::decreasing, network + 1000, 1000));
    expect_same_of(field(128, FieldMode::random, network + 2, 65535));
    expect_same_of(field(128, FieldMode::increasing, network + 2, 0));
    expect_same_of(field(66, FieldMode::random, network + 2, std::uint64_t{1} << 63U));
}

// Values whose upper half varies, or for which lanes have no division.
TEST_F(VaryingLanesTest, LeavesOthersToTheField) {
    const Number128 all = ~std::uint64_t{0};
    for (const VaryingBits& one :
         {field(128, FieldMode::increasing, all - 5, 7), field(128, FieldMode::decreasing, 5, 7),
          field(128, FieldMode::increasing, 0, 0, Number128{1} << 64U), field(128, FieldMode::random, all, 2),
          field(128, FieldMode::random, 0, 0), field(64, FieldMode::random, 0, (std::uint64_t{1} << 32U) + 1),
          field(64, FieldMode::increasing, 0, (std::uint64_t{1} << 39U) + 1)})
        EXPECT_FALSE(VaryingLanes::of(one));
    EXPECT_TRUE(VaryingLanes::of(field(128, FieldMode::increasing, all - 6, 7)));
    EXPECT_TRUE(VaryingLanes::of(field(128, FieldMode::decreasing, 6, 7)));
    VaryingBits listed = field(16, FieldMode::increasing, 0, 0);
    listed.values = {5, 6};
    EXPECT_FALSE(VaryingLanes::of(listed));
    VaryingBits connected = field(16, FieldMode::increasing, 0, 0);
    connected.source = FieldSource::learned;
    EXPECT_FALSE(VaryingLanes::of(connected));
}

// The 64 random bits below the first ones decide whether a value is one greater.
TEST_F(VaryingLanesTest, DrawsWhereTheLowerBitsDecide) {
    constexpr std::uint64_t kCount = 49'151;
    int greater = 0;
    for (std::uint64_t quotient = 1; quotient < 2000; ++quotient) {
        // the largest bits whose product with the count is below the quotient times 2^64
        const auto bits = static_cast<std::uint64_t>(((Number128{quotient} << 64U) - 1) / kCount);
        Numbers numbers = any(kMost), seeds{};
        for (std::size_t i = 0; i < kNumbers; ++i) seeds[i] = random_();
        seeds[5] = unmixed(bits) - (numbers[5] + 1) * kGamma;
        ASSERT_EQ(random_bits(seeds[5], numbers[5]), bits);
        const VaryingBits one = field(16, FieldMode::random, 1, kCount);
        greater += one.value(numbers[5], seeds[5]) == quotient + 1 ? 1 : 0;
        expect_same(one, numbers, seeds);
    }
    EXPECT_GT(greater, 100);  // else none of these showed it
}

TEST(Remainder, IsExact) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 20'000; ++round) {
        const auto by = static_cast<std::uint32_t>(random() >> (32 + random() % 32));
        if (by == 0) continue;
        const std::uint64_t multiple = random() % ((kMost / by) + 1) * by;
        Numbers dividends{};
        for (std::size_t i = 0; i < kLanes; ++i)
            dividends[i] = std::min<std::uint64_t>(kMost, multiple + i - (multiple < 2 ? 0 : 2));
        Numbers left{};
        store_lanes(left.data(), Remainder(by).of(load_lanes(dividends.data())));
        for (std::size_t i = 0; i < kLanes; ++i) ASSERT_EQ(left[i], dividends[i] % by) << dividends[i] << " " << by;
    }
}

}  // namespace
}  // namespace dutperf
