// SPDX-License-Identifier: Apache-2.0
// Lists of frames: what is in them, when they are due, what is sent of them, and what is counted without a tag.
#include "trial/replay_source.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "frame/arrival.hpp"
#include "frame/dissect.hpp"
#include "measure/length_match.hpp"
#include "pace/schedule.hpp"
#include "platform/eal.hpp"
#include "port/pool.hpp"
#include "tests/test_frame.hpp"
#include "trial/length_log.hpp"

namespace dutperf {
namespace {

constexpr Mac kSource{2, 0, 0, 0, 0, 1}, kNextHop4{2, 0, 0, 0, 0, 4}, kNextHop6{2, 0, 0, 0, 0, 6};

Bytes udp_frame(std::uint16_t size, bool ipv6 = false) { return test_frame({.ipv6 = ipv6, .size = size}); }

// A frame whose payload is not a tag.
Bytes plain_frame(std::uint16_t size) {
    Bytes bytes = udp_frame(size);
    std::fill(bytes.begin() + kIpv4Layout.tag_at(), bytes.end(), std::uint8_t{0x5A});
    return bytes;
}

struct BadFrame {
    FrameList::Given given;
    std::string member;
};

TEST(FrameList, RefusesWhatCannotBeSent) {
    FrameList list;
    ASSERT_EQ(list.add({.at_ns = 5, .bytes = plain_frame(64)}), "");
    Bytes fragment = plain_frame(200);
    fragment[kIpv4Layout.ip_at() + ipv4::kFragment] = 0x20;
    std::vector<BadFrame> rows;
    const auto bad = [&](const char* member, const Bytes& bytes, std::uint16_t tag_at = FrameList::kNoTag,
                         std::uint64_t at_ns = 5) {
        BadFrame& row = rows.emplace_back();
        row.given.at_ns = at_ns;
        row.given.bytes = bytes;
        row.given.tag_at = tag_at;
        row.member = member;
    };
    bad("bytes", Bytes(59));
    bad("bytes", Bytes(kMaxFrameSize - kFcsSize + 1));
    bad("at_ns", plain_frame(64), FrameList::kNoTag, 4);
    bad("tag_at", plain_frame(200), 101);
    bad("tag_at", plain_frame(200), 178);
    bad("tag_at", fragment, 176);
    bad("tag_at", udp_frame(200), 176);
    for (const BadFrame& row : rows)
        EXPECT_EQ(list.add(row.given).substr(0, row.member.size()), row.member) << row.given.bytes.size();
    EXPECT_EQ(list.size(), 1U);
    EXPECT_EQ(list.bytes(), 60U);
}

TEST(FrameList, NumbersFramesWithATag) {
    FrameList list;
    const std::array<bool, 5> tagged{false, true, true, false, true};
    for (const bool one : tagged)
        ASSERT_EQ(list.add({.bytes = plain_frame(200), .tag_at = one ? std::uint16_t{176} : FrameList::kNoTag}), "");
    std::uint64_t number = 0;
    for (std::uint64_t k = 0; k < 23; ++k) {
        EXPECT_EQ(list.tagged_among(k), number) << k;
        if (tagged[k % tagged.size()]) {
            EXPECT_EQ(list.number_of_tagged(number++), k);
        }
    }
}

struct LengthRow {
    const char* what;
    Bytes frame;
    LengthOf of;
    std::uint16_t bytes;
};

Bytes with_vlan(Bytes frame) {
    frame.insert(frame.begin() + ethernet::kType, {0x81, 0x00, 0x00, 0x05});
    return frame;
}
Bytes padded(Bytes frame) {
    frame.resize(frame.size() + 20);
    return frame;
}
Bytes arp() {
    Bytes frame(60);
    frame[12] = 0x08;
    frame[13] = 0x06;
    return frame;
}
Bytes with_length(Bytes frame, std::uint16_t length) {
    store_be16(&frame[kIpv4Layout.ip_at() + ipv4::kLength], length);
    return frame;
}

// A DUT that forwards, tags, untags, pads or translates a frame does not change its length.
TEST(PacketLength, IsThatOfThePayload) {
    const std::vector<LengthRow> rows{
        {"IPv4", plain_frame(200), LengthOf::ipv4, 162},
        {"IPv4 in a VLAN", with_vlan(plain_frame(200)), LengthOf::ipv4, 162},
        {"IPv4 in five VLANs", with_vlan(with_vlan(with_vlan(with_vlan(with_vlan(plain_frame(200)))))), LengthOf::ipv4,
         162},
        {"IPv4 with padding", padded(plain_frame(200)), LengthOf::ipv4, 162},
        {"its translation", udp_frame(220, true), LengthOf::ipv6, 162},
        {"an IPv4 header of an impossible length", with_length(plain_frame(200), 19), LengthOf::other, 196},
        {"ARP", arp(), LengthOf::other, 60},
        {"ARP in a VLAN", with_vlan(arp()), LengthOf::other, 60},
        {"less than a header", Bytes(9), LengthOf::other, 9},
    };
    for (const LengthRow& row : rows) {
        const PacketLength length = packet_length(row.frame.data(), row.frame.size());
        EXPECT_EQ(length.of, row.of) << row.what;
        EXPECT_EQ(length.bytes, row.bytes) << row.what;
    }
}

TEST(LengthLog, KnowsHowManyFramesOfALongTrialHaveBeenSent) {
    std::atomic<std::uint64_t> sent = (std::uint64_t{1} << 32U) + 70;
    LengthLog log({.sent = &sent, .in_hand = 30, .frames_for_neighbours = false, .only_untagged = false}, 10);
    const Bytes frame = plain_frame(200);
    log.note(frame.data(), frame.size());
    log.count_untagged_only([](std::uint64_t frames) { return frames / 100; });
    EXPECT_EQ(log.arrivals().sent[0], 42'949'673U);
}

// Otherwise what came while nothing had been sent would hide up to a burst of losses.
TEST(LengthLog, WhatCameBeforeTheStartIsNoFrameOfTheTrial) {
    constexpr std::uint64_t kSent = 10;
    std::atomic<std::uint64_t> sent = 0;
    LengthLog log({.sent = &sent, .in_hand = 32, .frames_for_neighbours = false, .only_untagged = true}, kSent);
    log.start(100);
    const Bytes frame = plain_frame(200);
    const auto arrive = [&](Ticks at) {
        if (log.may_be(frame.data(), frame.size(), at)) log.note(frame.data(), frame.size());
    };
    for (Ticks at = 95; at < 100; ++at) arrive(at);
    sent = kSent;
    for (Ticks at = 105; at < 110; ++at) arrive(at);
    EXPECT_EQ(match_lengths(LengthCycle({162}), kSent, log.arrivals()).in_order, 5U);
}

TEST(PacketLength, LeavesOutAFragmentHeader) {
    Bytes frame = udp_frame(220, true);
    frame[kIpv6Layout.ip_at() + ipv6::kNextHeader] = ipv6::kFragment;
    EXPECT_EQ(packet_length(frame.data(), frame.size()).bytes, 154);
}

TEST(PacketLength, KnowsFramesForNeighbours) {
    Bytes multicast4 = plain_frame(100), multicast6 = udp_frame(100, true), bridge = plain_frame(100);
    const std::array<std::uint8_t, 4> group{224, 0, 0, 5};
    std::ranges::copy(group, &multicast4[kIpv4Layout.destination_at()]);
    multicast6[kIpv6Layout.destination_at()] = 0xFF;
    multicast6[kIpv6Layout.destination_at() + 1] = 0x02;
    const std::array<std::uint8_t, 6> stp{0x01, 0x80, 0xC2, 0, 0, 0};
    std::ranges::copy(stp, bridge.begin());
    for (const Bytes& frame : {arp(), multicast4, multicast6, bridge})
        EXPECT_TRUE(is_for_neighbours(frame.data(), frame.size()));
    for (const Bytes& frame : {plain_frame(100), udp_frame(100, true), Bytes(5)})
        EXPECT_FALSE(is_for_neighbours(frame.data(), frame.size()));
}

TEST(Recorded, CountsFramesBeforeATimeByDueTime) {
    const auto times = std::make_shared<const std::vector<std::uint64_t>>(
        std::initializer_list<std::uint64_t>{0, 0, 7, 7, 7, 100, 2'000'000'000});
    const Recorded recorded(times, 2'000'000'001);
    for (std::uint64_t k = 0; k < 30; ++k) {
        std::uint64_t before = k;
        while (before > 0 && recorded.due_ns(before - 1) == recorded.due_ns(k)) --before;
        EXPECT_EQ(recorded.frames_before(recorded.due_ns(k)), before) << k;
        EXPECT_GT(recorded.frames_before(recorded.due_ns(k) + 1), k);
    }
    EXPECT_EQ(recorded.due_ns(7 * 3 + 2), 3 * 2'000'000'001ULL + 7);
}

TEST(Recorded, FramesAreNotEarlierThanListed) {
    constexpr std::uint64_t kHz = 2'596'122'131;
    const auto times = std::make_shared<std::vector<std::uint64_t>>();
    std::mt19937_64 random(3);
    for (std::uint64_t at = 0; times->size() < 500; at += random() % 4 == 0 ? random() % 100'000 : 0)
        times->push_back(at);
    const Recorded recorded(times, times->back() + 1);
    Listed schedule(RecordedTimes(recorded, kHz), 1700, 32);
    schedule.start(1000);
    for (std::uint64_t k = 0; k < 1700; ++k) {
        ASSERT_EQ(schedule.next_due(), 1000 + ticks_of(recorded.due_ns(k), kHz)) << k;
        schedule.advance(1);
    }
    EXPECT_TRUE(schedule.finished());
}

// The rate while many frames come at once, not the mean.
TEST(Recorded, KnowsItsHighestRate) {
    const auto times = std::make_shared<std::vector<std::uint64_t>>();
    for (std::uint64_t k = 0; k < 200; ++k) times->push_back(k * 1'000'000);
    for (std::uint64_t k = 0; k < 100; ++k) times->push_back(300'000'000 + k * 1000);
    EXPECT_EQ(Recorded(times, 1'000'000'000).highest_fps(), 1'000'000U);
}

rte_mempool* pool() {
    static const Pool one = [] {
        start_eal({.memory = MemoryChoice::no_huge_pages, .megabytes = 64, .pci_devices = {}});
        return make_pool({.name = "replay", .count = 1023, .frame_size = 1518});
    }();
    return one.get();
}

// Every Internet checksum over a frame that has got a tag is as it was.
TEST(ReplaySource, SendsFramesAsTheyAre) {
    const auto list = std::make_shared<FrameList>();
    std::mt19937 random(5);
    std::vector<FrameList::Given> given;
    for (std::uint16_t i = 0; i < 7; ++i) {
        Bytes bytes = plain_frame(static_cast<std::uint16_t>(100 + 100 * i));
        for (std::size_t at = kIpv4Layout.tag_at(); at < bytes.size(); ++at)
            bytes[at] = static_cast<std::uint8_t>(random());
        given.push_back({.bytes = bytes,
                         .source_mac_of_port = i % 2 == 0,
                         .destination = static_cast<NextHop>(i % 3),
                         .tag_at = i % 3 == 1 ? static_cast<std::uint16_t>(bytes.size() - 20) : FrameList::kNoTag});
        ASSERT_EQ(list->add(given.back()), "");
    }
    ReplaySource source({.pool = pool(),
                         .list = list,
                         .source = kSource,
                         .destination = {Mac{}, kNextHop4, kNextHop6},
                         .trial = 9,
                         .path = mark_of_path(1),
                         .generation = 1});
    std::array<rte_mbuf*, 32> frames{};
    std::uint64_t tags = 0;
    for (std::uint64_t k = 0; k < 96; k += frames.size()) {
        ASSERT_TRUE(source.make(k, frames.size(), 0, frames.data()));
        for (std::size_t i = 0; i < frames.size(); ++i) {
            const FrameList::Given& one = given[(k + i) % given.size()];
            Bytes expected = one.bytes;
            if (one.destination == NextHop::ipv4) std::ranges::copy(kNextHop4, expected.begin());
            if (one.destination == NextHop::ipv6) std::ranges::copy(kNextHop6, expected.begin());
            if (one.source_mac_of_port) std::ranges::copy(kSource, expected.begin() + 6);
            const auto* sent = rte_pktmbuf_mtod(frames[i], const std::uint8_t*);
            ASSERT_EQ(rte_pktmbuf_data_len(frames[i]), expected.size());
            if (one.tag_at != FrameList::kNoTag) {
                const Tag tag = read_tag(sent + one.tag_at);
                EXPECT_TRUE(has_signature(sent + one.tag_at));
                EXPECT_EQ(tag.sequence, tags++);
                EXPECT_EQ(tag.trial, 9);
                EXPECT_EQ(checksum_fold(checksum_add(sent + 14, expected.size() - 14)),
                          checksum_fold(checksum_add(expected.data() + 14, expected.size() - 14)));
                std::copy_n(sent + one.tag_at, 20, expected.begin() + one.tag_at);
            }
            EXPECT_EQ(Bytes(sent, sent + expected.size()), expected) << k + i;
        }
        rte_pktmbuf_free_bulk(frames.data(), frames.size());
    }
    EXPECT_EQ(tags, list->tagged_among(96));
}

TEST(ReplaySource, MakesNothingWithoutBuffers) {
    const auto list = std::make_shared<FrameList>();
    ASSERT_EQ(list->add({.bytes = plain_frame(64)}), "");
    ReplaySource source(
        {.pool = pool(), .list = list, .source = {}, .destination = {}, .trial = 0, .path = {}, .generation = 1});
    std::array<rte_mbuf*, 512> frames{};
    ASSERT_TRUE(source.make(0, 512, 0, frames.data()));
    std::array<rte_mbuf*, 512> more{};
    EXPECT_FALSE(source.make(0, 512, 0, more.data()));
    rte_pktmbuf_free_bulk(frames.data(), 512);
}

LengthMatch matched(const std::vector<std::uint16_t>& cycle, std::uint64_t sent,
                    const std::vector<std::uint16_t>& arrived, std::vector<std::uint64_t> sent_then = {}) {
    sent_then.resize(arrived.size(), sent);
    return match_lengths(LengthCycle(cycle), sent, {arrived, sent_then});
}

struct MatchRow {
    const char* what;
    std::vector<std::uint16_t> arrived;
    std::uint64_t in_order, reordered, extra;
};

TEST(LengthMatch, FindsTheFewestLosses) {
    const std::vector<std::uint16_t> cycle{1, 2, 3, 4, 5, 6};
    const std::vector<MatchRow> rows{
        {"all", {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}, 12, 0, 0},
        {"nothing", {}, 0, 0, 0},
        {"losses", {2, 4, 6, 1, 5}, 5, 0, 0},
        {"a loss of many", {1, 6}, 2, 0, 0},
        {"reordered", {2, 1, 3, 4, 5, 6, 1, 2, 3, 4, 6, 5}, 10, 2, 0},
        {"extra", {1, 9, 2, 3, 9, 4, 5, 6}, 6, 0, 2},
        {"extra that leads astray", {6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}, 12, 0, 1},
        {"extra with the length of a lost one, elsewhere", {1, 2, 5, 3, 4, 6, 1, 2, 3, 4, 5, 6}, 11, 1, 0},
        {"other lengths", {21, 22, 23}, 0, 0, 3},
    };
    for (const MatchRow& row : rows) {
        const LengthMatch match = matched(cycle, 12, row.arrived);
        EXPECT_EQ(match.in_order, row.in_order) << row.what;
        EXPECT_EQ(match.reordered, row.reordered) << row.what;
        EXPECT_EQ(match.extra, row.extra) << row.what;
    }
}

// An arrival is no frame that had not been sent yet.
TEST(LengthMatch, KnowsWhatHadBeenSent) {
    EXPECT_EQ(matched({1, 2, 3}, 3, {3}).in_order, 1U);
    EXPECT_EQ(matched({1, 2, 3}, 3, {3}, {2}).extra, 1U);
    const LengthMatch match = matched({1, 2, 3}, 3, {3, 1, 2, 3}, {1, 1, 2, 3});
    EXPECT_EQ(match.in_order, 3U);
    EXPECT_EQ(match.extra, 1U);
}

TEST(LengthMatch, PairsOnlyWithinADistance) {
    std::vector<std::uint16_t> cycle(3 * kReorderedWithin, 7), arrived(cycle.size() - 1, 7);
    cycle[0] = 1;
    arrived.insert(arrived.begin() + 500, 1);
    EXPECT_EQ(matched(cycle, cycle.size(), arrived).reordered, 1U);
    std::vector<std::uint16_t> later(cycle.size() - 1, 7);
    later.insert(later.begin() + 2 * kReorderedWithin, 1);
    const LengthMatch match = matched(cycle, cycle.size(), later);
    EXPECT_EQ(match.reordered, 0U);
    EXPECT_EQ(match.extra, 1U);
}

TEST(LengthMatch, FindsAConstantChange) {
    const LengthCycle cycle({100, 200, 300, 400});
    const std::vector<std::uint16_t> changed{150, 250, 350, 450, 150}, same{100, 200, 400}, none{7, 9000};
    EXPECT_EQ(fitting_change(cycle, 5, changed, 0), 50);
    EXPECT_EQ(fitting_change(cycle, 5, same, 3), 0);
    EXPECT_EQ(fitting_change(cycle, 5, none, 0), 0);
}

// Millions of frames, some lost, some out of order.
TEST(LengthMatch, TakesLongTrials) {
    std::mt19937 random(1);
    std::vector<std::uint16_t> cycle(100'000);
    for (auto& length : cycle) length = static_cast<std::uint16_t>(random() % 3 == 0 ? 1500 : 40 + random() % 1400);
    const std::uint64_t sent = 2'000'000;
    std::vector<std::uint16_t> arrived;
    for (std::uint64_t k = 0; k < sent; ++k) {
        if (random() % 10'000 == 0) k += random() % 5000;  // losses in runs
        if (random() % 100 != 0) arrived.push_back(cycle[k % cycle.size()]);
    }
    arrived.resize(std::min<std::size_t>(arrived.size(), sent));
    const std::uint64_t came = arrived.size();
    for (std::size_t i = 1000; i + 1 < arrived.size(); i += 10'000) std::swap(arrived[i], arrived[i + 1]);
    const LengthMatch match = matched(cycle, sent, arrived);
    EXPECT_GT(match.in_order + match.reordered, came - came / 10'000);
    EXPECT_EQ(match.in_order + match.reordered + match.extra, came);
}

}  // namespace
}  // namespace dutperf
