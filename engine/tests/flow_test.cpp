// SPDX-License-Identifier: Apache-2.0
#include "flow/flow_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "frame/bytes.hpp"

namespace dutperf {
namespace {

constexpr FieldSpec kFixed{};

std::vector<std::uint16_t> values(const FieldSpec& spec, std::size_t count, std::size_t burst, std::uint64_t seed = 1) {
    const FieldPair pair(spec, kFixed, seed);
    Column first{}, second{};
    std::vector<std::uint16_t> all;
    for (std::size_t k = 0; k < count; k += burst) {
        const std::size_t now = std::min(burst, count - k);
        pair.fill(k, now, first, second);
        all.insert(all.end(), first.begin(), first.begin() + static_cast<std::ptrdiff_t>(now));
    }
    return all;
}

struct Row {
    const char* name;
    FieldSpec spec;
    std::vector<std::uint16_t> first_frames;
};

TEST(Flow, CountingFieldsByTheTable) {
    const std::vector<Row> rows{
        {"fixed holds min", {FieldMode::fixed, 7, 9}, {7, 7, 7, 7}},
        {"increasing wraps to min", {FieldMode::increasing, 7, 9}, {7, 8, 9, 7, 8}},
        {"decreasing wraps to max", {FieldMode::decreasing, 7, 9}, {9, 8, 7, 9, 8}},
        {"a range of one", {FieldMode::increasing, 5, 5}, {5, 5, 5}},
        {"the whole range", {FieldMode::decreasing, 0, 65535}, {65535, 65534}},
        {"random in a range of one", {FieldMode::random, 80, 80}, {80, 80, 80}},
    };
    for (const Row& row : rows) EXPECT_EQ(values(row.spec, row.first_frames.size(), 2), row.first_frames) << row.name;
}

TEST(Flow, TheSameFramesAtAnyBurst) {
    for (const FieldMode mode : {FieldMode::increasing, FieldMode::decreasing, FieldMode::random}) {
        const FieldSpec spec{mode, 1024, 1123};
        EXPECT_EQ(values(spec, 1000, 1), values(spec, 1000, 512));
        EXPECT_EQ(values(spec, 1000, 1), values(spec, 1000, 7));
    }
}

TEST(Flow, RandomDependsOnTheSeed) {
    const FieldSpec spec{FieldMode::random, 1, 49151};
    EXPECT_EQ(values(spec, 100, 32, 5), values(spec, 100, 32, 5));
    EXPECT_NE(values(spec, 100, 32, 5), values(spec, 100, 32, 6));
}

// Chi-square with 64 classes: 63 degrees of freedom; 120 is beyond the 99.99th percentile, and the seed is fixed.
TEST(Flow, RandomIsUniformAndReachesBothEnds) {
    const FieldSpec spec{FieldMode::random, 1024, 65535};
    const auto sample = values(spec, 640'000, 32);
    std::map<unsigned, double> classes;
    for (const std::uint16_t value : sample) ++classes[(value - 1024U) * 64 / spec.range()];
    double chi_square = 0;
    for (const auto& [at, count] : classes) chi_square += (count - 10'000) * (count - 10'000) / 10'000;
    EXPECT_EQ(classes.size(), 64U);
    EXPECT_LT(chi_square, 120);
    EXPECT_EQ(*std::ranges::min_element(sample), 1024);
    EXPECT_EQ(*std::ranges::max_element(sample), 65535);
}

TEST(Flow, BothRandomFieldsOfAPairAreIndependent) {
    const FieldSpec spec{FieldMode::random, 0, 1};
    const FieldPair pair(spec, spec, 9);
    Column first{}, second{};
    std::map<std::pair<int, int>, int> seen;
    for (std::uint64_t k = 0; k < 40'960; k += 512) {
        pair.fill(k, 512, first, second);
        for (std::size_t i = 0; i < 512; ++i) ++seen[{first[i], second[i]}];
    }
    EXPECT_EQ(seen.size(), 4U);
    for (const auto& [what, count] : seen) EXPECT_NEAR(count, 10'240, 400);  // 4.6 standard deviations
}

TEST(Flow, BothFieldsInTheFrameEqualTheColumns) {
    const std::vector<FieldSpec> specs{{FieldMode::fixed, 7, 7},
                                       {FieldMode::increasing, 1, 9},
                                       {FieldMode::decreasing, 300, 900},
                                       {FieldMode::random, 0, 65535},
                                       {FieldMode::random, 5, 600}};
    for (const FieldSpec& one : specs) {
        for (const FieldSpec& other : specs) {
            const FieldPair pair(one, other, 11, 3);
            Column first{}, second{};
            DoubleColumn both{};
            pair.fill(50, 100, first, second);
            pair.fill(50, 100, both);
            for (std::size_t i = 0; i < 100; ++i) {
                const auto* bytes = reinterpret_cast<const std::uint8_t*>(&both[i]);
                EXPECT_EQ(load_be16(bytes), first[i]);
                EXPECT_EQ(load_be16(bytes + 2), second[i]);
            }
        }
    }
}

}  // namespace
}  // namespace dutperf
