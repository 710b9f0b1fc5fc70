// SPDX-License-Identifier: Apache-2.0
#include "trial/capture.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace dutperf {
namespace {

constexpr std::size_t kLongest = 100;

CaptureSpec spec_of(std::uint64_t first, std::uint64_t damaged) {
    CaptureSpec spec;
    spec.most = {first, damaged, 0, 0};
    return spec;
}

TEST(CaptureBuffer, KeepsTheMostOfEachKindAndCountsTheRest) {
    CaptureBuffer buffer(spec_of(2, 3), kLongest);
    const std::array<std::uint8_t, 60> frame{1, 2, 3};
    EXPECT_TRUE(buffer.take(CapturedAs::first, frame.data(), frame.size(), 5));
    EXPECT_TRUE(buffer.take(CapturedAs::first, frame.data(), frame.size(), 6));
    EXPECT_FALSE(buffer.take(CapturedAs::first, frame.data(), frame.size(), 7));
    for (Ticks at = 10; at < 15; ++at) buffer.take(CapturedAs::damaged, frame.data(), frame.size(), at);
    buffer.take(CapturedAs::unexpected, frame.data(), frame.size(), 20);  // not asked for: not counted either
    ASSERT_EQ(buffer.kept().size(), 5U);
    EXPECT_EQ(buffer.kept()[4].at, 12U);
    EXPECT_EQ(buffer.bytes_of(buffer.kept()[4])[1], 2);
    EXPECT_EQ(buffer.left_out(), (CaptureCounts{1, 2, 0, 0}));
}

TEST(CaptureBuffer, CountsWhatHasNoRoom) {
    CaptureBuffer buffer(spec_of(0, 3), kLongest);
    const std::vector<std::uint8_t> frame(140);  // longer than was expected
    for (Ticks at = 0; at < 3; ++at) buffer.take(CapturedAs::damaged, frame.data(), frame.size(), at);
    EXPECT_EQ(buffer.kept().size(), 2U);
    EXPECT_EQ(buffer.left_out(), (CaptureCounts{0, 1, 0, 0}));
}

TEST(WriteCapture, SaysWhyItCannot) { EXPECT_NE(write_capture("/proc/nowhere/a.pcapng", {"left", "right"}, {}), ""); }

}  // namespace
}  // namespace dutperf
