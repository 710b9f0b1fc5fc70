// SPDX-License-Identifier: Apache-2.0
#include "port/neighbour.hpp"

#include <gtest/gtest.h>

#include "frame/headers.hpp"

namespace dutperf {
namespace {

const Host kTester{
    .mac = *parse_mac("02:00:00:00:00:01"), .ipv4 = *parse_ipv4("198.18.0.2"), .ipv6 = *parse_ipv6("2001:2::2")};
const Host kDut{
    .mac = *parse_mac("02:00:00:00:00:02"), .ipv4 = *parse_ipv4("198.18.0.1"), .ipv6 = *parse_ipv6("2001:2::1")};

std::uint16_t icmpv6_checksum_fold(const FrameBytes& frame) {
    const std::uint8_t* ip = &frame[ethernet::kSize];
    const std::uint16_t length = load_be16(ip + ipv6::kPayloadLength);
    return checksum_fold(pseudo_header_sum(ip + ipv6::kSource, 32, length, kProtocolIcmpv6) +
                         checksum_add(ip + ipv6::kSize, length));
}

TEST(Neighbour, ArpRequestsAreAnswered) {
    const FrameBytes question = arp_request(kDut, *kTester.ipv4);
    EXPECT_EQ(question.size(), 60U);
    const auto reply = answer(kTester, question.data(), question.size());
    ASSERT_TRUE(reply);
    EXPECT_EQ(arp_reply_mac(*kTester.ipv4, reply->data(), reply->size()), kTester.mac);
    EXPECT_TRUE(std::equal(kDut.mac.begin(), kDut.mac.end(), reply->begin()));  // sent to the requester
    EXPECT_FALSE(arp_reply_mac(*kDut.ipv4, reply->data(), reply->size()));
}

TEST(Neighbour, SolicitationsAreAnsweredWithAValidChecksum) {
    const FrameBytes question = neighbour_solicitation(kDut, *kTester.ipv6);
    EXPECT_EQ(icmpv6_checksum_fold(question), 0xFFFF);
    const auto reply = answer(kTester, question.data(), question.size());
    ASSERT_TRUE(reply);
    EXPECT_EQ(icmpv6_checksum_fold(*reply), 0xFFFF);
    EXPECT_EQ(advertised_mac(*kTester.ipv6, reply->data(), reply->size()), kTester.mac);
    EXPECT_EQ((*reply)[ethernet::kSize + ipv6::kSize + 4], 0x60);  // solicited, override
}

TEST(Neighbour, DuplicateAddressDetectionIsAnsweredToAllNodes) {
    Host newcomer = kDut;
    newcomer.ipv6 = Ipv6{};
    const FrameBytes question = neighbour_solicitation(newcomer, *kTester.ipv6);
    const auto reply = answer(kTester, question.data(), question.size());
    ASSERT_TRUE(reply);
    EXPECT_EQ((*reply)[0], 0x33);
    EXPECT_EQ((*reply)[ethernet::kSize + ipv6::kSize + 4], 0x20);  // not solicited
    EXPECT_EQ(icmpv6_checksum_fold(*reply), 0xFFFF);
}

TEST(Neighbour, RequestsForOtherAddressesGetNoAnswer) {
    const FrameBytes arp = arp_request(kDut, *parse_ipv4("198.18.0.3")),
                     ndp = neighbour_solicitation(kDut, *parse_ipv6("2001:2::3"));
    EXPECT_FALSE(answer(kTester, arp.data(), arp.size()));
    EXPECT_FALSE(answer(kTester, ndp.data(), ndp.size()));
    const Host without_addresses{.mac = kTester.mac, .ipv4 = {}, .ipv6 = {}};
    const FrameBytes question = arp_request(kDut, *kTester.ipv4);
    EXPECT_FALSE(answer(without_addresses, question.data(), question.size()));
}

TEST(Neighbour, ForwardedSolicitationsAreIgnored) {  // RFC 4861 7.1.1
    FrameBytes question = neighbour_solicitation(kDut, *kTester.ipv6);
    question[ethernet::kSize + ipv6::kHopLimit] = 254;
    EXPECT_FALSE(answer(kTester, question.data(), question.size()));
}

TEST(Neighbour, CutFramesAreNotRead) {
    for (const FrameBytes& question : {arp_request(kDut, *kTester.ipv4), neighbour_solicitation(kDut, *kTester.ipv6)}) {
        for (std::size_t length = 0; length < 42; ++length) {
            const FrameBytes cut(question.begin(), question.begin() + static_cast<std::ptrdiff_t>(length));
            EXPECT_FALSE(answer(kTester, cut.data(), cut.size()));
        }
    }
}

}  // namespace
}  // namespace dutperf
