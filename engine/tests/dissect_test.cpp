// SPDX-License-Identifier: Apache-2.0
#include "frame/dissect.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "frame/arrival.hpp"
#include "frame/checksum.hpp"
#include "tests/example_frames.hpp"

namespace dutperf {
namespace {

Dissected dissected(const Bytes& bytes, std::span<const std::uint16_t> from_end = {}) {
    const Bytes exact(bytes.begin(), bytes.end());  // a sanitizer finds reads behind it
    const Dissected found = dissect(exact.data(), exact.size(), from_end);
    return {.tag = found.tag == nullptr ? nullptr : bytes.data() + (found.tag - exact.data()),
            .intact = found.intact,
            .unfinished = found.unfinished};
}

TEST(Dissect, FindsTheTagBehindAnyHeaders) {
    for (const Example& example : kExamples) {
        const Bytes bytes = bytes_of(example);
        const Dissected found = dissected(bytes);
        ASSERT_EQ(found.tag, bytes.data() + example.tag_at) << example.headers;
        EXPECT_TRUE(found.intact) << example.headers;
        EXPECT_EQ(read_tag(found.tag).sequence, 5U);
    }
}

TEST(Dissect, PaddingIsNotCorruption) {
    for (const Example& example : kExamples) {
        Bytes bytes = bytes_of(example);
        bytes.resize(bytes.size() + 7, 0xEE);
        EXPECT_TRUE(dissected(bytes).intact) << example.headers;
    }
}

TEST(Dissect, NoPartOfAFrameIsIntact) {
    for (const Example& example : kExamples) {
        const Bytes bytes = bytes_of(example);
        for (std::size_t length = 0; length < bytes.size(); ++length) {
            const Bytes part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
            const Dissected found = dissected(part);
            ASSERT_FALSE(found.tag != nullptr && found.intact) << example.headers << " cut to " << length;
        }
    }
}

// A frame with a wrong bit is either not intact, or its tag is right: a wrong number is never counted.
TEST(Dissect, NoBitErrorMakesAnIntactFrameWithAnotherTag) {
    for (const Example& example : kExamples) {
        const Bytes right = bytes_of(example);
        for (std::size_t bit = 0; bit < 8 * right.size(); ++bit) {
            Bytes bytes = right;
            bytes[bit / 8] ^= static_cast<std::uint8_t>(0x80U >> (bit % 8));
            const Dissected found = dissected(bytes);
            if (found.tag == nullptr || !found.intact) continue;
            ASSERT_TRUE(std::equal(found.tag, found.tag + kTagSize, right.begin() + static_cast<long>(example.tag_at)))
                << example.headers << ", bit " << bit;
            ASSERT_LT(bit / 8, example.tag_at) << example.headers << ", bit " << bit << " of the payload";
        }
    }
}

TEST(Dissect, AgreesWithTheFastPathOnPlainFrames) {
    const Bytes right = bytes_of(kExamples[0]);
    for (std::size_t bit = 8 * ethernet::kSize; bit < 8 * right.size(); ++bit) {
        Bytes bytes = right;
        bytes[bit / 8] ^= static_cast<std::uint8_t>(0x80U >> (bit % 8));
        if (find_tag(bytes.data(), bytes.size()) == nullptr) continue;
        ASSERT_EQ(dissected(bytes).intact, is_intact(bytes.data(), bytes.size())) << bit;
    }
}

// Kernels leave the rest of the sum to a card, and a virtual link has none. All else of such a frame is checked.
TEST(Dissect, AnUnfinishedChecksumIsTold) {
    for (const std::size_t example : {0U, 1U, 2U, 3U, 4U, 5U}) {
        Bytes bytes = bytes_of(kExamples[example]);
        Reading reading;
        ASSERT_TRUE(dissect(bytes.data(), bytes.size(), {}, reading).intact);
        ASSERT_FALSE(dissected(bytes).unfinished);
        const Reading::Sum& sum = reading.sums.back();
        const auto sum_of = [&](const Range& range) { return checksum_add(&bytes[range.from], range.size()); };
        const std::uint64_t pseudo_header = sum_of(sum.ranges[0]) + sum_of(sum.ranges[1]) + sum.plus;
        const bool tcp = example == 2 || example == 5;
        const std::size_t field = sum.ranges[2].from + (tcp ? tcp::kChecksum : udp::kChecksum);
        store(&bytes[field], checksum_fold(pseudo_header));
        Dissected found = dissected(bytes);
        EXPECT_FALSE(found.intact) << example;
        EXPECT_TRUE(found.unfinished) << example;
        ASSERT_EQ(found.tag, bytes.data() + kExamples[example].tag_at);
        bytes[field] ^= 1U;
        found = dissected(bytes);
        EXPECT_FALSE(found.intact || found.unfinished) << "any other wrong sum, " << example;
        bytes[field] ^= 1U;
        bytes.pop_back();
        found = dissected(bytes);
        EXPECT_FALSE(found.intact || found.unfinished) << "a frame cut short, " << example;
    }
}

// A tag where no header tells: counted from the end of the packet, whatever the DUT put in front or behind.
TEST(Dissect, FindsATagAtItsDistanceFromTheEnd) {
    Bytes bytes(80, 0x11);
    store_be16(&bytes[ethernet::kType], 0x88B5);
    write_tag(&bytes[50], 9, 0);
    const std::vector<std::uint16_t> places{20, 30};
    EXPECT_EQ(dissected(bytes).tag, nullptr);
    EXPECT_EQ(dissected(bytes, places).tag, &bytes[50]);
    bytes.insert(bytes.begin() + 12, {0x81, 0x00, 0x00, 0x05});
    EXPECT_EQ(dissected(bytes, places).tag, &bytes[54]);
}

// An error message ends like the packet that it quotes.
TEST(Dissect, AQuotedFrameHasNotArrived) {
    Bytes bytes = bytes_of(kExamples[0]);
    const Bytes quoted(bytes.begin() + ethernet::kSize, bytes.end());
    Bytes message(bytes.begin(), bytes.begin() + ethernet::kSize + ipv4::kSize);
    std::uint8_t* ip = &message[ethernet::kSize];
    ip[ipv4::kProtocol] = kProtocolIcmp;
    store_be16(ip + ipv4::kLength, static_cast<std::uint16_t>(ipv4::kSize + icmp::kSize + quoted.size()));
    message.insert(message.end(), {3, 1, 0, 0, 0, 0, 0, 0});
    message.insert(message.end(), quoted.begin(), quoted.end());
    const std::vector<std::uint16_t> places{static_cast<std::uint16_t>(bytes.size() - kExamples[0].tag_at)};
    EXPECT_EQ(dissected(message, places).tag, nullptr);
    EXPECT_EQ(kind_of(message.data(), message.size()), OtherKind::icmp_unreachable);
}

TEST(Dissect, AFragmentIsNoTestFrame) {
    Bytes bytes = bytes_of(kExamples[0]);
    store_be16(&bytes[ethernet::kSize + ipv4::kFragment], 0x2000);
    const std::vector<std::uint16_t> places{static_cast<std::uint16_t>(bytes.size() - kExamples[0].tag_at)};
    EXPECT_EQ(dissected(bytes, places).tag, nullptr);
}

TEST(Dissect, KindsOfOtherFramesAreKnownBehindVlanTags) {
    Bytes arp(60);
    store_be16(&arp[ethernet::kType], ethernet::kTypeVlan);
    store_be16(&arp[16], ethernet::kTypeArp);
    store_be16(&arp[18 + 6], 2);
    EXPECT_EQ(kind_of(arp.data(), arp.size()), OtherKind::arp_reply);
}

}  // namespace
}  // namespace dutperf
