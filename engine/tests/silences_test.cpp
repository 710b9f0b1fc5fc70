// SPDX-License-Identifier: Apache-2.0
#include "measure/silences.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace dutperf {
namespace {

struct Row {
    const char* name;
    std::vector<std::vector<std::uint64_t>> arrivals;  // of each receiver
    std::uint64_t first, last, from, to;
};

TEST(Silences, JointOnesByTheTable) {
    const std::vector<Row> rows{
        {"one receiver", {{10, 20, 50, 60}}, 10, 60, 20, 50},
        {"one frame", {{10}}, 10, 10, 10, 10},
        {"another receiver breaks the silence of the first", {{10, 100}, {60, 61}}, 10, 100, 10, 60},
        {"silent at once", {{10, 20, 80}, {15, 30, 90}}, 10, 90, 30, 80},
        {"one after the other", {{10, 20}, {70, 75}}, 10, 75, 20, 70},
        {"one that hears nothing", {{10, 40, 50}, {}}, 10, 50, 10, 40},
        {"at the same time", {{10, 40}, {10, 40}}, 10, 40, 10, 40},
    };
    for (const Row& row : rows) {
        std::vector<Silences> receivers(row.arrivals.size(), Silences(row.arrivals.size() == 1 ? 1 : 8));
        std::vector<const Silences*> all;
        for (std::size_t i = 0; i < receivers.size(); ++i) {
            for (const std::uint64_t arrival : row.arrivals[i]) receivers[i].note(arrival);
            all.push_back(&receivers[i]);
        }
        const JointArrivals joint = joined(all);
        EXPECT_EQ(joint.first, row.first) << row.name;
        EXPECT_EQ(joint.last, row.last) << row.name;
        EXPECT_EQ(joint.longest.from, row.from) << row.name;
        EXPECT_EQ(joint.longest.to, row.to) << row.name;
    }
}

// However few silences are kept: what is longer than what each has forgotten is found, to the tick.
TEST(Silences, OfSeveralReceiversAreThoseThatOneWouldHaveHeard) {
    for (const unsigned seed : {1U, 2U, 3U, 4U}) {
        std::mt19937_64 random(seed);
        std::vector<Silences> receivers(3, Silences(16));
        Silences one(1);
        std::uint64_t now = 1'000;
        for (int i = 0; i < 20'000; ++i) {
            const bool outage = random() % 2'000 == 0;
            now += outage ? 50'000 + random() % 50'000 : random() % 20;
            receivers[random() % receivers.size()].note(now);
            one.note(now);
        }
        std::vector<const Silences*> all;
        std::uint64_t least = 0;
        for (const Silences& receiver : receivers) {
            EXPECT_LT(receiver.kept().size(), 32U);
            least = std::max(least, receiver.least());
            all.push_back(&receiver);
        }
        const Silence expected = one.kept().front();
        ASSERT_GT(expected.length(), least);
        const JointArrivals joint = joined(all);
        EXPECT_EQ(joint.longest.length(), expected.length());
        EXPECT_EQ(joint.longest.from, expected.from);
        EXPECT_EQ(joint.first, one.first());
        EXPECT_EQ(joint.last, one.last());
    }
}

}  // namespace
}  // namespace dutperf
