// SPDX-License-Identifier: Apache-2.0
// A stream that several senders share: together they send what one sender would, each frame at its time and with its
// content.
#include "pace/share.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "flow/flow_source.hpp"
#include "pace/schedule.hpp"
#include "trial/frame_source.hpp"

namespace dutperf {
namespace {

constexpr std::uint64_t kHz = 2'596'122'131;

class ShareOf : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ShareOf, SharesAreAllFramesOnce) {
    const std::uint64_t senders = GetParam();
    for (const std::uint64_t frames : {0U, 1U, 2U, 63U, 64U, 1000U}) {
        std::vector<int> times(frames);
        for (std::uint64_t sender = 0; sender < senders; ++sender) {
            const Share share{sender, senders};
            for (std::uint64_t j = 0; j < share.among(frames); ++j) ++times.at(share.number(j));
        }
        EXPECT_EQ(times, std::vector<int>(frames, 1));
    }
}

TEST_P(ShareOf, AShareIsTheSameFromAnyFrameOn) {
    const std::uint64_t senders = GetParam();
    for (std::uint64_t begin = 0; begin < 40; ++begin) {
        for (std::uint64_t sender = 0; sender < senders; ++sender) {
            const Share share{sender, senders}, later = share.from(begin);
            EXPECT_LT(later.first, senders);
            EXPECT_EQ((begin + later.first) % senders, sender);
            EXPECT_EQ(share.among(begin) + later.among(100), share.among(begin + 100));
        }
    }
}

// Runs through a schedule and records when each frame is due.
template <class S>
void record_due(S schedule, const Share& share, std::map<std::uint64_t, Ticks>& due) {
    schedule.start(1'000);
    for (std::uint64_t j = 0; !schedule.finished(); j = schedule.number()) {
        ASSERT_EQ(schedule.next_due(), schedule.due_of(j));
        ASSERT_EQ(schedule.due(schedule.next_due() - 1), 0U);
        ASSERT_GE(schedule.due(schedule.next_due()), 1U);
        ASSERT_TRUE(due.emplace(share.number(j), schedule.next_due()).second);
        schedule.advance(1);
    }
}

TEST_P(ShareOf, EachFrameIsDueWhenItIsInTheStream) {
    for (const std::uint64_t rate : {7UL, 59'999UL, 1'488'095UL, 148'809'523UL, 1'000'000'000UL}) {
        std::map<std::uint64_t, Ticks> due, expected;
        for (std::uint64_t sender = 0; sender < GetParam(); ++sender) {
            record_due(ConstantRate(kHz, rate, 1'000, 32, {sender, GetParam()}), {sender, GetParam()}, due);
        }
        record_due(ConstantRate(kHz, rate, 1'000, 32), {}, expected);
        EXPECT_EQ(due, expected) << rate;
    }
}

TEST_P(ShareOf, EachFrameIsDueWhenItIsInAStreamWhoseRateChanges) {
    for (const std::uint64_t before : {1UL, 10UL, 499UL, 500UL}) {
        const auto changing = [before](const Share& share) {
            return ChangingRate({kHz, 60'000, before, 32, share}, {kHz, 30'000, 1'000 - before, 32, share.from(before)},
                                before * kHz / 60'000 + 1, 32);
        };
        std::map<std::uint64_t, Ticks> due, expected;
        for (std::uint64_t sender = 0; sender < GetParam(); ++sender)
            record_due(changing({sender, GetParam()}), {sender, GetParam()}, due);
        record_due(changing({}), {}, expected);
        EXPECT_EQ(due, expected) << before;
    }
}

TEST_P(ShareOf, EachFrameIsDueWhenItIsInAPattern) {
    std::vector<Listed::Source> sources;
    sources.emplace_back(BurstTimes({.frames = 5, .within_fps = 90'000}, kHz, 60'000));
    sources.emplace_back(PoissonTimes({3, 1'000}, kHz / 60));
    for (const Listed::Source& source : sources) {
        std::map<std::uint64_t, Ticks> due, expected;
        for (std::uint64_t sender = 0; sender < GetParam(); ++sender) {
            const Share share{sender, GetParam()};
            Listed schedule(source, 1'000, 32, share);
            schedule.start(1'000);
            for (std::uint64_t j = 0; !schedule.finished(); j = schedule.number()) {
                due[share.number(j)] = schedule.next_due();
                schedule.advance(1);
            }
        }
        Listed whole(source, 1'000, 32);
        whole.start(1'000);
        for (; !whole.finished(); whole.advance(1)) expected[whole.number()] = whole.next_due();
        EXPECT_EQ(due, expected);
        EXPECT_EQ(due.size(), 1'000U);
    }
}

TEST_P(ShareOf, FieldsAreThoseOfTheStream) {
    for (const FieldMode mode : {FieldMode::fixed, FieldMode::increasing, FieldMode::decreasing, FieldMode::random}) {
        const FieldSpec spec{mode, 1, 7};
        Column all{}, all_second{}, first{}, second{};
        FieldPair(spec, spec, 9).fill(0, kMaxBurst, all, all_second);
        for (std::uint64_t sender = 0; sender < GetParam(); ++sender) {
            const Share share{sender, GetParam()};
            const FieldPair pair(spec, spec, 9, share.stride);
            constexpr std::uint64_t kBurst = 13;
            for (std::uint64_t j = 0; j < share.among(kMaxBurst); j += kBurst) {
                const std::uint64_t count = std::min(kBurst, share.among(kMaxBurst) - j);
                pair.fill(share.number(j), count, first, second);
                for (std::uint64_t i = 0; i < count; ++i) {
                    ASSERT_EQ(first[i], all[share.number(j + i)]);
                    ASSERT_EQ(second[i], all_second[share.number(j + i)]);
                }
            }
        }
    }
}

TEST_P(ShareOf, TheSameFramesAreTagged) {
    constexpr std::uint64_t kFrames = 10'000, kTags = 501, kFirst = 4'001, kStamp = 77;
    const StampChoice choice = StampChoice::tagged(kTags, kFirst, kFrames - kFirst, 5);
    std::uint64_t tags = 0;
    for (std::uint64_t sender = 0; sender < GetParam(); ++sender) {
        const Share share{sender, GetParam()};
        StampChoice own = choice;
        std::array<std::uint64_t, 32> stamps{};
        std::uint64_t of_sender = 0, counted = 0;
        for (std::uint64_t j = 0; j < share.among(kFrames); j += stamps.size()) {
            const auto count =
                static_cast<std::uint32_t>(std::min<std::uint64_t>(stamps.size(), share.among(kFrames) - j));
            counted += own.fill(share.number(j), share.stride, count, kStamp, stamps.data());
            for (std::uint32_t i = 0; i < count; ++i) {
                ASSERT_EQ(stamps[i], choice.chooses(share.number(j + i)) ? kStamp : 0) << share.number(j + i);
                of_sender += stamps[i] != 0 ? 1U : 0U;
            }
        }
        EXPECT_EQ(counted, of_sender);
        tags += of_sender;
    }
    EXPECT_EQ(tags, kTags);
}

TEST(StampChoice, VisitsTheFramesThatItChooses) {
    for (const std::uint64_t end : {0U, 99U, 100U, 101U, 500U, 999U, 1000U}) {
        for (const StampChoice& choice : {StampChoice::tagged(37, 100, 900, 5), StampChoice::every()}) {
            std::vector<std::uint64_t> chosen, visited;
            for (std::uint64_t k = 0; k < end; ++k) {
                if (choice.chooses(k)) chosen.push_back(k);
            }
            choice.for_each(end, [&](std::uint64_t k) { visited.push_back(k); });
            EXPECT_EQ(visited, chosen) << end;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Senders, ShareOf, testing::Values(1, 2, 3, 5, 16));

}  // namespace
}  // namespace dutperf
