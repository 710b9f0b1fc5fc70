// SPDX-License-Identifier: Apache-2.0
#include "measure/sequence_window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace dutperf {
namespace {

using Arrival = SequenceWindow::Arrival;

TEST(SequenceWindow, InOrderReorderedDuplicate) {
    SequenceWindow window(10);
    EXPECT_EQ(window.insert(0), Arrival::in_order);
    EXPECT_EQ(window.insert(3), Arrival::in_order);  // a gap is not reordering
    EXPECT_EQ(window.insert(1), Arrival::reordered);
    EXPECT_EQ(window.insert(1), Arrival::duplicate);
    EXPECT_EQ(window.insert(3), Arrival::duplicate);
    EXPECT_EQ(window.insert(9), Arrival::in_order);
}

// Against the obvious implementation, with losses, duplicates and reordering; also through a window that slides.
TEST(SequenceWindow, AgreesWithASetOfAllNumbers) {
    constexpr std::uint64_t kFrames = 200'000;
    for (const std::uint64_t largest : {std::uint64_t{1} << 26U, std::uint64_t{4096}}) {
        SequenceWindow window(kFrames, {}, largest);
        std::set<std::uint64_t> seen;
        std::uint64_t end = 0;
        std::mt19937_64 random(largest);
        for (std::uint64_t base = 0; base < kFrames; base += random() % 3) {
            const std::uint64_t back = std::min<std::uint64_t>(base, random() % 1000 < 50 ? random() % 2000 : 0);
            const std::uint64_t number = base - back;
            const Arrival expected = number >= end           ? Arrival::in_order
                                     : seen.contains(number) ? Arrival::duplicate
                                                             : Arrival::reordered;
            ASSERT_EQ(window.insert(number), expected) << number << " after " << end;
            seen.insert(number);
            end = std::max(end, number + 1);
        }
    }
}

// Runs with and without gaps, inserted at once if they are above all other numbers, compared with inserting them one by
// one.
TEST(SequenceWindow, ExtendingEqualsInsertingEachInOrder) {
    constexpr std::uint64_t kFrames = 100'000;
    for (const std::uint64_t largest : {std::uint64_t{1} << 26U, std::uint64_t{4096}, std::uint64_t{64}}) {
        SequenceWindow window(kFrames, {}, largest), one_by_one(kFrames, {}, largest);
        std::mt19937_64 random(largest);
        std::uint64_t end = 0;
        std::size_t extended = 0, with_gaps = 0;
        for (std::vector<std::uint64_t> run; end < kFrames; end = std::max(end, run.back() + 1)) {
            const std::uint64_t jump = random() % 4 == 0 ? random() % 300 : 0,
                                back = random() % 4 == 0 ? std::min<std::uint64_t>(end, random() % 300) : 0;
            const std::uint64_t first = std::min(end + jump - back, kFrames - 1), most = 1 + random() % 200,
                                gap = 1 + random() % 3;
            run.clear();
            for (std::uint64_t number = first; run.size() < most && number < kFrames; number += 1 + random() % gap)
                run.push_back(number);
            const bool fits = first >= end && (run.back() / 64 - first / 64 < largest / 64 || largest >= kFrames),
                       follows = first == end && run.back() - first + 1 == run.size();
            const bool done = window.extend(run);
            ASSERT_EQ(done, fits || follows) << first << " to " << run.back() << " after " << end;
            extended += done ? 1U : 0U;
            with_gaps += done && !follows ? 1U : 0U;
            for (const std::uint64_t number : run) {
                const Arrival expected = one_by_one.insert(number);
                if (done) {
                    ASSERT_EQ(expected, Arrival::in_order);
                } else {
                    ASSERT_EQ(window.insert(number), expected) << number;
                }
            }
        }
        EXPECT_GT(extended, 0U);
        EXPECT_GT(with_gaps, 0U);
        const MissingFrames &missing = window.missing_of(kFrames), &expected = one_by_one.missing_of(kFrames);
        EXPECT_GT(expected.total(), 0U);
        EXPECT_EQ(missing.total(), expected.total());
        EXPECT_EQ(missing.longest_run(), expected.longest_run());
        EXPECT_EQ(missing.first(), expected.first());
        EXPECT_EQ(missing.last(), expected.last());
    }
}

TEST(SequenceWindow, AJumpBeyondTheWindowClearsIt) {
    SequenceWindow window(1'000'000, {}, 1024);
    for (std::uint64_t number = 0; number < 2000; ++number) EXPECT_EQ(window.insert(number), Arrival::in_order);
    EXPECT_EQ(window.insert(500'000), Arrival::in_order);
    EXPECT_EQ(window.insert(499'999), Arrival::reordered);
    EXPECT_EQ(window.insert(0), Arrival::duplicate);  // too old to classify: never counted twice
}

MissingFrames::Bounds even_bounds(std::uint64_t frames) {
    MissingFrames::Bounds bounds{};
    for (std::size_t bin = 0; bin < bounds.size(); ++bin) bounds[bin] = frames * (bin + 1) / bounds.size();
    return bounds;
}

// Compares the missing frames of the window with counting one by one the numbers below `sent` that are not in `came`.
void expect_missing(SequenceWindow& window, const std::set<std::uint64_t>& came, std::uint64_t sent,
                    const MissingFrames::Bounds& bounds) {
    MissingFrames::Bins bins{};
    std::uint64_t total = 0, first = 0, last = 0, run = 0, longest = 0;
    for (std::uint64_t number = 0; number < sent; ++number) {
        run = came.contains(number) ? 0 : run + 1;
        if (run == 0) continue;
        if (total++ == 0) first = number;
        last = number;
        longest = std::max(longest, run);
        std::size_t bin = 0;
        while (bin < bins.size() - 1 && number >= bounds[bin]) ++bin;
        ++bins[bin];
    }
    const MissingFrames& missing = window.missing_of(sent);
    EXPECT_EQ(missing.total(), total);
    EXPECT_EQ(missing.longest_run(), longest);
    EXPECT_EQ(missing.bins(), bins);
    if (total == 0) return;
    EXPECT_EQ(missing.first(), first);
    EXPECT_EQ(missing.last(), last);
}

struct Gap {
    std::uint64_t from, count;
};

class MissingIn : public testing::TestWithParam<std::vector<Gap>> {};

// With a bitmap of the whole trial, and with windows that the gaps fill, cross and exceed.
TEST_P(MissingIn, EveryMissingFrameIsCounted) {
    constexpr std::uint64_t kFrames = 10'000, kSent = 9'990;
    for (const std::uint64_t largest :
         {std::uint64_t{1} << 26U, std::uint64_t{4096}, std::uint64_t{128}, std::uint64_t{64}}) {
        SequenceWindow window(kFrames, even_bounds(kFrames), largest);
        std::set<std::uint64_t> came;
        for (std::uint64_t number = 0; number < kSent; ++number) {
            const auto lost = [&](const Gap& gap) { return number >= gap.from && number - gap.from < gap.count; };
            if (std::ranges::any_of(GetParam(), lost)) continue;
            window.insert(number);
            came.insert(number);
        }
        expect_missing(window, came, kSent, even_bounds(kFrames));
    }
}

INSTANTIATE_TEST_SUITE_P(Gaps, MissingIn,
                         testing::Values(std::vector<Gap>{}, std::vector<Gap>{{0, 1}}, std::vector<Gap>{{9'989, 1}},
                                         std::vector<Gap>{{0, 9'990}}, std::vector<Gap>{{63, 2}, {127, 66}, {5'000, 1}},
                                         std::vector<Gap>{{0, 64}, {128, 64}}, std::vector<Gap>{{100, 5'000}},
                                         std::vector<Gap>{{9'000, 990}}, std::vector<Gap>{{1, 4'095}, {4'097, 130}},
                                         std::vector<Gap>{{0, 9'989}}));

// Late frames are not missing as long as the window still holds their number; duplicates have no effect.
TEST(MissingFrames, LateAndDuplicateFramesAreNotMissing) {
    constexpr std::uint64_t kFrames = 50'000;
    for (const std::uint64_t largest : {std::uint64_t{1} << 26U, std::uint64_t{1024}}) {
        SequenceWindow window(kFrames, even_bounds(kFrames), largest);
        std::set<std::uint64_t> came;
        std::mt19937_64 random(largest);
        for (std::uint64_t base = 0; base < kFrames; base += 1 + (random() % 10 == 0 ? random() % 200 : 0)) {
            const std::uint64_t number = base - std::min<std::uint64_t>(base, random() % 4 == 0 ? random() % 900 : 0);
            if (window.insert(number) != Arrival::duplicate) came.insert(number);
        }
        expect_missing(window, came, kFrames, even_bounds(kFrames));
    }
}

// Unsent frames are not lost; the trial may have ended early.
TEST(MissingFrames, OnlyFramesThatWereSentCanBeMissing) {
    SequenceWindow window(1'000'000, even_bounds(1'000'000));
    EXPECT_EQ(window.missing_of(0).total(), 0U);
    SequenceWindow started(1'000'000, even_bounds(1'000'000));
    for (std::uint64_t number = 0; number < 100; ++number) started.insert(number);
    EXPECT_EQ(started.missing_of(100).total(), 0U);
}

}  // namespace
}  // namespace dutperf
