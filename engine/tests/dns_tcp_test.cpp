// SPDX-License-Identifier: Apache-2.0
// DNS over TCP by what a DUT sends and gets: connections, queries in any segments, repetitions, windows, resets.
#include "dns/tcp_connections.hpp"

#include <gtest/gtest.h>

#include "tests/ip_packet.hpp"

namespace dutperf::dns {
namespace {

using Buffer = std::vector<std::uint8_t>;
constexpr std::uint8_t kFin = tcp::kFin, kSyn = tcp::kSyn, kRst = tcp::kRst, kPsh = tcp::kPsh, kAck = tcp::kAck;
constexpr std::uint32_t kFirst = 0xFFFFFFF0;  // sequence numbers wrap

NameServer server(bool takes_unfinished = false) {
    return NameServer({.zone = *parse_zone("zone"),
                       .ttl_s = 5,
                       .ipv4 = parse_ipv4("198.19.0.2"),
                       .ipv6 = {*parse_ipv6("2001:2:0:1000::2")},
                       .run = 0x12AB,
                       .trials = {7},
                       .takes_unfinished = takes_unfinished});
}

// A query for the A record of the name with this number, with its length.
Buffer query(std::uint8_t number) {
    Buffer message =
        bytes("0000 0000 0001 0000 0000 0000 13 61 31326162 30303037 30303030303030303030 047a6f6e65 00 0001 0001");
    message[1] = number;
    message[12 + 19] = static_cast<std::uint8_t>('0' + number);
    message.insert(message.begin(), {0, static_cast<std::uint8_t>(message.size())});
    return message;
}
constexpr std::size_t kQuery = 2 + 42, kAnswer = kQuery + 16;

Buffer operator+(Buffer one, const Buffer& other) {
    one.insert(one.end(), other.begin(), other.end());
    return one;
}

// What was received, with its bytes.
struct Received {
    Buffer frame;
    Segment segment;
};

// The DUT's end of a connection.
struct Dut {
    explicit Dut(bool ipv6 = true, std::uint16_t port = 50000, std::size_t most = TcpConnections::kMost)
        : six(ipv6), source_port(port), connections(42, most) {}

    [[nodiscard]] Buffer frame(std::uint8_t flags, const Buffer& payload = {}) const {
        const SegmentHeader header{
            .sequence = next, .acknowledgement = acknowledged, .flags = flags, .window = window, .mss = mss};
        const Endpoints between{
            .source = six ? ip_of(*parse_ipv6("2001:2::2")) : ip_of(*parse_ipv4("198.18.0.2")),
            .destination = six ? ip_of(*parse_ipv6("2001:2:0:1000::2")) : ip_of(*parse_ipv4("198.19.0.2")),
            .source_port = source_port,
            .destination_port = 53};
        const std::size_t at = segment_payload_at(six, header);
        Buffer made(at + payload.size());
        std::ranges::copy(payload, made.begin() + static_cast<std::ptrdiff_t>(at));
        write_segment(made.data(), {.source = {2, 0, 0, 0, 0, 2}, .destination = {2, 0, 0, 0, 0, 1}}, between, header,
                      payload.size());
        return made;
    }
    std::vector<Received> give(const Buffer& frame) {
        EXPECT_TRUE(connections.take(frame, names));
        std::vector<Received> all;
        while (connections.has_next()) {
            Buffer to(TcpConnections::kMostFrameSize);
            to.resize(connections.write_next(to));
            all.push_back({to, *read_segment(to)});
            EXPECT_EQ(all.back().segment.checksum, Checksum::good);
            all.back().segment.payload = Bytes(all.back().frame).last(all.back().segment.payload.size());
        }
        return all;
    }
    // Sends a segment, and takes what arrives for it as TCP does: in order.
    std::vector<Received> send(std::uint8_t flags, const Buffer& payload = {}) {
        auto all = give(frame(flags, payload));
        next += static_cast<std::uint32_t>(payload.size()) + ((flags & (kSyn | kFin)) != 0 ? 1U : 0U);
        for (const Received& one : all) accept(one.segment);
        return all;
    }
    void accept(const Segment& segment) {
        if (segment.is(kSyn)) acknowledged = segment.sequence;
        if (segment.sequence != acknowledged) return;
        acknowledged += segment.length();
        stream.insert(stream.end(), segment.payload.begin(), segment.payload.end());
    }
    void connect() {
        mss.emplace(1440);
        send(kSyn);
        mss.reset();
        send(kAck);
    }
    // The numbers in the answers that have come, in order.
    [[nodiscard]] std::vector<int> answers() const {
        std::vector<int> numbers;
        for (std::size_t at = 0; at + 2 <= stream.size(); at += 2 + load_be16(&stream[at])) {
            const auto message = read_message(Bytes(stream).subspan(at + 2, load_be16(&stream[at])));
            EXPECT_TRUE(message && message->header.is(header::kResponse) && message->rcode() == Rcode::noerror);
            numbers.push_back(message ? message->header.id : -1);
        }
        return numbers;
    }

