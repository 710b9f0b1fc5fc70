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

// The only reply of a host; nothing if it does not answer.
std::optional<FrameBytes> answer(const Host& host, const std::uint8_t* frame, std::size_t length) {
    const std::vector<FrameBytes> replies = answers(host, frame, length);
    EXPECT_LE(replies.size(), 1U);
    return replies.empty() ? std::nullopt : std::optional(replies.front());
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

TEST(Neighbour, AnswersHaveTheTagsOfTheQuestion) {
    const FrameBytes tags{0x88, 0xA8, 0x60, 0x64, 0x81, 0x00, 0x00, 0x05};
    const auto tagged = [&](FrameBytes frame) {
        frame.insert(frame.begin() + ethernet::kType, tags.begin(), tags.end());
        return frame;
    };
    for (const FrameBytes& question : {arp_request(kDut, *kTester.ipv4), neighbour_solicitation(kDut, *kTester.ipv6)}) {
        const FrameBytes asked = tagged(question);
        const auto reply = answer(kTester, asked.data(), asked.size());
        ASSERT_TRUE(reply);
        EXPECT_EQ(*reply, tagged(*answer(kTester, question.data(), question.size())));
        EXPECT_EQ(vlan_of(reply->data(), reply->size()), 100);
    }
}

TEST(Neighbour, RepliesAndRequestsAreReadBehindATag) {
    const FrameBytes arp = in_vlan(arp_request(kDut, *kTester.ipv4), 20),
                     ndp = in_vlan(neighbour_solicitation(kDut, *kTester.ipv6), 20);
    EXPECT_EQ(arp[ethernet::kSize + 1], 20);
    EXPECT_EQ(arp_requester_mac(*kDut.ipv4, arp.data(), arp.size()), kDut.mac);
    EXPECT_EQ(solicitor_mac(*kDut.ipv6, ndp.data(), ndp.size()), kDut.mac);
    const auto arp_reply = answer(kTester, arp.data(), arp.size()),
               advertised = answer(kTester, ndp.data(), ndp.size());
    ASSERT_TRUE(arp_reply && advertised);
    EXPECT_EQ(arp_reply_mac(*kTester.ipv4, arp_reply->data(), arp_reply->size()), kTester.mac);
    EXPECT_EQ(advertised_mac(*kTester.ipv6, advertised->data(), advertised->size()), kTester.mac);
}

TEST(Neighbour, AHostOfSeveralVlansAnswersAnUntaggedRequestInEach) {
    Host host = kTester;
    host.vlans = {10, 20};
    const FrameBytes question = arp_request(kDut, *kTester.ipv4);
    const FrameBytes reply = *answer(kTester, question.data(), question.size());
    EXPECT_EQ(answers(host, question.data(), question.size()),
              (std::vector<FrameBytes>{in_vlan(reply, 10), in_vlan(reply, 20)}));
    const FrameBytes tagged = in_vlan(question, 30);
    EXPECT_EQ(answers(host, tagged.data(), tagged.size()), std::vector<FrameBytes>{in_vlan(reply, 30)});
}

TEST(Neighbour, TheVlanIsThatOfTheOutermostTag) {
    const FrameBytes frame = arp_request(kDut, *kTester.ipv4);
    EXPECT_EQ(vlan_of(frame.data(), frame.size()), 0);
    EXPECT_EQ(in_vlan(frame, 0), frame);
    const FrameBytes tagged = in_vlan(in_vlan(frame, 5), 4094);
    EXPECT_EQ(vlan_of(tagged.data(), tagged.size()), 4094);
    for (std::size_t length = 0; length < ethernet::kSize + 4; ++length) EXPECT_EQ(vlan_of(tagged.data(), length), 0);
}

TEST(Neighbour, CutFramesAreNotRead) {
    for (const FrameBytes& question : {arp_request(kDut, *kTester.ipv4), neighbour_solicitation(kDut, *kTester.ipv6)}) {
        for (const std::uint16_t vlan : {std::uint16_t{0}, std::uint16_t{5}}) {
            const FrameBytes whole = in_vlan(question, vlan);
            for (std::size_t length = 0; length < 42 + whole.size() - question.size(); ++length) {
                const FrameBytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
                EXPECT_FALSE(answer(kTester, cut.data(), cut.size()));
            }
        }
    }
}

}  // namespace
}  // namespace dutperf
