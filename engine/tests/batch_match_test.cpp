// SPDX-License-Identifier: Apache-2.0
#include "frame/batch_match.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "frame/arrival.hpp"
#include "tests/test_frame.hpp"

namespace dutperf {
namespace {

using Random = std::mt19937_64;

// Corrupts a byte or the length of every second frame on average.
Bytes with_corruption(Bytes bytes, Random& random) {
    if (random() % 2 == 0) return bytes;
    if (random() % 8 == 0) {
        bytes.resize(bytes.size() - random() % 20 + random() % 20);
        return bytes;
    }
    bytes[random() % std::min<std::size_t>(bytes.size(), 100)] ^= static_cast<std::uint8_t>(1 + random() % 255);
    return bytes;
}

// Compares a tag with what find_tag(), is_intact() and read_tag() say of the frame alone.
void expect_as_alone(const Bytes& bytes, const Tag& tag) {
    const std::uint8_t* payload = find_tag(bytes.data(), bytes.size());
    ASSERT_NE(payload, nullptr);
    EXPECT_TRUE(is_intact(bytes.data(), bytes.size()));
    const Tag alone = read_tag(payload);
    EXPECT_EQ(tag.trial, alone.trial);
    EXPECT_EQ(tag.stream, alone.stream);
    EXPECT_EQ(tag.sequence, alone.sequence);
    EXPECT_EQ(tag.stamp, alone.stamp);
}

template <Layout L>
void accepts_only_what_is_intact(std::uint16_t size) {
    Random random(size);
    const auto batch = std::make_unique<BatchMatch<L>>();
    const Bytes reference = test_frame({.ipv6 = L.ipv6, .size = size});
    batch->set_reference(reference.data(), reference.size());
    int accepted = 0;
    for (int burst = 0; burst < 200; ++burst) {
        std::vector<Bytes> frames(1 + random() % BatchMatch<L>::kMaxFrames);
        std::vector<bool> corrupted;
        for (std::size_t i = 0; i < frames.size(); ++i) {
            const Bytes whole = test_frame({.ipv6 = L.ipv6,
                                            .size = size,
                                            .sequence = random() & kMask40,
                                            .stamp = random() & kMask40,
                                            .ports = static_cast<std::uint32_t>(random())});
            frames[i] = with_corruption(whole, random);
            corrupted.push_back(frames[i] != whole);
            batch->reader()(i, frames[i].data(), frames[i].size());
        }
        batch->match(frames.size());
        for (std::size_t i = 0; i < frames.size(); ++i) {
            const bool matches = !batch->run_from(i, frames.size()).empty();
            EXPECT_TRUE(matches || corrupted[i]) << "ports, number, stamp and checksum may differ";
            if (matches) expect_as_alone(frames[i], batch->tag(i));
            accepted += matches ? 1 : 0;
        }
    }
    EXPECT_GT(accepted, 2000);
}

TEST(BatchMatch, AcceptsOnlyWhatIsIntact) {
    for (const std::uint16_t size : {std::uint16_t{64}, std::uint16_t{65}, std::uint16_t{90}, std::uint16_t{300}})
        accepts_only_what_is_intact<kIpv4Layout>(size);
    for (const std::uint16_t size : {std::uint16_t{84}, std::uint16_t{85}, std::uint16_t{128}, std::uint16_t{301}})
        accepts_only_what_is_intact<kIpv6Layout>(size);
}

// Any bit error that find_tag() or is_intact() rejects is rejected here too.
TEST(BatchMatch, DetectsEveryBitErrorThatMatters) {
    const Bytes reference = test_frame({.size = 70});
    const auto batch = std::make_unique<BatchMatch<kIpv4Layout>>();
    batch->set_reference(reference.data(), reference.size());
    for (std::size_t bit = 0; bit < 8 * reference.size(); ++bit) {
        Bytes bad = reference;
        bad[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
        batch->reader()(0, bad.data(), bad.size());
        batch->match(1);
        EXPECT_EQ(!batch->run_from(0, 1).empty(), bit / 8 < ethernet::kType)
            << "byte " << bit / 8 << " bit " << bit % 8;
    }
}

TEST(BatchMatch, WithoutAReferenceNothingMatches) {
    const Bytes frame = test_frame({});
    const auto batch = std::make_unique<BatchMatch<kIpv4Layout>>();
    batch->reader()(0, frame.data(), frame.size());
    batch->match(1);
    EXPECT_TRUE(batch->run_from(0, 1).empty());
}

// A run continues while numbers increase and the stamp is the same.
TEST(BatchMatch, RunsEndWhereNumbersDecreaseOrStampsChange) {
    using Run = std::vector<std::uint64_t>;
    const std::vector<std::pair<std::uint64_t, std::uint64_t>> frames{{5, 1},  {6, 1},  {8, 1},  {9, 2},
                                                                      {12, 2}, {12, 2}, {11, 2}, {0, 2}};
    const auto batch = std::make_unique<BatchMatch<kIpv4Layout>>();
    const Bytes reference = test_frame({});
    batch->set_reference(reference.data(), reference.size());
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const Bytes frame = test_frame({.sequence = frames[i].first, .stamp = frames[i].second});
        batch->reader()(i, frame.data(), frame.size());
    }
    batch->match(frames.size());
    std::vector<Run> runs;
    for (std::size_t i = 0; i < frames.size(); i += runs.back().size()) {
        const auto run = batch->run_from(i, frames.size());
        ASSERT_FALSE(run.empty());
        runs.emplace_back(run.begin(), run.end());
    }
    EXPECT_EQ(runs, (std::vector<Run>{{5, 6, 8}, {9, 12}, {12}, {11}, {0}}));
}

// A run also ends before a mismatch, whatever its number.
TEST(BatchMatch, ARunEndsBeforeAMismatch) {
    const auto batch = std::make_unique<BatchMatch<kIpv4Layout>>();
    const Bytes reference = test_frame({});
    batch->set_reference(reference.data(), reference.size());
    for (std::size_t i = 0; i < 4; ++i) {
        Bytes frame = test_frame({.sequence = i, .stamp = 1});
        if (i == 2) frame.back() ^= 1U;
        batch->reader()(i, frame.data(), frame.size());
    }
    batch->match(4);
    EXPECT_EQ(batch->run_from(0, 4).size(), 2U);
    EXPECT_TRUE(batch->run_from(2, 4).empty());
    EXPECT_EQ(batch->run_from(3, 4).size(), 1U);
}

}  // namespace
}  // namespace dutperf
