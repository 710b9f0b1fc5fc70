// SPDX-License-Identifier: Apache-2.0
// Described frames of connections have the bytes of plain ones.
#include "trial/connection_columns.hpp"

#include <gtest/gtest.h>

#include <random>

#include "platform/eal.hpp"
#include "port/pool.hpp"
#include "trial/described_source.hpp"
#include "trial/responder_source.hpp"

namespace dutperf {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr Mac kSource{2, 0, 0, 0, 0, 1}, kDestination{2, 0, 0, 0, 0, 2};
constexpr std::uint32_t kConnections = 3000, kGeneration = 1U << 22U;
constexpr std::uint64_t kFrames = 400, kStamp = 0x12'3456'789A;
const FieldSpec kSourcePorts{FieldMode::random, 1024, 1103}, kDestinationPort{FieldMode::fixed, 7, 7},
    kSourceAddresses{FieldMode::random, 0xFFF0, 0xFFF8}, kDestinationAddresses{FieldMode::random, 2, 6};

ConnectionSpace space() {
    return {.source_port = kSourcePorts,
            .destination_port = kDestinationPort,
            .source_address = kSourceAddresses,
            .destination_address = kDestinationAddresses,
            .order = ConnectionOrder::random,
            .seed = 5};
}

Pool pool_of(unsigned count = 1023) {
    start_eal({.memory = MemoryChoice::no_huge_pages, .megabytes = 64, .pci_devices = {}});
    static int number = 0;
    return make_pool({.name = "connected_" + std::to_string(number++), .count = count, .frame_size = 1518});
}

FrameTemplate plain(bool ipv6, bool replies) {
    const IpPair v4{*parse_ipv4("198.18.0.2"), *parse_ipv4(replies ? "0.0.0.0" : "198.19.0.2")},
        v6{*parse_ipv6("2001:2::2"), *parse_ipv6(replies ? "::" : "2001:2:0:8000::2")};
    const AddressVariations vary{.source = AddressVariation::word,
                                 .destination = replies ? AddressVariation::none : AddressVariation::word,
                                 .source_offset = static_cast<std::uint8_t>(ipv6 ? 7 : 1),
                                 .destination_offset = static_cast<std::uint8_t>(ipv6 ? 14 : 2)};
    return {{.size = 101, .addresses = ipv6 ? v6 : v4},
            kSource,
            kDestination,
            {.trial = 9, .stream = 0, .source_port = 0, .destination_port = 0},
            vary};
}

VaryingBits bits(std::size_t at, std::uint32_t size, FieldSource source, ConnectionPart part,
                 const FieldSpec& numbers = {}) {
    VaryingBits field;
    field.bit = static_cast<std::uint32_t>(8 * at);
    field.bits = size;
    field.mode = FieldMode::fixed;
    field.first = numbers.min;
    field.count = numbers.range();
    field.source = source;
    field.part = part;
    return field;
}

DescribedFrame described(const FrameTemplate& frame) {
    const Layout& layout = frame.layout();
    const std::size_t udp_at = layout.transport_at(), length = frame.length();
    DescribedFrame made;
    made.size = static_cast<std::uint16_t>(length + kFcsSize);
    made.head = Bytes(frame.data(), frame.data() + length);
    made.tag_at = static_cast<std::uint16_t>(layout.tag_at());
    if (!layout.ipv6)
        made.checksums.push_back(
            {.at = static_cast<std::uint16_t>(layout.ip_at() + ipv4::kChecksum), .covers = {{layout.ip_at(), udp_at}}});
    made.checksums.push_back({.at = static_cast<std::uint16_t>(udp_at + udp::kChecksum),
                              .covers = {{layout.source_at(), udp_at}, {udp_at, length}},
                              .plus = static_cast<std::uint32_t>(kProtocolUdp + length - udp_at),
                              .zero_as_ones = true});
    return made;
}

DescribedFrame opening(const FrameTemplate& frame) {
    using enum ConnectionPart;
    constexpr auto kSourceOf = FieldSource::connection;
    DescribedFrame made = described(frame);
    const std::size_t udp_at = frame.layout().transport_at();
    made.fields = {bits(frame.source_slot().at, 16, kSourceOf, source_address, kSourceAddresses),
                   bits(frame.destination_slot().at, 16, kSourceOf, destination_address, kDestinationAddresses),
                   bits(udp_at, 16, kSourceOf, source_port, kSourcePorts),
                   bits(udp_at + 2, 16, kSourceOf, destination_port, kDestinationPort)};
    return made;
}

DescribedFrame reply(const FrameTemplate& frame) {
    using enum ConnectionPart;
    DescribedFrame made = described(frame);
    const std::size_t udp_at = frame.layout().transport_at(), destination_at = frame.layout().destination_at();
    made.fields = {
        bits(frame.source_slot().at, 16, FieldSource::connection, source_address, kDestinationAddresses),
        bits(destination_at, frame.layout().ipv6 ? 128 : 32, FieldSource::learned, destination_address),
        bits(udp_at, 16, FieldSource::learned, source_port),
        bits(udp_at + 2, 16, FieldSource::learned, destination_port),
    };
    return made;
}

// Another kind beside `frame`, with a field and no connection.
DescribedFrame other(const FrameTemplate& frame) {
    DescribedFrame made = described(frame);
    made.fields.emplace_back();
    made.fields.back().bit = 8 * 18;
    made.fields.back().bits = 16;
    return made;
}

std::vector<DescribedKind> kinds_of(const std::vector<DescribedFrame>& frames) {
    std::vector<DescribedKind> kinds;
    for (const DescribedFrame& frame : frames) {
        EXPECT_EQ(frame.contradiction(), "");
        const auto kind = static_cast<std::uint8_t>(kinds.size() << kStreamKindShift);
        const DescribedTemplate::Addressing of{kSource, kDestination, 9, kind, 1, 0};
        kinds.emplace_back(DescribedTemplate(frame, of), kGeneration + static_cast<std::uint32_t>(kinds.size()));
    }
    return kinds;
}

template <class Source>
std::vector<Bytes> made_by(Source& source, std::uint32_t burst) {
    std::vector<Bytes> all;
    std::vector<rte_mbuf*> frames(burst);
    for (std::uint64_t j = 0; j < kFrames; j += burst) {
        EXPECT_TRUE(source.make(j, burst, kStamp, frames.data()));
        for (rte_mbuf* frame : frames) {
            const std::uint8_t* bytes = begin_of_frame(frame);
            all.emplace_back(bytes, bytes + rte_pktmbuf_data_len(frame));
            rte_pktmbuf_free(frame);
        }
    }
    return all;
}

// The frames of kind 0, alone and beside another kind, are those of the plain source.
void expect_plain_frames(const std::vector<Bytes>& expected, const DescribedFrame& frame, const DescribedFrame& beside,
                         const ConnectionParts& connections, const Share& share) {
    for (const KindOrder& order : {KindOrder(), KindOrder({0, 1, 0}), KindOrder({3, 2}, 8)}) {
        const Pool pool = pool_of();
        const DescribedFrames frames(
            pool.get(), kinds_of(order.is_single() ? std::vector{frame} : std::vector{frame, beside}), order);
        DescribedSource<true> source(
            {.frames = &frames, .stamps = StampChoice::every(), .share = share, .connections = connections});
        const std::vector<Bytes> made = made_by(source, 23);
        for (std::uint64_t j = 0; j < kFrames; ++j) {
            if (order.of(share.number(j)).kind != 0) continue;
            ASSERT_EQ(made[j], expected[j]) << j;
        }
    }
}

TEST(DescribedSource, OpensConnectionsWithTheBytesOfPlainFrames) {
    for (const bool ipv6 : {false, true}) {
        for (const Share& share : {Share{}, Share{1, 3}}) {
            const Pool pool = pool_of();
            const ConnectionChoice choice = ConnectionChoice::random(kConnections, 2);
            const ConnectionFields fields(space(), choice, share.stride);
            FramePool frames(pool.get(), plain(ipv6, false), kGeneration + 99);
            FrameSource<Varies<true, true, true, false>> source({.foreground = &frames,
                                                                 .background = nullptr,
                                                                 .fields = FrameFields(fields),
                                                                 .n = 2,
                                                                 .m = 2,
                                                                 .stamps = StampChoice::every(),
                                                                 .share = share});
            expect_plain_frames(made_by(source, 20), opening(frames.frame()), other(frames.frame()),
                                {.choice = choice, .combinations = fields, .table = nullptr}, share);
        }
    }
}

// What a translating DUT would show of each connection.
StateTable learned(bool ipv6) {
    std::mt19937 random(3);
    StateTable table(space(), kConnections, ipv6);
    for (std::uint32_t connection = 0; connection < kConnections; ++connection) {
        std::array<std::uint32_t, 4> source{};
        for (std::uint32_t& word : source) word = static_cast<std::uint32_t>(random());
        const auto* address = reinterpret_cast<const std::uint8_t*>(source.data());
        const auto ports = static_cast<std::uint32_t>(random());
        ipv6 ? table.learn<true>(connection, address, ports) : table.learn<false>(connection, address, ports);
    }
    return table;
}

template <bool Ipv6>
void expect_replies(const Share& share) {
    const StateTable table = learned(Ipv6);
    const Pool pool = pool_of();
    const ConnectionChoice choice = ConnectionChoice::each(kConnections, 2);
    const ConnectionFields fields(space(), choice, share.stride);
    FramePool frames(pool.get(), plain(Ipv6, true), kGeneration + 99);
    ResponderSource<Ipv6, true> source({.pool = &frames,
                                        .table = &table,
                                        .choice = choice,
                                        .addresses = fields,
                                        .stamps = StampChoice::every(),
                                        .share = share});
    expect_plain_frames(made_by(source, 20), reply(frames.frame()), other(frames.frame()),
                        {.choice = choice, .combinations = fields, .table = &table}, share);
}

TEST(DescribedSource, RepliesWithTheBytesOfPlainFrames) {
    for (const Share& share : {Share{}, Share{1, 3}}) {
        expect_replies<false>(share);
        expect_replies<true>(share);
    }
}

}  // namespace
}  // namespace dutperf
