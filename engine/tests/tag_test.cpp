// SPDX-License-Identifier: Apache-2.0
#include "frame/tag.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <utility>

namespace dutperf {
namespace {

using Payload = std::array<std::uint8_t, kTagSize>;

constexpr TrialMark kTrial = mark_of_trial(0x3FFF, 0x34);

Payload payload_of(PathMark mark, std::uint8_t other_bits = 0) {
    Payload payload{};
    write_tag(payload.data(), kTrial, mark.stream | other_bits, mark.pair);
    return payload;
}

TEST(Tag, NamesEachPathBesideItsKindAndBackground) {
    constexpr std::uint8_t kKind = 31U << kStreamKindShift;
    std::set<std::pair<int, int>> marks;
    for (std::size_t path = 0; path < kMostPaths; ++path) {
        const PathMark mark = mark_of_path(path);
        EXPECT_EQ(mark.stream & ~kStreamPath, 0);
        marks.emplace(mark.stream, mark.pair);
        for (const std::uint8_t bits : {std::uint8_t{0}, kStreamBackground, kKind}) {
            const Payload payload = payload_of(mark, bits);
            ASSERT_TRUE(has_signature(payload.data())) << path;
            const Tag tag = read_tag(payload.data());
            EXPECT_EQ(tag.path(), path);
            EXPECT_EQ(tag.trial, kTrial);
            EXPECT_EQ(tag.stream & ~kStreamPath, bits);
        }
    }
    EXPECT_EQ(marks.size(), kMostPaths);
}

TEST(Tag, OfAnotherSignatureOrOfNoPathIsNone) {
    for (std::size_t bit = 0; bit < 24; ++bit) {
        Payload payload = payload_of(mark_of_path(kMostPaths - 1));
        payload[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
        EXPECT_FALSE(has_signature(payload.data())) << bit;
    }
    for (const std::size_t path : {kMostPaths, std::size_t{0xFFFF}})
        EXPECT_FALSE(has_signature(payload_of(mark_of_path(path)).data())) << path;
}

}  // namespace
}  // namespace dutperf
