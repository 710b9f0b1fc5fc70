// SPDX-License-Identifier: Apache-2.0
// Datagrams of the reference DUT itself: what it writes it reads, and checksums hold by definition.
#include "refdut/datagram.hpp"

#include <gtest/gtest.h>

#include "tests/ip_packet.hpp"

namespace dutperf {
namespace {

const Endpoints kBetween4{.source = ip_of(Ipv4{198, 19, 0, 1}),
                          .destination = ip_of(Ipv4{198, 19, 0, 2}),
                          .source_port = 50000,
                          .destination_port = 53};
const Endpoints kBetween6{.source = ip_of(*parse_ipv6("2001:2::1")),
                          .destination = ip_of(*parse_ipv6("2001:2::2")),
                          .source_port = 53,
                          .destination_port = 10000};

struct Written {
    Bytes frame = Bytes(256);
    Packet packet{};

    Written(const Endpoints& between, const Bytes& payload) {
        std::ranges::copy(payload, &frame[datagram_payload_at(between.source.is_ipv6)]);
        packet = {frame.data(),
                  write_datagram(frame.data(), {.source = {2, 0, 0, 0, 0, 1}, .destination = {2, 0, 0, 0, 0, 2}},
                                 between, payload.size())};
    }
    [[nodiscard]] Bytes ip() const { return {packet.ip(), packet.at + packet.length}; }
};

TEST(Datagram, IsReadAsItWasWritten) {
    for (const Endpoints& between : {kBetween4, kBetween6}) {
        const Written written(between, {1, 2, 3});
        const auto read = read_datagram(written.packet);
        ASSERT_TRUE(read);
        EXPECT_EQ(read->between.source, between.source);
        EXPECT_EQ(read->between.destination, between.destination);
        EXPECT_EQ(read->between.source_port, between.source_port);
        EXPECT_EQ(read->between.destination_port, between.destination_port);
        EXPECT_EQ(Bytes(read->payload.begin(), read->payload.end()), (Bytes{1, 2, 3}));
        EXPECT_EQ(transport_sum(written.ip(), kProtocolUdp), 0xFFFFU);
        EXPECT_TRUE(has_right_checksum(written.packet));
    }
}

TEST(Datagram, AnyWrongBitIsSeen) {
    for (const Endpoints& between : {kBetween4, kBetween6}) {
        Written written(between, {1, 2, 3});
        const std::size_t ip_size = written.packet.is_ipv6() ? ipv6::kSize : ipv4::kSize;
        for (std::size_t i = ip_size; i < written.ip().size(); ++i) {
            std::uint8_t& byte = written.packet.ip()[i];
            byte ^= 4U;
            EXPECT_FALSE(read_datagram(written.packet) && has_right_checksum(written.packet)) << i;
            byte ^= 4U;
        }
    }
}

TEST(Datagram, OnlyIpv4NeedsNoChecksum) {
    Written four(kBetween4, {1}), six(kBetween6, {1});
    store<std::uint16_t>(four.packet.ip() + ipv4::kSize + udp::kChecksum, 0);
    store<std::uint16_t>(six.packet.ip() + ipv6::kSize + udp::kChecksum, 0);
    EXPECT_TRUE(has_right_checksum(four.packet));
    EXPECT_FALSE(has_right_checksum(six.packet));
}

TEST(Datagram, OtherPacketsAreNone) {
    Written tcp(kBetween6, {1}), fragment(kBetween4, {1}), cut(kBetween6, {1});
    tcp.packet.ip()[ipv6::kNextHeader] = kProtocolTcp;
    store_be16(fragment.packet.ip() + ipv4::kFragment, 0x2000);
    store<std::uint16_t>(fragment.packet.ip() + ipv4::kChecksum, 0);
    store(fragment.packet.ip() + ipv4::kChecksum, checksum_finish(checksum_add(fragment.packet.ip(), ipv4::kSize)));
    --cut.packet.length;
    for (const Written* one : {&tcp, &fragment, &cut}) EXPECT_FALSE(read_datagram(one->packet));
}

}  // namespace
}  // namespace dutperf
