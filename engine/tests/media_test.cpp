// SPDX-License-Identifier: Apache-2.0
#include "trial/media.hpp"

#include <gtest/gtest.h>

namespace dutperf {
namespace {

TrialSpec trial_of(std::uint64_t rate_fps, std::uint16_t size) {
    TrialSpec spec;
    spec.duration_ns = 60'000'000'000;
    spec.streams[0].emplace();
    spec.streams[0]->rate_fps = rate_fps;
    spec.streams[0]->foreground.size = size;
    return spec;
}

TEST(Media, ToleratesTheClockDifferenceAtLineRateOnly) {
    struct Row {
        std::uint64_t rate_fps;
        std::uint16_t size;
        std::uint32_t mbps;
        bool tolerated;
    };
    for (const Row& row :
         {Row{1'488'095, 64, 1000, true}, Row{1'487'799, 64, 1000, true}, Row{1'487'790, 64, 1000, false},
          Row{1'488'391, 64, 1000, true}, Row{1'488'400, 64, 1000, false}, Row{812'743, 1518, 10'000, true},
          Row{14'880'952, 64, 10'000, true}, Row{14'880'952, 64, 40'000, false}, Row{1'488'095, 64, 0, false},
          Row{700'000, 64, 1000, false}}) {
        const auto limit = media_limit(trial_of(row.rate_fps, row.size), Direction::forward, row.mbps);
        EXPECT_EQ(limit.has_value(), row.tolerated) << row.rate_fps << " of " << row.size << " at " << row.mbps;
        if (!limit) continue;
        EXPECT_EQ(limit->tolerance_ns, 12'000'000U);
        EXPECT_NEAR(limit->line_rate_fps, static_cast<double>(row.rate_fps), 300);
    }
}

TEST(Media, HasALineRateForMixedFramesAndNoneForBursts) {
    TrialSpec mixed = trial_of(1'000'000'000 / 8 / 94, 84);  // the mean of 64 and 84 is 74 bytes, plus 20 on the medium
    mixed.streams[0]->background = FrameSpec{};
    mixed.streams[0]->background->size = 64;
    mixed.streams[0]->n = 2;
    mixed.streams[0]->m = 1;
    EXPECT_NEAR(line_rate_fps(*mixed.streams[0], 1000), 1e9 / 8 / 94, 1);
    EXPECT_TRUE(media_limit(mixed, Direction::forward, 1000));
    TrialSpec bursts = trial_of(1'488'095, 64);
    bursts.streams[0]->pattern = Bursts{.frames = 32};
    EXPECT_FALSE(media_limit(bursts, Direction::forward, 1000));
}

TEST(Media, HasRoomForAdditionalFrames) {
    TrialSpec with_broadcasts = trial_of(1'488'095 * 99 / 100, 64);
    EXPECT_FALSE(media_limit(with_broadcasts, Direction::forward, 1000));
    with_broadcasts.streams[0]->additional.push_back({.frames = {FrameBytes(60)}, .after_frames = 99});
    const auto limit = media_limit(with_broadcasts, Direction::forward, 1000);
    ASSERT_TRUE(limit);
    EXPECT_NEAR(limit->line_rate_fps, 1'473'214, 1);
}

TEST(Media, LimitsTheTransmitWait) {
    const StreamSpec stream = *trial_of(1000, 1518).streams[0];
    EXPECT_NEAR(transmit_wait(stream, 160, 1000).us.value(), 1968.6, 0.1);
    EXPECT_EQ(transmit_wait(stream, 160, 0).us, std::nullopt);
    EXPECT_EQ(transmit_wait(stream, 160, 0).frames, 160U);
}

}  // namespace
}  // namespace dutperf
