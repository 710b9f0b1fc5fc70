// SPDX-License-Identifier: Apache-2.0
// Compares what a batch of any frames matches with what dissect() says of each alone.
#include "frame/mixed_match.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "frame/checksum.hpp"
#include "tests/example_frames.hpp"
#include "tests/test_frame.hpp"

namespace dutperf {
namespace {

using Random = std::mt19937_64;

// Reads and matches frames, and compares each match with dissect(). Returns which frames matched.
std::vector<bool> matched(MixedMatch& batch, const std::vector<Bytes>& frames,
                          std::span<const std::uint16_t> from_end = {}) {
    for (std::size_t i = 0; i < frames.size(); ++i) batch.reader()(i, frames[i].data(), frames[i].size());
    batch.match(frames.size());
    std::vector<bool> result(frames.size());
    for (std::size_t i = 0; i < frames.size();) {
        const std::span<const std::uint64_t> run = batch.run_from(i, frames.size());
        const Tag first = run.empty() ? Tag{} : batch.tag(i);
        if (run.empty()) ++i;
        for (const std::uint64_t sequence : run) {
            const Dissected alone = dissect(frames[i].data(), frames[i].size(), from_end);
            EXPECT_TRUE(alone.tag != nullptr && alone.intact) << "frame " << i;
            if (alone.tag == nullptr) return result;
            const Tag tag = read_tag(alone.tag);
            EXPECT_EQ(tag.sequence, sequence);
            EXPECT_EQ(tag.trial, first.trial);
            EXPECT_EQ(tag.stream & ((1U << kStreamKindShift) - 1), first.stream);
            EXPECT_EQ(tag.stamp, first.stamp);
            result[i++] = true;
        }
    }
    return result;
}

// The example with another number. What the number gains the stamp loses, at places of the same parity: no checksum
// changes.
Bytes renumbered(const Bytes& right, std::size_t tag_at, std::uint16_t number) {
    Bytes bytes = right;
    std::uint8_t* number_at = &bytes[tag_at + 10];
    std::uint8_t* stamp_at = &bytes[tag_at + 16];
    const std::uint64_t sum = std::uint64_t{load_be16(number_at)} + load_be16(stamp_at);
    store_be16(number_at, number);
    store_be16(stamp_at, checksum_fold(sum + static_cast<std::uint16_t>(~number)));
    return bytes;
}

// All examples are of one kind: a length of its own tells each.
Bytes padded(std::size_t example) {
    Bytes bytes = bytes_of(kExamples[example]);
    bytes.resize(200 + example, 0xEE);
    return bytes;
}

TEST(MixedMatch, MatchesFramesBehindAnyHeaders) {
    const auto batch = std::make_unique<MixedMatch>();
    std::vector<Bytes> frames;
    for (std::size_t i = 0; i < kExamples.size(); ++i) {
        frames.push_back(padded(i));
        batch->set_reference(frames.back().data(), frames.back().size(), {});
    }
    const std::vector<bool> each = matched(*batch, frames);
    for (std::size_t i = 0; i < frames.size(); ++i) EXPECT_TRUE(each[i]) << kExamples[i].headers;
}

TEST(MixedMatch, AFrameWithoutBytesMatchesNone) {
    const auto batch = std::make_unique<MixedMatch>();
    batch->reader()(0, nullptr, 0);
    batch->match(1);
    EXPECT_TRUE(batch->run_from(0, 1).empty());
}

// Every bit of every example: a frame that matches is intact, and its number is right.
TEST(MixedMatch, NoBitErrorMatchesUnlessTheFrameIsIntact) {
    for (const Example& example : kExamples) {
        SCOPED_TRACE(example.headers);
        const auto batch = std::make_unique<MixedMatch>();
        const Bytes right = bytes_of(example);
        batch->set_reference(right.data(), right.size(), {});
        std::vector<Bytes> burst;
        int matches = 0;
        const auto flush = [&] {
            for (const bool one : matched(*batch, burst)) matches += one ? 1 : 0;
            burst.clear();
        };
        for (std::size_t bit = 0; bit < 8 * right.size(); ++bit) {
            burst.push_back(right);
            burst.back()[bit / 8] ^= static_cast<std::uint8_t>(0x80U >> (bit % 8));
            if (burst.size() == MixedMatch::kMaxFrames) flush();
        }
        flush();
        // all that no checksum covers and nothing is read from: at least both addresses of Ethernet
        EXPECT_GE(matches, 96);
        EXPECT_LE(matches, 96 + 8 * 60);
    }
}

// Frames with other numbers match: their checksums are computed, not compared.
TEST(MixedMatch, NumbersVary) {
    Random random(3);
    const auto batch = std::make_unique<MixedMatch>();
    for (std::size_t i = 0; i < kExamples.size(); ++i) {
        const Bytes right = padded(i);
        batch->set_reference(right.data(), right.size(), {});
    }
    int varied = 0;
    for (int round = 0; round < 200; ++round) {
        std::vector<Bytes> frames;
        std::vector<bool> damaged;
        for (std::size_t i = 0; i < 1 + random() % MixedMatch::kMaxFrames; ++i) {
            const std::size_t number = random() % kExamples.size();
            const Example& example = kExamples[number];
            Bytes one = renumbered(padded(number), example.tag_at, static_cast<std::uint16_t>(random()));
            const Dissected alone = dissect(one.data(), one.size());
            ASSERT_TRUE(alone.tag != nullptr && alone.intact) << example.headers;
            damaged.push_back(random() % 2 == 0);
            if (damaged.back()) {
                const std::size_t behind = example.tag_at + tag::kHighAt;  // always in a checksum
                one[behind + random() % (bytes_of(example).size() - behind)] ^=
                    static_cast<std::uint8_t>(1U + random() % 255);
            }
            frames.push_back(one);
        }
        const std::vector<bool> each = matched(*batch, frames);
        for (std::size_t i = 0; i < frames.size(); ++i) EXPECT_EQ(each[i], !damaged[i]) << i;
        varied += static_cast<int>(frames.size());
    }
    EXPECT_GT(varied, 1000);
}

// Sizes and IP versions in one burst, with payload behind the tag and damage anywhere.
TEST(MixedMatch, SizesAreTheirOwnReferences) {
    Random random(5);
    const auto batch = std::make_unique<MixedMatch>();
    const std::array<std::uint16_t, 5> sizes{64, 84, 201, 594, 1518};
    const auto any = [&](std::uint8_t kind) {
        const bool ipv6 = kind % 2 != 0;
        return test_frame({.ipv6 = ipv6,
                           .size = std::max<std::uint16_t>(sizes[kind / 2U], ipv6 ? 84 : 64),
                           .stream = static_cast<std::uint8_t>(kind << kStreamKindShift),
                           .sequence = random() & kMask40,
                           .stamp = random() & kMask40,
                           .ports = static_cast<std::uint32_t>(random())});
    };
    for (std::uint8_t kind = 0; kind < 10; ++kind) {
        const Bytes one = any(kind);
        batch->set_reference(one.data(), one.size(), {});
    }
    for (int round = 0; round < 300; ++round) {
        std::vector<Bytes> frames;
        std::vector<bool> damaged;
        for (std::size_t i = 0; i < 1 + random() % MixedMatch::kMaxFrames; ++i) {
            frames.push_back(any(static_cast<std::uint8_t>(random() % 10)));
            damaged.push_back(random() % 4 == 0);
            Bytes& one = frames.back();
            if (!damaged.back()) continue;
            const std::size_t tag_at = one[12] == 0x86 ? 62 : 42;
            one[tag_at + random() % (one.size() - tag_at)] ^= static_cast<std::uint8_t>(1U + random() % 255);
        }
        const std::vector<bool> each = matched(*batch, frames);
        for (std::size_t i = 0; i < frames.size(); ++i) EXPECT_EQ(each[i], !damaged[i]) << i;
    }
}

// A tag behind no known header, and the same frame cut or lengthened.
TEST(MixedMatch, ATagAtItsDistanceFromTheEnd) {
    const auto batch = std::make_unique<MixedMatch>();
    Bytes bytes(80, 0x11);
    store_be16(&bytes[ethernet::kType], 0x88B5);
    write_tag(&bytes[62], 9, 0);
    const std::vector<std::uint16_t> places{18};
    batch->set_reference(bytes.data(), bytes.size(), places);
    EXPECT_EQ(matched(*batch, {bytes}, places), std::vector<bool>{true});
    Bytes shorter = bytes, longer = bytes, other_type = bytes;
    shorter.pop_back();
    longer.push_back(0);
    store_be16(&other_type[ethernet::kType], 0x0800);
    EXPECT_EQ(matched(*batch, {shorter, longer, other_type}, places), std::vector<bool>(3));
}

// Over IPv6 a UDP checksum of 0 is wrong, even if the sum is right (RFC 8200 8.1).
TEST(MixedMatch, AChecksumOfZeroOverIpv6DoesNotMatch) {
    const auto batch = std::make_unique<MixedMatch>();
    const Bytes right = test_frame({.ipv6 = true, .size = 84});
    batch->set_reference(right.data(), right.size(), {});
    Bytes zero = right;
    const std::uint16_t checksum = load<std::uint16_t>(&zero[60]);
    // the port takes what the checksum had
    const std::uint64_t port = std::uint64_t{load<std::uint16_t>(&zero[54])} + checksum;
    store(&zero[54], checksum_fold(port));
    store<std::uint16_t>(&zero[60], 0xFFFF);
    EXPECT_EQ(matched(*batch, {zero}), std::vector<bool>{true});
    store<std::uint16_t>(&zero[60], 0);
    EXPECT_EQ(matched(*batch, {zero}), std::vector<bool>{false});
}

// What is no intact frame is no reference.
TEST(MixedMatch, NoReferenceIsTakenFromADamagedFrame) {
    const auto batch = std::make_unique<MixedMatch>();
    Bytes damaged = test_frame({});
    damaged.back() ^= 1U;
    damaged[50] ^= 1U;
    batch->set_reference(damaged.data(), damaged.size(), {});
    EXPECT_EQ(matched(*batch, {damaged, test_frame({})}), std::vector<bool>(2));
}

}  // namespace
}  // namespace dutperf
