// SPDX-License-Identifier: Apache-2.0
#include "measure/arrival_gaps.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace dutperf {
namespace {

struct Row {
    const char* name;
    std::vector<std::vector<std::uint64_t>> arrivals;  // of each receiver
    std::uint64_t first, last, from, to, in_gaps;      // of more than 25
};

TEST(ArrivalGaps, MergeByTheTable) {
    const std::vector<Row> rows{
        {"one receiver", {{10, 20, 50, 60}}, 10, 60, 20, 50, 30},
        {"one frame", {{10}}, 10, 10, 10, 10, 0},
        {"another receiver splits the gap of the first", {{10, 100}, {60, 61}}, 10, 100, 10, 60, 89},
        {"overlapping gaps", {{10, 20, 80}, {15, 30, 90}}, 10, 90, 30, 80, 50},
        {"one after the other", {{10, 20}, {70, 75}}, 10, 75, 20, 70, 50},
        {"a receiver without frames", {{10, 40, 50}, {}}, 10, 50, 10, 40, 30},
        {"the same arrivals", {{10, 40}, {10, 40}}, 10, 40, 10, 40, 30},
        {"a longer gap does not hide a shorter one", {{10, 60, 70, 100, 125, 175}}, 10, 175, 10, 60, 130},
    };
    for (const Row& row : rows) {
        std::vector<ArrivalGaps> receivers(row.arrivals.size(), ArrivalGaps(row.arrivals.size() == 1 ? 1 : 8, 25));
        std::vector<const ArrivalGaps*> all;
        for (std::size_t i = 0; i < receivers.size(); ++i) {
            for (const std::uint64_t arrival : row.arrivals[i]) receivers[i].note(arrival);
            all.push_back(&receivers[i]);
        }
        const MergedArrivals merged = merge_arrivals(all);
        EXPECT_EQ(merged.first, row.first) << row.name;
        EXPECT_EQ(merged.last, row.last) << row.name;
        EXPECT_EQ(merged.longest.from, row.from) << row.name;
        EXPECT_EQ(merged.longest.to, row.to) << row.name;
        EXPECT_EQ(merged.in_long_gaps, row.in_gaps) << row.name;
    }
}

// Even if few gaps are kept, a gap longer than each receiver's threshold is found exactly.
TEST(ArrivalGaps, OfSeveralReceiversMergeToThoseOfOne) {
    for (const unsigned seed : {1U, 2U, 3U, 4U}) {
        std::mt19937_64 random(seed);
        std::vector<ArrivalGaps> receivers(3, ArrivalGaps(16, 40'000));
        ArrivalGaps one(1, 40'000);
        std::uint64_t now = 1'000;
        for (int i = 0; i < 20'000; ++i) {
            const bool outage = random() % 2'000 == 0;
            now += outage ? 50'000 + random() % 50'000 : random() % 20;
            receivers[random() % receivers.size()].note(now);
            one.note(now);
        }
        std::vector<const ArrivalGaps*> all;
        std::uint64_t least = 0;
        for (const ArrivalGaps& receiver : receivers) {
            EXPECT_LT(receiver.kept().size(), 32U);
            least = std::max(least, receiver.threshold());
            all.push_back(&receiver);
        }
        const ArrivalGap expected = one.kept().front();
        ASSERT_GT(expected.length(), least);
        const MergedArrivals merged = merge_arrivals(all);
        EXPECT_EQ(merged.longest.length(), expected.length());
        EXPECT_EQ(merged.longest.from, expected.from);
        EXPECT_EQ(merged.first, one.first());
        EXPECT_EQ(merged.last, one.last());
        EXPECT_EQ(merged.in_long_gaps, one.in_long_gaps());
    }
}

TEST(ArrivalGaps, OfWhichSomeWereNotKeptAreNotAddedUp) {
    std::vector<ArrivalGaps> receivers(2, ArrivalGaps(2, 5));
    for (std::uint64_t at = 100; at < 1'000; at += 10) receivers[at / 10 % 2].note(at);
    EXPECT_EQ(merge_arrivals({receivers.data(), &receivers[1]}).in_long_gaps, std::nullopt);
}

}  // namespace
}  // namespace dutperf