    bool six;
    std::uint16_t source_port;
    TcpConnections connections;
    NameServer names = server();
    std::uint32_t next = kFirst, acknowledged = 0;
    std::uint16_t window = 64240;
    std::optional<std::uint16_t> mss;
    Buffer stream;
};

std::uint8_t flags_of(const std::vector<Received>& all) { return all.size() == 1 ? all[0].segment.flags : 0; }

TEST(DnsTcp, AConnectionFromItsBeginningToItsEnd) {
    for (const bool six : {false, true}) {
        Dut dut(six);
        dut.mss.emplace(1440);
        const auto opened = dut.send(kSyn);
        ASSERT_EQ(flags_of(opened), kSyn | kAck);
        EXPECT_EQ(opened[0].segment.acknowledgement, kFirst + 1);
        EXPECT_EQ(opened[0].segment.mss, TcpConnections::kMss);
        EXPECT_EQ(Buffer(opened[0].frame.begin(), opened[0].frame.begin() + 12), bytes("020000000002 020000000001"));
        EXPECT_EQ(opened[0].segment.between.source_port, 53);
        EXPECT_EQ(opened[0].segment.between.destination_port, 50000);
        dut.mss.reset();
        EXPECT_TRUE(dut.send(kAck).empty());
        const auto answered = dut.send(kAck | kPsh, query(5));
        ASSERT_EQ(flags_of(answered), kAck | kPsh);
        EXPECT_EQ(answered[0].segment.acknowledgement, dut.next);
        EXPECT_EQ(answered[0].segment.payload.size(), kAnswer);
        EXPECT_EQ(dut.answers(), (std::vector{5}));
        EXPECT_TRUE(dut.send(kAck).empty());
        EXPECT_EQ(flags_of(dut.send(kFin | kAck)), kFin | kAck);
        EXPECT_TRUE(dut.send(kAck).empty());
        EXPECT_EQ(flags_of(dut.send(kAck)), kRst) << "the connection has ended";
        EXPECT_EQ(dut.names.counts().tcp, 1U);
        EXPECT_EQ(dut.names.counts().a, 1U);
        EXPECT_EQ(dut.connections.answered(), 1U);
    }
}

TEST(DnsTcp, QueriesBeforeTheFirstAnswerHaveAnswersOneAfterTheOther) {
    Dut dut;
    dut.connect();
    auto first = dut.give(dut.frame(kAck | kPsh, query(1)));
    dut.next += kQuery;
    auto second = dut.give(dut.frame(kAck | kPsh, query(2)));
    dut.next += kQuery;
    ASSERT_EQ(first.size() + second.size(), 2U);
    EXPECT_EQ(second[0].segment.sequence, first[0].segment.sequence + kAnswer);
    dut.accept(first[0].segment);
    dut.accept(second[0].segment);
    EXPECT_EQ(dut.answers(), (std::vector{1, 2}));
}

TEST(DnsTcp, SeveralQueriesInASegment) {
    Dut dut;
    dut.connect();
    Buffer many;
    for (std::uint8_t number = 0; number < 9; ++number) many = many + query(number);
    const auto all = dut.send(kAck | kPsh, many);
    EXPECT_EQ(all.size(), 2U) << "540 bytes";
    for (const Received& one : all) EXPECT_LE(one.segment.payload.size(), TcpConnections::kMss);
    EXPECT_EQ(dut.answers(), (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(DnsTcp, AQueryInTwoSegmentsCutAnywhere) {
    const Buffer both = query(3) + query(4);
    for (std::size_t cut = 1; cut < both.size(); ++cut) {
        Dut dut;
        dut.connect();
        const auto at = both.begin() + static_cast<std::ptrdiff_t>(cut);
        const auto before = dut.send(kAck | kPsh, Buffer(both.begin(), at));
        ASSERT_EQ(before.size(), 1U);
        EXPECT_EQ(before[0].segment.acknowledgement, dut.next);
        dut.send(kAck | kPsh, Buffer(at, both.end()));
        EXPECT_EQ(dut.answers(), (std::vector{3, 4})) << cut;
    }
}

TEST(DnsTcp, AQueryByTheByte) {
    Dut dut;
    dut.connect();
    for (const std::uint8_t byte : query(6)) dut.send(kAck | kPsh, {byte});
    EXPECT_EQ(dut.answers(), (std::vector{6}));
}

TEST(DnsTcp, AQueryWithTheEndOfTheStream) {
    Dut dut;
    dut.connect();
    const auto all = dut.send(kFin | kAck | kPsh, query(1));
    EXPECT_EQ(flags_of(all), kFin | kAck | kPsh);
    EXPECT_EQ(dut.answers(), (std::vector{1}));
    EXPECT_EQ(all[0].segment.acknowledgement, dut.next - (1 - 1)) << "the FIN too";
}

TEST(DnsTcp, ARepeatedQueryHasTheSameAnswerAndCountsOnce) {
    Dut dut;
    dut.connect();
    const Buffer sent = dut.frame(kAck | kPsh, query(1));
    const auto first = dut.give(sent), again = dut.give(sent);
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again[0].frame, first[0].frame);
    EXPECT_EQ(dut.names.counts().a, 1U);
    EXPECT_EQ(dut.connections.answered(), 1U);
}

TEST(DnsTcp, AnAnswerThatTheDutLostIsRepeatedAtItsDuplicateAck) {
    Dut dut;
    dut.connect();
    dut.give(dut.frame(kAck | kPsh, query(1)));  // its answer is lost
    dut.next += kQuery;
    const auto second = dut.give(dut.frame(kAck | kPsh, query(2)));
    dut.next += kQuery;
    for (const Received& one : second) dut.accept(one.segment);
    EXPECT_TRUE(dut.answers().empty());
    dut.send(kAck);
    EXPECT_EQ(dut.answers(), (std::vector{1, 2}));
    EXPECT_TRUE(dut.give(dut.frame(kAck)).empty());
}

TEST(DnsTcp, ASegmentThatCameTooEarlyIsNotTaken) {
    Dut dut;
    dut.connect();
    const Buffer first = dut.frame(kAck | kPsh, query(1));
    dut.next += kQuery;
    const Buffer second = dut.frame(kAck | kPsh, query(2));
    const auto early = dut.give(second);
    ASSERT_EQ(flags_of(early), kAck);
    EXPECT_EQ(early[0].segment.acknowledgement, kFirst + 1);
    for (const Buffer& frame : {first, second}) {
        for (const Received& one : dut.give(frame)) dut.accept(one.segment);
    }
    EXPECT_EQ(dut.answers(), (std::vector{1, 2}));
}

TEST(DnsTcp, NoMoreIsSentThanTheWindowHasRoomFor) {
    Dut dut;
    dut.connect();
    dut.window = 70;
    const auto first = dut.send(kAck | kPsh, query(1) + query(2));
    ASSERT_EQ(first.size(), 1U);
    EXPECT_EQ(first[0].segment.payload.size(), 70U);
    dut.window = 64240;
    dut.send(kAck);
    EXPECT_EQ(dut.answers(), (std::vector{1, 2}));
}

TEST(DnsTcp, SegmentsAreNoLargerThanTheDutTakes) {
    for (const auto& [named, most] : {std::pair<int, std::size_t>{100, 100}, {9000, 512}, {1, 64}}) {
        Dut dut;
        dut.mss.emplace(static_cast<std::uint16_t>(named));
        dut.send(kSyn);
        dut.mss.reset();
        std::size_t largest = 0;
        for (const Received& one : dut.send(kAck, query(1) + query(2) + query(3) + query(4) + query(5) + query(6) +
                                                      query(7) + query(8) + query(9)))
            largest = std::max(largest, one.segment.payload.size());
        EXPECT_EQ(largest, most);
    }
}

TEST(DnsTcp, WhatBelongsToNoConnectionIsReset) {
    for (const std::uint8_t flags : {kAck, std::uint8_t{kAck | kPsh}, std::uint8_t{kFin | kAck}, std::uint8_t{0}, kFin,
                                     std::uint8_t{kSyn | kAck}, std::uint8_t{kSyn | kFin}}) {
        Dut dut;
        dut.acknowledged = 77;
        const auto all = dut.give(dut.frame(flags, {1, 2, 3}));
        ASSERT_EQ(all.size(), 1U) << int{flags};
        const Segment& reset = all[0].segment;
        if ((flags & kAck) != 0) {
            EXPECT_EQ(reset.flags, kRst);
            EXPECT_EQ(reset.sequence, 77U);
        } else {
            const std::uint32_t length = 3 + ((flags & kSyn) != 0 ? 1U : 0U) + ((flags & kFin) != 0 ? 1U : 0U);
            EXPECT_EQ(reset.flags, kRst | kAck);
            EXPECT_EQ(reset.sequence, 0U);
            EXPECT_EQ(reset.acknowledgement, kFirst + length);
        }
    }
    Dut dut;
    EXPECT_TRUE(dut.give(dut.frame(kRst)).empty()) << "a reset has no answer";
}

TEST(DnsTcp, AResetEndsTheConnectionItIsFor) {
    Dut dut;
    dut.connect();
    const std::uint32_t next = dut.next;
    dut.next -= 1000;
    EXPECT_TRUE(dut.give(dut.frame(kRst)).empty());
    dut.next = next;
    EXPECT_EQ(flags_of(dut.send(kAck | kPsh, query(1))), kAck | kPsh) << "not by an old one";
    EXPECT_TRUE(dut.give(dut.frame(kRst)).empty());
    EXPECT_EQ(flags_of(dut.send(kAck | kPsh, query(2))), kRst);
}

TEST(DnsTcp, ARepeatedSynGetsTheSameAnswerAndANewOneANewConnection) {
    Dut dut;
    const Buffer syn = dut.frame(kSyn);
    const auto first = dut.give(syn), again = dut.give(syn);
    EXPECT_EQ(first[0].frame, again[0].frame);
    dut.send(kSyn);
    dut.send(kAck | kPsh, query(1));
    EXPECT_EQ(flags_of(dut.give(syn)), kAck) << "it does not end an open connection";
    dut.send(kAck | kPsh, query(2));
    EXPECT_EQ(dut.answers(), (std::vector{1, 2}));
    dut.next = 5;
    dut.stream.clear();
    EXPECT_NE(dut.send(kSyn)[0].segment.sequence, first[0].segment.sequence);
    dut.send(kAck | kPsh, query(3));
    EXPECT_EQ(dut.answers(), (std::vector{3}));
}

TEST(DnsTcp, AWrongAcknowledgementOpensNothing) {
    Dut dut;
    dut.send(kSyn);
    ++dut.acknowledged;
    EXPECT_EQ(flags_of(dut.give(dut.frame(kAck | kPsh, query(1)))), kRst);
    EXPECT_EQ(dut.names.counts().a, 0U);
}

TEST(DnsTcp, WhatIsNoQueryIsCountedAndEndsNothingElse) {
    Dut dut;
    dut.connect();
    dut.send(kAck | kPsh, Buffer{0, 0} + Buffer{0, 3, 1, 2, 3} + query(1));
    EXPECT_EQ(dut.answers(), (std::vector{1}));
    EXPECT_EQ(dut.names.counts().malformed, 2U);
    EXPECT_EQ(flags_of(dut.send(kAck | kPsh, {0xFF, 0xFF})), kRst) << "longer than any query";
    EXPECT_EQ(dut.names.counts().malformed, 3U);
    EXPECT_EQ(flags_of(dut.send(kAck | kPsh, query(2))), kRst);
}

TEST(DnsTcp, OnlyIntactSegmentsToTheServerAreTaken) {
    Dut dut;
    dut.connect();
    const Buffer whole = dut.frame(kAck | kPsh, query(1));
    for (std::size_t at = kIpv6Layout.transport_at() + 4; at < whole.size(); ++at) {
        Buffer corrupted = whole;
        corrupted[at] ^= 1U;
        EXPECT_TRUE(dut.give(corrupted).empty()) << at;
    }
    EXPECT_EQ(dut.names.counts().a, 0U);
    EXPECT_EQ(dut.names.counts().malformed, whole.size() - kIpv6Layout.transport_at() - 4);
    Buffer other_port = whole, other_address = whole;
    other_port[kIpv6Layout.transport_at() + tcp::kDestinationPort + 1] ^= 1U;
    other_address[kIpv6Layout.destination_at()] ^= 1U;
    for (const Buffer& one : {other_port, other_address}) EXPECT_FALSE(dut.connections.take(one, dut.names));
    for (std::size_t length = 0; length < whole.size(); ++length) {
        dut.connections.take(Bytes(whole).first(length), dut.names);
        EXPECT_FALSE(dut.connections.has_next()) << length;
    }
    EXPECT_EQ(flags_of(dut.give(whole)), kAck | kPsh);
}

TEST(DnsTcp, UnfinishedChecksumsWhereTheyMayBe) {
    Dut dut;
    Buffer syn = dut.frame(kSyn);
    const auto length = static_cast<std::uint16_t>(syn.size() - 54);
    store(&syn[54 + tcp::kChecksum],
          checksum_fold(pseudo_header_sum(&syn[14 + ipv6::kSource], 32, length, kProtocolTcp)));
    EXPECT_TRUE(dut.give(syn).empty());
    dut.names = server(true);
    EXPECT_EQ(flags_of(dut.give(syn)), kSyn | kAck);
}

TEST(DnsTcp, TheConnectionUnusedForLongestMakesRoom) {
    Dut dut(true, 1000, 8);
    for (dut.source_port = 1000; dut.source_port < 1009; ++dut.source_port) dut.give(dut.frame(kSyn));
    EXPECT_EQ(dut.connections.evicted(), 1U);
    for (dut.source_port = 1000; dut.source_port < 1009; ++dut.source_port) {
        dut.next = kFirst;
        const auto all = dut.give(dut.frame(kSyn));  // its own again: the first of them takes the place of the next
        EXPECT_EQ(all.size(), 1U);
    }
    dut.connections.begin_trial();
    EXPECT_EQ(dut.connections.evicted(), 0U);
    dut.give(dut.frame(kSyn));
    EXPECT_EQ(dut.connections.evicted(), 0U) << "of an earlier trial";
}

TEST(DnsTcp, AConnectionGoesOnInTheNextTrial) {
    Dut dut;
    dut.connect();
    dut.send(kAck | kPsh, query(1));
    dut.connections.begin_trial();
    dut.send(kAck | kPsh, query(2));
    EXPECT_EQ(dut.answers(), (std::vector{1, 2}));
    EXPECT_EQ(dut.connections.answered(), 1U);
}

TEST(DnsTcp, ADutThatAcknowledgesNothingGetsNoMoreThanItsWindow) {
    Dut dut;
    dut.connect();
    std::size_t sent = 0;
    for (int i = 0; i < 5000; ++i) {
        for (const Received& one : dut.give(dut.frame(kAck | kPsh, query(1)))) sent += one.segment.payload.size();
        dut.next += kQuery;
    }
    EXPECT_EQ(sent, dut.window);
    EXPECT_LT(dut.connections.answered(), 65536 / kAnswer + 2);
}

}  // namespace
}  // namespace dutperf::dns
