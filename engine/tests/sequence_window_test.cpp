// SPDX-License-Identifier: Apache-2.0
#include "measure/sequence_window.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace dutperf {
namespace {

using Arrival = SequenceWindow::Arrival;

TEST(SequenceWindow, InOrderOvertakenDuplicate) {
    SequenceWindow window(10);
    EXPECT_EQ(window.insert(0), Arrival::in_order);
    EXPECT_EQ(window.insert(3), Arrival::in_order);  // a gap is no reordering
    EXPECT_EQ(window.insert(1), Arrival::overtaken);
    EXPECT_EQ(window.insert(1), Arrival::duplicate);
    EXPECT_EQ(window.insert(3), Arrival::duplicate);
    EXPECT_EQ(window.insert(9), Arrival::in_order);
}

// Against the obvious implementation, with losses, duplicates and reordering; also through a window that slides.
TEST(SequenceWindow, AgreesWithASetOfAllNumbers) {
    constexpr std::uint64_t kFrames = 200'000;
    for (const std::uint64_t largest : {std::uint64_t{1} << 26U, std::uint64_t{4096}}) {
        SequenceWindow window(kFrames, largest);
        std::set<std::uint64_t> seen;
        std::uint64_t end = 0;
        std::mt19937_64 random(largest);
        for (std::uint64_t base = 0; base < kFrames; base += random() % 3) {
            const std::uint64_t back = std::min<std::uint64_t>(base, random() % 1000 < 50 ? random() % 2000 : 0);
            const std::uint64_t number = base - back;
            const Arrival expected = number >= end ? Arrival::in_order : seen.contains(number) ? Arrival::duplicate : Arrival::overtaken;
            ASSERT_EQ(window.insert(number), expected) << number << " after " << end;
            seen.insert(number);
            end = std::max(end, number + 1);
        }
    }
}

TEST(SequenceWindow, AJumpFartherThanTheWindowForgetsAllOfIt) {
    SequenceWindow window(1'000'000, 1024);
    for (std::uint64_t number = 0; number < 2000; ++number) EXPECT_EQ(window.insert(number), Arrival::in_order);
    EXPECT_EQ(window.insert(500'000), Arrival::in_order);
    EXPECT_EQ(window.insert(499'999), Arrival::overtaken);
    EXPECT_EQ(window.insert(0), Arrival::duplicate);  // too old to tell: never counted twice
}

}  // namespace
}  // namespace dutperf
