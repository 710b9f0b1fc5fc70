// SPDX-License-Identifier: Apache-2.0
// A message of PTP with the tag of a test frame is found as that frame, and is intact.
#include "trial/ptp_message.hpp"

#include <gtest/gtest.h>

#include "frame/arrival.hpp"
#include "frame/dissect.hpp"
#include "frame/tag.hpp"
#include "test_frame.hpp"

namespace dutperf {
namespace {

constexpr std::size_t kSync = 44;  // bytes of the message

// Sync in UDP to port 319 over IPv4, or directly in Ethernet.
DescribedFrame sync(bool in_udp) {
    const Bytes ethernet{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const Bytes ip{0x08, 0x00, 0x45, 0, 0, 90, 0, 0, 0, 0, 10, 17, 0, 0, 198, 18, 0, 2, 198, 19, 0, 2};
    const Bytes udp{1, 63, 1, 63, 0, 70, 0, 0};
    Bytes head = ethernet;
    if (in_udp) {
        head.insert(head.end(), ip.begin(), ip.end());
        head.insert(head.end(), udp.begin(), udp.end());
    } else {
        head.insert(head.end(), {0x88, 0xF7});
    }
    const std::size_t message = head.size();
    head.resize(message + kSync);
    head[message + 1] = 2;
    DescribedFrame frame;
    frame.size = static_cast<std::uint16_t>(head.size() + kTagSize + kFcsSize);
    frame.head = head;
    frame.tag_at = static_cast<std::uint16_t>(head.size());
    if (in_udp) {
        const auto end = static_cast<std::uint16_t>(frame.length());
        frame.checksums = {{.at = 40, .covers = {{26, 34}, {34, end}}, .plus = 70 + 17, .zero_as_ones = true},
                           {.at = 24, .covers = {{14, 34}}}};
    }
    return frame;
}

class PtpMessages : public testing::TestWithParam<bool> {};

TEST_P(PtpMessages, HaveTheTagOfTheFrameAndRightChecksums) {
    const DescribedFrame message = sync(GetParam());
    ASSERT_EQ(message.contradiction(), "");
    const auto from_end = static_cast<std::uint16_t>(message.length() - message.tag_at);
    PtpMessage ptp({DescribedTemplate(message, {})}, {from_end});
    for (const std::uint64_t number : {1ULL, 2ULL, 77'777ULL, 1ULL << 39U}) {
        const Bytes frame = test_frame({.sequence = number, .stamp = 5 * number + 1});
        const auto sent = ptp.in_place_of(frame);
        ASSERT_EQ(sent.size(), message.length());
        const Dissected found = dissect(sent.data(), sent.size(), {&from_end, 1});
        ASSERT_NE(found.tag, nullptr);
        EXPECT_TRUE(found.intact);
        EXPECT_EQ(Bytes(found.tag, found.tag + kTagSize),
                  Bytes(find_tag(frame.data(), frame.size()), find_tag(frame.data(), frame.size()) + kTagSize));
        const std::uint8_t* const sync = sent.data() + message.tag_at - kSync;
        EXPECT_EQ(sync[1], 2);
        EXPECT_EQ(load_be16(sync + 30), number & 0xFFFFU);
    }
}

TEST(PtpMessage, IsThatOfTheKindOfTheFrame) {
    const std::uint16_t from_end = kTagSize;
    PtpMessage ptp({DescribedTemplate(sync(true), {}), DescribedTemplate(sync(false), {})}, {from_end});
    const auto sent_for = [&](std::uint8_t stream) { return ptp.in_place_of(test_frame({.stream = stream})).size(); };
    EXPECT_EQ(sent_for(0), sync(true).length());
    EXPECT_EQ(sent_for(kStreamBackground), sync(false).length());
    EXPECT_EQ(sent_for(1U << kStreamKindShift | kStreamReverse), sync(false).length());
}

INSTANTIATE_TEST_SUITE_P(Layers, PtpMessages, testing::Bool(),
                         [](const auto& row) { return row.param ? "InUdp" : "InEthernet"; });

TEST(StampedFramesOf, TellsPtpInEthernetBehindVlanTagsFromThatInUdp) {
    DescribedFrame message = sync(false);
    EXPECT_EQ(stamped_frames_of(message), StampedFrames::ptp_in_ethernet);
    message.head.insert(message.head.begin() + 12, {0x81, 0x00, 0, 5});
    EXPECT_EQ(stamped_frames_of(message), StampedFrames::ptp_in_ethernet);
    EXPECT_EQ(stamped_frames_of(sync(true)), StampedFrames::ptp_in_udp);
}

}  // namespace
}  // namespace dutperf
