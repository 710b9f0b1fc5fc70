// SPDX-License-Identifier: Apache-2.0
#include "port/neighbour.hpp"

#include <gtest/gtest.h>

#include "dns/datagram.hpp"
#include "frame/headers.hpp"
#include "port/neighbour_responder.hpp"
#include "port/neighbour_watch.hpp"

namespace dutperf {
namespace {

const Host kTester{
    .mac = *parse_mac("02:00:00:00:00:01"), .ipv4 = *parse_ipv4("198.18.0.2"), .ipv6 = *parse_ipv6("2001:2::2")};
const Host kDut{
    .mac = *parse_mac("02:00:00:00:00:02"), .ipv4 = *parse_ipv4("198.18.0.1"), .ipv6 = *parse_ipv6("2001:2::1")};

constexpr Ipv4 kBroadcast{255, 255, 255, 255};

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

Host tester_of_a_range() {
    Host host = kTester;
    host.others.ipv4 = {{*parse_ipv4("198.18.0.0"), *parse_ipv4("198.18.255.255"), *parse_ipv4("0.0.255.255")}};
    host.others.ipv6 = {{*parse_ipv6("2001:2::10"), *parse_ipv6("2001:2::ffff"), *parse_ipv6("::ffff")}};
    host.dut = {.ipv4 = kDut.ipv4, .ipv6 = kDut.ipv6, .mac = {}};
    return host;
}

TEST(Neighbour, EveryAddressOfARangeIsAnsweredAsItsOwn) {
    const Ipv4 address4 = *parse_ipv4("198.18.77.3");
    const Ipv6 address6 = *parse_ipv6("2001:2::77:ff"), in_range = *parse_ipv6("2001:2::7f");
    const Host host = tester_of_a_range();
    const FrameBytes arp = arp_request(kDut, address4), ndp = neighbour_solicitation(kDut, in_range);
    const auto reply4 = answer(host, arp.data(), arp.size()), reply6 = answer(host, ndp.data(), ndp.size());
    ASSERT_TRUE(reply4 && reply6);
    EXPECT_EQ(arp_reply_mac(address4, reply4->data(), reply4->size()), kTester.mac);
    EXPECT_EQ(advertised_mac(in_range, reply6->data(), reply6->size()), kTester.mac);
    EXPECT_EQ(icmpv6_checksum_fold(*reply6), 0xFFFF);
    EXPECT_TRUE(std::equal(in_range.begin(), in_range.end(), &(*reply6)[ethernet::kSize + ipv6::kSource]));
    const FrameBytes outside = neighbour_solicitation(kDut, address6);
    EXPECT_FALSE(answer(host, outside.data(), outside.size()));
}

TEST(Neighbour, TheLinkLocalAddressOfTheMacIsAnswered) {
    const Ipv6 own = link_local(kTester.mac);
    EXPECT_EQ(to_string(own), "fe80::ff:fe00:1");
    const FrameBytes question = neighbour_solicitation(kDut, own);
    const auto reply = answer(kTester, question.data(), question.size());
    ASSERT_TRUE(reply);
    EXPECT_EQ(advertised_mac(own, reply->data(), reply->size()), kTester.mac);
}

// The DUT may have an address in the range: it must be able to find out that nobody else has it, and to say so.
TEST(Neighbour, OfARangeTheDutMayHaveAddressesItself) {
    const Host host = tester_of_a_range();
    Host newcomer = kDut;
    newcomer.ipv4 = Ipv4{};
    newcomer.ipv6 = Ipv6{};
    Host second = kDut;
    second.ipv4 = parse_ipv4("198.18.0.9");
    for (const FrameBytes& question :
         {arp_request(newcomer, *parse_ipv4("198.18.0.9")), neighbour_solicitation(newcomer, *parse_ipv6("2001:2::99")),
          arp_request(second, *second.ipv4), arp_request(kTester, *kDut.ipv4),
          neighbour_solicitation(kTester, *kDut.ipv6)})
        EXPECT_FALSE(answer(host, question.data(), question.size()));
}

TEST(AddressRange, HasTheNumbersOfTheMaskFromFirstToLast) {
    const AddressRange<Ipv4> middle{*parse_ipv4("198.18.2.2"), *parse_ipv4("198.18.4.2"), *parse_ipv4("0.0.255.0")};
    for (const char* inside : {"198.18.2.2", "198.18.3.2", "198.18.4.2"})
        EXPECT_TRUE(middle.contains(*parse_ipv4(inside)));
    for (const char* outside : {"198.18.1.2", "198.18.5.2", "198.18.3.3", "198.19.3.2"})
        EXPECT_FALSE(middle.contains(*parse_ipv4(outside)));
    const AddressRange<Ipv4> whole{*parse_ipv4("198.18.0.250"), *parse_ipv4("198.18.1.5"), kBroadcast};
    for (const char* inside : {"198.18.0.250", "198.18.0.255", "198.18.1.0", "198.18.1.5"})
        EXPECT_TRUE(whole.contains(*parse_ipv4(inside)));
    for (const char* outside : {"198.18.0.249", "198.18.1.6", "198.17.255.255"})
        EXPECT_FALSE(whole.contains(*parse_ipv4(outside)));
}

TEST(AddressRange, OnlyBitsAreFreeOfWhichTheRangeHasAllNumbers) {
    struct Row {
        const char *first, *last, *mask, *address, *bits;
    };
    for (const Row& row : {Row{"198.19.0.10", "198.19.0.10", "255.255.255.255", "198.19.0.10", "0.0.0.0"},
                           Row{"198.18.0.0", "198.19.255.255", "255.255.255.255", "198.18.7.7", "0.1.255.255"},
                           Row{"198.18.0.250", "198.18.1.5", "255.255.255.255", "198.18.1.2", "0.0.0.3"},
                           Row{"198.18.0.250", "198.18.1.5", "255.255.255.255", "198.18.0.253", "0.0.0.3"},
                           Row{"198.18.0.2", "198.18.255.2", "0.0.255.0", "198.18.9.2", "0.0.255.0"},
                           Row{"198.18.0.2", "198.18.99.2", "0.0.255.0", "198.18.9.2", "0.0.63.0"},
                           Row{"198.18.0.2", "198.18.99.2", "0.0.255.0", "198.18.99.2", "0.0.3.0"}}) {
        const AddressRange<Ipv4> range{*parse_ipv4(row.first), *parse_ipv4(row.last), *parse_ipv4(row.mask)};
        EXPECT_EQ(range.free_bits(*parse_ipv4(row.address)), *parse_ipv4(row.bits)) << row.address;
    }
}

std::vector<std::string> sampled(const AddressRanges& ranges, std::size_t most) {
    std::vector<std::string> texts;
    for (const IpAddress& one : sample(ranges, most)) texts.push_back(to_string(one));
    return texts;
}

TEST(AddressRange, ASampleHasAllAddressesOfAShortOneAndBothEndsOfALongOne) {
    using Texts = std::vector<std::string>;
    const AddressRange<Ipv4> middle{*parse_ipv4("198.18.2.2"), *parse_ipv4("198.18.4.2"), *parse_ipv4("0.0.255.0")},
        single{*parse_ipv4("198.18.0.9"), *parse_ipv4("198.18.0.9"), kBroadcast},
        whole{*parse_ipv4("0.0.0.0"), kBroadcast, kBroadcast};
    const AddressRange<Ipv6> short6{*parse_ipv6("2001:2::ffff"), *parse_ipv6("2001:2::1:1"),
                                    *parse_ipv6("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")},
        whole6{Ipv6{}, short6.mask, short6.mask};
    EXPECT_EQ(sampled({.ipv4 = {middle}, .ipv6 = {}}, 256), (Texts{"198.18.2.2", "198.18.3.2", "198.18.4.2"}));
    EXPECT_EQ(sampled({.ipv4 = {}, .ipv6 = {short6}}, 256), (Texts{"2001:2::ffff", "2001:2::1:0", "2001:2::1:1"}));
    EXPECT_EQ(sampled({.ipv4 = {whole}, .ipv6 = {}}, 3), (Texts{"0.0.0.0", "127.255.255.255", "255.255.255.255"}));
    EXPECT_EQ(sampled({.ipv4 = {}, .ipv6 = {whole6}}, 2), (Texts{"::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}));
    EXPECT_EQ(sampled({.ipv4 = {whole, single}, .ipv6 = {short6}}, 6),
              (Texts{"198.18.0.9", "2001:2::ffff", "2001:2::1:1", "0.0.0.0", "127.255.255.255", "255.255.255.255"}));
    EXPECT_EQ(sampled({.ipv4 = {single, whole, middle}, .ipv6 = {}}, 1), Texts{"0.0.0.0"});
    EXPECT_TRUE(sampled({}, 256).empty());
}

TEST(AddressRange, AllAddressesOfASampleAreInTheRangeAndDifferent) {
    for (const AddressRange<Ipv4>& range :
         {AddressRange<Ipv4>{*parse_ipv4("198.18.0.1"), *parse_ipv4("198.18.255.254"), *parse_ipv4("0.0.255.255")},
          AddressRange<Ipv4>{*parse_ipv4("198.18.0.7"), *parse_ipv4("198.18.255.7"), *parse_ipv4("0.0.255.0")},
          AddressRange<Ipv4>{*parse_ipv4("198.18.1.0"), *parse_ipv4("198.18.3.240"), *parse_ipv4("0.0.3.240")}}) {
        for (const std::size_t most : {1U, 2U, 7U, 256U}) {
            const std::vector<IpAddress> some = sample({.ipv4 = {range}, .ipv6 = {}}, most);
            EXPECT_LE(some.size(), most);
            EXPECT_EQ(some.front().ipv4(), range.first);
            EXPECT_EQ(some.back().ipv4(), most > 1 ? range.last : range.first);
            std::set<Ipv4> different;
            for (const IpAddress& one : some) {
                EXPECT_TRUE(range.contains(one.ipv4()));
                different.insert(one.ipv4());
            }
            EXPECT_EQ(different.size(), some.size());
        }
    }
}

// Groups in a report, behind a valid checksum.
std::set<Ipv6> groups_in(const FrameBytes& report) {
    const std::uint8_t *ip = &report[ethernet::kSize], *icmp = ip + ipv6::kSize + 8;
    const auto size = static_cast<std::uint16_t>(load_be16(ip + ipv6::kPayloadLength) - 8);
    EXPECT_EQ(
        checksum_fold(pseudo_header_sum(ip + ipv6::kSource, 32, size, kProtocolIcmpv6) + checksum_add(icmp, size)),
        0xFFFF);
    EXPECT_EQ(icmp[0], 143);
    EXPECT_EQ(size, 8 + 20 * load_be16(icmp + 6));
    std::set<Ipv6> groups;
    for (const std::uint8_t* record = icmp + 8; record < icmp + size; record += 20) {
        Ipv6 group{};
        std::copy_n(record + 4, group.size(), group.begin());
        groups.insert(group);
    }
    return groups;
}

TEST(Neighbour, GroupsOfAllAddressesAreReported) {
    Host host = kTester;
    host.others.ipv6 = {{*parse_ipv6("2001:2::10"), *parse_ipv6("2001:2::12"), *parse_ipv6("::ffff")},
                        {*parse_ipv6("2001:2:0:1::2"), *parse_ipv6("2001:2:0:4::2"), *parse_ipv6("0:0:0:ff::")}};
    const std::vector<FrameBytes> reports = listener_reports(host);
    ASSERT_EQ(reports.size(), 1U);
    std::set<Ipv6> groups;
    for (const char* group :
         {"ff02::1:ff00:2", "ff02::1:ff00:1", "ff02::1:ff00:10", "ff02::1:ff00:11", "ff02::1:ff00:12"})
        groups.insert(*parse_ipv6(group));
    EXPECT_EQ(groups_in(reports.front()), groups);
    // single addresses and addresses that follow each other, with a mask of all bits
    const Ipv6 all = *parse_ipv6("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
    host.others.ipv6 = {{*parse_ipv6("2001:2::5:1234"), *parse_ipv6("2001:2::5:1234"), all},
                        {*parse_ipv6("2001:2::7:ffff"), *parse_ipv6("2001:2::8:1"), all}};
    std::set<Ipv6> of_some{*parse_ipv6("ff02::1:ff00:1"), *parse_ipv6("ff02::1:ff00:2")};
    for (const char* group : {"ff02::1:ff05:1234", "ff02::1:ff07:ffff", "ff02::1:ff08:0", "ff02::1:ff08:1"})
        of_some.insert(*parse_ipv6(group));
    EXPECT_EQ(groups_in(listener_reports(host).front()), of_some);
    EXPECT_TRUE(listener_reports({.mac = kTester.mac, .ipv4 = kTester.ipv4, .ipv6 = {}}).empty());
}

TEST(Neighbour, ManyGroupsTakeSeveralReports) {
    const std::vector<FrameBytes> reports = listener_reports(tester_of_a_range());
    std::set<Ipv6> groups;
    for (const FrameBytes& report : reports) {
        EXPECT_LT(report.size(), 1500U);
        groups.merge(groups_in(report));
    }
    EXPECT_EQ(groups.size(), kMostGroups);
}

TEST(Neighbour, QuestionsForListenersAreAnsweredWithTheirTags) {
    FrameBytes query = listener_reports(kDut).front();
    query[ethernet::kSize + ipv6::kSize + 8] = 130;
    query = in_vlan(query, 7);
    const auto reply = answer(kTester, query.data(), query.size());
    ASSERT_TRUE(reply);
    EXPECT_EQ(*reply, in_vlan(listener_reports(kTester).front(), 7));
    for (std::size_t length = 0; length < ethernet::kSize + 4 + ipv6::kSize + 9; ++length)
        EXPECT_FALSE(answer(kTester, query.data(), length));
}

NeighbourEvidence seen(const std::vector<FrameBytes>& frames, const std::set<Mac>& macs = {kDut.mac}) {
    NeighbourWatch watch(tester_of_a_range(), macs);
    for (const FrameBytes& frame : frames) watch.take(frame.data(), frame.size());
    return watch.evidence();
}

// The same address in two VLANs, each with the MAC address of its host; nobody has it in a third one.
TEST(NeighbourWatch, HostsThatShareAPortAnswerInTheirOwnVlans) {
    Host first = kTester, second = kTester;
    second.mac = *parse_mac("02:00:00:00:00:07");
    first.vlans = second.other_vlans = {10};
    second.vlans = first.other_vlans = {20};
    NeighbourWatch watch({{.host = first, .macs = {}}, {.host = second, .macs = {}}});
    const FrameBytes request = arp_request(kDut, *kTester.ipv4);
    for (const auto& [vlan, mac] : {std::pair{10, first.mac}, {20, second.mac}}) {
        const FrameBytes asked = in_vlan(request, static_cast<std::uint16_t>(vlan));
        const std::vector<FrameBytes> replies = watch.take(asked.data(), asked.size());
        ASSERT_EQ(replies.size(), 1U);
        EXPECT_EQ(arp_reply_mac(*kTester.ipv4, replies[0].data(), replies[0].size()), mac);
        EXPECT_EQ(vlan_of(replies[0].data(), replies[0].size()), vlan);
    }
    EXPECT_TRUE(watch.evidence().empty());
}

TEST(NeighbourWatch, RequestsThatNobodyAnswersAreKept) {
    const Ipv4 next_hop = *parse_ipv4("198.19.0.3");
    const Ipv6 next_hop6 = *parse_ipv6("fe80::2");
    const NeighbourEvidence evidence = seen({arp_request(kDut, next_hop), in_vlan(arp_request(kDut, next_hop), 5),
                                             neighbour_solicitation(kDut, next_hop6)});
    EXPECT_EQ(evidence.requests, 3U);
    ASSERT_EQ(evidence.unanswered.size(), 2U);
    EXPECT_EQ(to_string(evidence.unanswered[0].target), "198.19.0.3");
    EXPECT_EQ(to_string(evidence.unanswered[0].asker), "198.18.0.1");
    EXPECT_EQ(evidence.unanswered[0].requests, 2U);
    EXPECT_EQ(to_string(evidence.unanswered[1].target), "fe80::2");
    EXPECT_TRUE(evidence.moved.empty());
}

// A VXLAN packet to the host with an ARP request in it, as a DUT sends it that ends the tunnel.
FrameBytes tunnelled(const Host& to, bool ipv6, const FrameBytes& inner) {
    const std::size_t ip_size = ipv6 ? ipv6::kSize : ipv4::kSize, udp_size = udp::kSize + vxlan::kSize + inner.size();
    FrameBytes made(kEthernetPayloadAt + ip_size + udp::kSize + vxlan::kSize);
    std::ranges::copy(to.mac, made.begin());
    std::ranges::copy(kDut.mac, made.begin() + sizeof(Mac));
    store_be16(&made[ethernet::kType], ipv6 ? ethernet::kTypeIpv6 : ethernet::kTypeIpv4);
    std::uint8_t* const ip = &made[kEthernetPayloadAt];
    ip[0] = ipv6 ? ipv6::kFirstByte : ipv4::kFirstByte;
    ip[ipv6 ? ipv6::kNextHeader : ipv4::kProtocol] = kProtocolUdp;
    store_be16(ip + (ipv6 ? ipv6::kPayloadLength : ipv4::kLength),
               static_cast<std::uint16_t>(udp_size + (ipv6 ? 0 : ip_size)));
    ipv6 ? store(ip + ipv6::kSource, *kDut.ipv6) : store(ip + ipv4::kSource, *kDut.ipv4);
    ipv6 ? store(ip + ipv6::kDestination, *to.ipv6) : store(ip + ipv4::kDestination, *to.ipv4);
    store_be16(ip + ip_size + udp::kDestinationPort, udp::kVxlan);
    store_be16(ip + ip_size + udp::kLength, static_cast<std::uint16_t>(udp_size));
    ip[ip_size + udp::kSize + 6] = 77;  // of the VNI
    made.insert(made.end(), inner.begin(), inner.end());
    return made;
}

TEST(NeighbourWatch, ADutThatAsksInATunnelIsAnsweredThere) {
    for (const bool ipv6 : {false, true}) {
        NeighbourWatch watch(kTester, {});
        const FrameBytes asked = tunnelled(kTester, ipv6, arp_request(kDut, *kTester.ipv4));
        const std::vector<FrameBytes> replies = watch.take(asked.data(), asked.size());
        ASSERT_EQ(replies.size(), 1U);
        const FrameBytes& reply = replies.front();
        EXPECT_TRUE(watch.evidence().empty());
        EXPECT_TRUE(std::equal(reply.begin(), reply.begin() + 6, asked.begin() + 6));
        EXPECT_TRUE(std::ranges::equal(std::span(reply).subspan(6, 6), kTester.mac));
        const auto datagram = dns::read_datagram(reply);
        ASSERT_TRUE(datagram);
        EXPECT_EQ(datagram->checksum, dns::Checksum::good);
        EXPECT_EQ(datagram->payload[6], 77);
        const auto message =
            read_neighbour_message(datagram->payload.data() + vxlan::kSize, datagram->payload.size() - vxlan::kSize);
        ASSERT_TRUE(message);
        EXPECT_FALSE(message->is_request);
        EXPECT_EQ(message->sender, ip_of(*kTester.ipv4));
        EXPECT_EQ(message->mac, kTester.mac);
    }
}

TEST(NeighbourWatch, WhatNobodyAnswersInATunnelIsKept) {
    NeighbourWatch watch(kTester, {});
    const FrameBytes asked = tunnelled(kTester, false, arp_request(kDut, *parse_ipv4("198.18.0.99")));
    EXPECT_TRUE(watch.take(asked.data(), asked.size()).empty());
    ASSERT_EQ(watch.evidence().unanswered.size(), 1U);
    EXPECT_EQ(to_string(watch.evidence().unanswered.front().target), "198.18.0.99");
    const FrameBytes cut(asked.begin(), asked.begin() + 44);
    EXPECT_TRUE(watch.take(cut.data(), cut.size()).empty());
    EXPECT_EQ(watch.evidence().requests, 1U);
}

TEST(NeighbourWatch, WhatIsAskedInTunnelsOfOthersIsNotForTheTester) {
    NeighbourWatch watch(kTester, {});
    const FrameBytes asked = tunnelled(kDut, false, arp_request(kTester, *kTester.ipv4));
    EXPECT_TRUE(watch.take(asked.data(), asked.size()).empty());
    EXPECT_TRUE(watch.evidence().empty());
}

TEST(NeighbourWatch, AnswersProbesAndAnnouncementsAreNoUnansweredRequests) {
    Host newcomer = kDut, elsewhere = kDut;
    newcomer.ipv4 = Ipv4{};
    elsewhere.ipv4 = parse_ipv4("198.19.0.9");
    const FrameBytes asked = arp_request(kTester, *kDut.ipv4);
    EXPECT_TRUE(seen({arp_request(kDut, *kTester.ipv4), arp_request(newcomer, *parse_ipv4("198.19.0.9")),
                      arp_request(elsewhere, *elsewhere.ipv4), answers(kDut, asked.data(), asked.size()).front(),
                      neighbour_solicitation(kDut, link_local(kTester.mac))})
                    .empty());
}

TEST(NeighbourWatch, TheTestersOwnRequestsThatABridgePassesOnAreNotTheDuts) {
    Host of_other_port = kDut, host = kTester;
    host.other_hosts = {of_other_port.mac};
    host.vlans = {7};
    const Ipv4 gateway = *parse_ipv4("198.19.0.3");
    const Ipv6 gateway6 = *parse_ipv6("2001:2:0:1::3");
    NeighbourWatch watch(host, {});
    for (const FrameBytes& asked :
         {arp_request(of_other_port, gateway), neighbour_solicitation(of_other_port, gateway6),
          in_vlan(arp_request(of_other_port, gateway), 5), arp_request(kTester, gateway)})
        EXPECT_TRUE(watch.take(asked.data(), asked.size()).empty());
    EXPECT_TRUE(watch.evidence().empty());
}

TEST(NeighbourWatch, AnotherStationWithAnAddressOfTheTesterIsAConflict) {
    Host rogue = kTester, in_range = kTester, dut_in_range = kDut;
    rogue.mac = in_range.mac = *parse_mac("02:00:00:00:00:03");
    in_range.ipv4 = dut_in_range.ipv4 = parse_ipv4("198.18.0.9");
    const FrameBytes asked = neighbour_solicitation(kDut, *kTester.ipv6),
                     advertised = answers(rogue, asked.data(), asked.size()).front(),
                     question = arp_request(kDut, *kTester.ipv4),
                     replied = answers(rogue, question.data(), question.size()).front(),
                     announced = arp_request(rogue, *rogue.ipv4);
    const NeighbourEvidence evidence =
        seen({announced, replied, advertised, arp_request(in_range, *kDut.ipv4)}, std::set<Mac>{});
    ASSERT_EQ(evidence.conflicts.size(), 3U);
    EXPECT_EQ(to_string(evidence.conflicts[0].address), "198.18.0.2");
    EXPECT_EQ(evidence.conflicts[0].messages, 2U);
    EXPECT_EQ(evidence.conflicts[0].mac, rogue.mac);
    EXPECT_EQ(evidence.conflicts[0].holder, kTester.mac);
    EXPECT_EQ(to_string(evidence.conflicts[1].address), "2001:2::2");
    EXPECT_EQ(to_string(evidence.conflicts[2].address), "198.18.0.9");
    EXPECT_FALSE(evidence.conflicts[0].is_gateway);
    EXPECT_FALSE(evidence.conflicts[0].of_range);
    EXPECT_TRUE(
        seen({arp_request(kTester, *kTester.ipv4), question, arp_request(dut_in_range, *kTester.ipv4)}).empty());
    Host bridged = tester_of_a_range();
    bridged.other_hosts = {rogue.mac};
    NeighbourWatch watch(bridged, {});
    watch.take(announced.data(), announced.size());
    EXPECT_TRUE(watch.evidence().empty());
}

TEST(NeighbourWatch, AStationThatAnswersAProbeForAnAddressOfARangeIsAConflictUnlessItIsTheDut) {
    for (const char* text : {"198.18.77.3", "2001:2::77"}) {
        const IpAddress address = text[4] == ':' ? ip_of(*parse_ipv6(text)) : ip_of(*parse_ipv4(text));
        Host station{.mac = *parse_mac("02:00:00:00:00:03"), .ipv4 = address.ipv4(), .ipv6 = address.bytes};
        const FrameBytes probe = address_probe(kTester, address);
        EXPECT_TRUE(seen({probe}).empty());
        const NeighbourEvidence evidence = seen(answers(station, probe.data(), probe.size()));
        ASSERT_EQ(evidence.conflicts.size(), 1U) << text;
        EXPECT_EQ(to_string(evidence.conflicts[0].address), text);
        EXPECT_EQ(evidence.conflicts[0].mac, station.mac);
        EXPECT_TRUE(evidence.conflicts[0].of_range);
        station.mac = kDut.mac;
        EXPECT_TRUE(seen(answers(station, probe.data(), probe.size())).empty());
    }
}

// Whatever a station says with an address of a range as its own is a claim, in both families.
TEST(NeighbourWatch, AnnouncementsAndRequestsFromAnAddressOfARangeAreClaims) {
    Host station{
        .mac = *parse_mac("02:00:00:00:00:03"), .ipv4 = parse_ipv4("198.18.77.3"), .ipv6 = parse_ipv6("2001:2::77")};
    for (const FrameBytes& said :
         {arp_request(station, *station.ipv4), arp_request(station, *kDut.ipv4),
          neighbour_solicitation(station, *kDut.ipv6), in_vlan(neighbour_solicitation(station, *kTester.ipv6), 5)}) {
        const NeighbourEvidence evidence = seen({said});
        ASSERT_EQ(evidence.conflicts.size(), 1U);
        EXPECT_TRUE(evidence.conflicts[0].of_range);
    }
}

TEST(NeighbourWatch, ADutThatHasTheTestersOwnAddressIsAConflict) {
    Host holder = kTester;
    holder.mac = kDut.mac;
    const std::vector<FrameBytes> probes = address_probes(kTester);
    ASSERT_EQ(probes.size(), 2U);
    std::vector<FrameBytes> replies;
    for (const FrameBytes& probe : probes) {
        const auto question = read_neighbour_message(probe.data(), probe.size());
        EXPECT_TRUE(!question || question->wants_no_answer());
        EXPECT_TRUE(seen({probe}).empty());
        std::ranges::copy(answers(holder, probe.data(), probe.size()), std::back_inserter(replies));
    }
    const NeighbourEvidence evidence = seen(replies);
    ASSERT_EQ(evidence.conflicts.size(), replies.size());
    EXPECT_EQ(to_string(evidence.conflicts[0].address), "198.18.0.2");
    EXPECT_TRUE(evidence.conflicts[0].by_dut);
    EXPECT_FALSE(seen(replies, {}).conflicts[0].by_dut);  // the gateway's MAC address is not known
}

TEST(NeighbourWatch, ProbesForAnIpv6AddressFollowTheStandard) {
    const FrameBytes probe = address_probes(kTester).back();
    ASSERT_EQ(probe.size(), ethernet::kSize + ipv6::kSize + 24);  // RFC 4861 4.3: no source option
    EXPECT_EQ(probe[ethernet::kSize + 5], 24);
    const auto sender = probe.begin() + ethernet::kSize + 8;
    EXPECT_TRUE(std::all_of(sender, sender + 16, [](std::uint8_t byte) { return byte == 0; }));
    const std::uint64_t sum = pseudo_header_sum(&*sender, 32, 24, 58) + checksum_add(&*(sender + 32), 24);
    EXPECT_EQ(checksum_finish(sum), 0);
}

TEST(NeighbourResponder, AGatewayWithAnotherMacAddressThanTheRequestGivesIsNamed) {
    const Mac given = *parse_mac("02:12:34:56:78:9a");
    NeighbourResponder::Found found;
    found.wait_for({0});
    found.take(0, kDut.mac);
    NeighbourEvidence evidence;
    found.add_others(ip_of(*kDut.ipv4), kDut.mac, evidence);
    EXPECT_TRUE(evidence.empty());
    found.add_others(ip_of(*kDut.ipv4), given, evidence);
    ASSERT_EQ(evidence.moved.size(), 1U);
    EXPECT_TRUE(evidence.conflicts.empty());
    EXPECT_EQ(evidence.moved[0].mac, kDut.mac);
    EXPECT_EQ(evidence.moved[0].given, given);
}

TEST(NeighbourResponder, TwoStationsThatAnswerForAGatewayAreAConflict) {
    const Mac rogue = *parse_mac("02:00:00:00:00:03");
    const auto conflicts = [](const NeighbourResponder::Found& found) {
        NeighbourEvidence evidence;
        found.add_others(ip_of(*kDut.ipv4), {}, evidence);
        return evidence.conflicts;
    };
    NeighbourResponder::Found found;
    found.wait_for({0});
    found.take(0, rogue);
    found.take(0, kDut.mac);
    found.take(0, kDut.mac);
    ASSERT_EQ(conflicts(found).size(), 1U);
    EXPECT_TRUE(conflicts(found)[0].is_gateway);
    EXPECT_EQ(conflicts(found)[0].mac, rogue);
    EXPECT_EQ(conflicts(found)[0].holder, kDut.mac);
    found.wait_for({0});  // the gateway has moved since it was asked last
    found.take(0, rogue);
    EXPECT_TRUE(conflicts(found).empty());
    NeighbourResponder::Found of_vlans;
    of_vlans.wait_for({10, 20});
    of_vlans.take(10, kDut.mac);
    of_vlans.take(20, rogue);
    EXPECT_TRUE(conflicts(of_vlans).empty());
}

TEST(NeighbourWatch, OnlyAFewOfManyTargetsAreNamed) {
    NeighbourEvidence evidence;
    for (std::uint8_t number = 0; number < 20; ++number) {
        const NeighbourEvidence one =
            seen({arp_request(kDut, Ipv4{198, 19, 0, number}), arp_request(kDut, Ipv4{198, 19, 0, number})});
        evidence.add(one);
    }
    EXPECT_EQ(evidence.requests, 40U);
    EXPECT_EQ(evidence.unanswered.size(), NeighbourEvidence::kMostNamed);
    EXPECT_EQ(evidence.unanswered.front().requests, 2U);
}

TEST(NeighbourWatch, AGatewayWithAnotherMacAddressHasMoved) {
    Host backup = kDut;
    backup.mac = *parse_mac("02:00:00:00:00:03");
    const FrameBytes announced = arp_request(backup, *backup.ipv4), asked = neighbour_solicitation(kTester, *kDut.ipv6),
                     advertised = answers(backup, asked.data(), asked.size()).front();
    const NeighbourEvidence evidence = seen({announced, advertised, advertised});
    ASSERT_EQ(evidence.moved.size(), 2U);
    EXPECT_EQ(to_string(evidence.moved[0].gateway), "198.18.0.1");
    EXPECT_EQ(evidence.moved[0].mac, backup.mac);
    EXPECT_EQ(to_string(evidence.moved[1].gateway), "2001:2::1");
    EXPECT_EQ(evidence.moved[1].messages, 2U);
    EXPECT_EQ(evidence.requests, 0U);
    EXPECT_TRUE(seen({announced}, {}).empty());  // frames are not sent to an address that was asked for
    EXPECT_TRUE(seen({announced, advertised}, {kDut.mac, backup.mac}).empty());  // of another VLAN
}

}  // namespace
}  // namespace dutperf
