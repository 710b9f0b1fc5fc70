// SPDX-License-Identifier: Apache-2.0
// Additional frames: how many belong to a trial, and by which bytes they are recognised.
#include "trial/additional.hpp"

#include <gtest/gtest.h>

#include <array>

namespace dutperf {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(Additional, OneFollowsEverySoManyTestFrames) {
    const AdditionalFrames broadcast{.after_frames = 99};
    EXPECT_EQ(broadcast.among(98, kSecond), 0U);
    EXPECT_EQ(broadcast.among(99, kSecond), 1U);
    EXPECT_EQ(broadcast.among(9900, kSecond), 100U);
}

TEST(Additional, OneIsDueAtTheStartAndAfterEachInterval) {
    const AdditionalFrames query{.every_ns = kSecond};
    EXPECT_EQ(query.among(1, 1), 1U);
    EXPECT_EQ(query.among(1, kSecond), 1U);
    EXPECT_EQ(query.among(1, kSecond + 1), 2U);
    EXPECT_EQ(query.among(1, 60 * kSecond), 60U);
}

TEST(Additional, AFrameWithAllItsMarksIsRecognised) {
    const std::array<std::uint8_t, 16> frame{1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 8, 0, 7, 8};
    EXPECT_TRUE(has_marks({{.at = 0, .bytes = {1, 2}}, {.at = 5, .bytes = {6}}}, frame.data(), frame.size()));
    EXPECT_FALSE(has_marks({{.at = 0, .bytes = {1, 2}}, {.at = 4, .bytes = {6}}}, frame.data(), frame.size()));
    EXPECT_FALSE(has_marks({{.at = 15, .bytes = {8, 9}}}, frame.data(), frame.size()));  // beyond its end
    EXPECT_FALSE(has_marks({{.at = 0, .bytes = {1, 2}}}, frame.data(), 10));             // no frame
    EXPECT_FALSE(has_marks({}, frame.data(), frame.size()));
}

TEST(Additional, VlanTagsDoNotMoveMarks) {
    const std::array<std::uint8_t, 24> frame{1,    2,    0, 0, 0,    0, 0, 0,  0, 0, 0, 0,
                                             0x88, 0xA8, 0, 5, 0x81, 0, 0, 10, 8, 0, 7, 8};
    EXPECT_TRUE(has_marks({{.at = 0, .bytes = {1, 2}}, {.at = 12, .bytes = {8, 0, 7}}}, frame.data(), frame.size()));
    EXPECT_FALSE(has_marks({{.at = 12, .bytes = {0x88, 0xA8}}}, frame.data(), frame.size()));
}

}  // namespace
}  // namespace dutperf
