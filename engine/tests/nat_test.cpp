// SPDX-License-Identifier: Apache-2.0
// NAT44 and stateful NAT64 byte by byte: a packet in, a packet out. Checksums are verified by definition.
#include "refdut/nat.hpp"

#include <gtest/gtest.h>

#include "refdut/forwarder.hpp"
#include "tests/ip_packet.hpp"

namespace dutperf {
namespace {

constexpr std::size_t kLeft = 0, kRight = 1;

// Between 198.18.0.0/16 or 2001:2::/56 on the left and 198.19.0.0/16 on the right; its pool is 198.19.254.129.
Forwarder nat(bool six, const ConnectionProperties& properties = {}) {
    Routes routes;
    NatRequest request{.pool = {.addresses = {{198, 19, 254, 129}}, .first_port = 0x3000, .last_port = 0x30FF},
                       .translator = {}};
    routes.ipv4.add(*parse_prefix4("198.19.0.0/16"), kRight);
    routes.ipv4.add(*parse_prefix4("198.19.254.129"), kNatExit);
    routes.ipv6.add(*parse_prefix6("2001:2::/56"), kLeft);
    routes.ipv6.add(*parse_prefix6("2001:2:0:8000::/56"), kRight);
    if (six) {
        routes.ipv6.add(*parse_prefix6("2001:2:0:6464::/96"), kNatExit);
        request.translator.emplace(AddressMap({}, parse_prefix6("2001:2:0:6464::/96")), ZeroChecksum::compute);
    } else {
        routes.ipv4.add(*parse_prefix4("198.18.0.0/16"), kLeft);
    }
    Forwarder made(routes, std::nullopt, 1500);
    made.set_nat(request, properties, 1'000'000'000);
    return made;
}

// A packet with right checksums.
Framed packet(const std::string& text) {
    Framed framed(text);
    Bytes ip = framed.ip();
    fill_checksums(ip, udp::kChecksum, kProtocolUdp);
    std::ranges::copy(ip, framed.packet.ip());
    return framed;
}

Bytes with_checksums(const std::string& text) { return packet(text).ip(); }

struct Row {
    const char *name, *in, *out;
    std::size_t from;
};

void expect_rows(Forwarder& dut, const std::vector<Row>& rows) {
    for (const Row& row : rows) {
        Framed framed = packet(row.in);
        const auto result = dut.forward(framed.packet, row.from, 1);
        ASSERT_TRUE(std::holds_alternative<Forwarded>(result))
            << row.name << ": " << kLossNames[static_cast<std::size_t>(std::get<Loss>(result))];
        EXPECT_TRUE(std::get<Forwarded>(result).translated) << row.name;
        EXPECT_EQ(framed.ip(), with_checksums(row.out)) << row.name;
    }
}

TEST(Nat, Nat44ByTheTable) {
    Forwarder dut = nat(false);
    expect_rows(dut, {{"a connection", "45000020 00014000 40110000 c6120002 c6130002 c0200007 000c0000 61626364",
                       "45000020 00014000 3f110000 c613fe81 c6130002 30000007 000c0000 61626364", kLeft},
                      {"back", "45000020 00024000 40110000 c6130002 c613fe81 00073000 000c0000 65666768",
                       "45000020 00024000 3f110000 c6130002 c6120002 0007c020 000c0000 65666768", kRight},
                      {"another one, of the same port to another address",
                       "45000020 00034000 40110000 c6120002 c6130102 c0200007 000c0000 61626364",
                       "45000020 00034000 3f110000 c613fe81 c6130102 30010007 000c0000 61626364", kLeft},
                      {"the first one again", "45000020 00044000 40110000 c6120002 c6130002 c0200007 000c0000 78787878",
                       "45000020 00044000 3f110000 c613fe81 c6130002 30000007 000c0000 78787878", kLeft},
                      {"an odd length", "4500001f 00054000 40110000 c6120002 c6130002 c0200007 000b0000 616263",
                       "4500001f 00054000 3f110000 c613fe81 c6130002 30000007 000b0000 616263", kLeft}});
    EXPECT_EQ(dut.nat()->table().counts().created, 2U);
}

TEST(Nat, Nat64ByTheTable) {
    Forwarder dut = nat(true);
    expect_rows(dut, {{"a connection",
                       "60000000 000c1140 20010002000000000000000000000002 20010002000064640000 0000c6130002 c0200007 "
                       "000c0000 61626364",
                       "45000020 00000000 3f110000 c613fe81 c6130002 30000007 000c0000 61626364", kLeft},
                      {"back", "45000020 00024000 40110000 c6130002 c613fe81 00073000 000c0000 65666768",
                       "60000000 000c113f 20010002000064640000 0000c6130002 20010002000000000000000000000002 0007c020 "
                       "000c0000 65666768",
                       kRight},
                      {"another host on the left",
                       "60000000 000c1140 20010002000000010000000000000002 20010002000064640000 0000c6130002 c0200007 "
                       "000c0000 61626364",
                       "45000020 00010000 3f110000 c613fe81 c6130002 30010007 000c0000 61626364", kLeft}});
    EXPECT_EQ(dut.nat()->table().counts().current, 2U);
}

TEST(Nat, AMissingUdpChecksumStaysMissingOrIsComputedForIpv6) {
    const auto without = [](const std::string& text) {
        Framed framed = packet(text);
        store<std::uint16_t>(framed.packet.ip() + ipv4::kSize + udp::kChecksum, 0);
        return framed;
    };
    Forwarder nat44 = nat(false);
    Framed out = without("45000020 00014000 40110000 c6120002 c6130002 c0200007 000c0000 61626364");
    ASSERT_TRUE(std::holds_alternative<Forwarded>(nat44.forward(out.packet, kLeft, 1)));
    EXPECT_EQ(out.ip(), without("45000020 00014000 3f110000 c613fe81 c6130002 30000007 000c0000 61626364").ip());

    Forwarder nat64 = nat(true);
    Framed opening = packet(
        "60000000 000c1140 20010002000000000000000000000002 20010002000064640000 0000c6130002 c0200007 000c0000 "
        "61626364");
    ASSERT_TRUE(std::holds_alternative<Forwarded>(nat64.forward(opening.packet, kLeft, 1)));
    Framed back = without("45000020 00024000 40110000 c6130002 c613fe81 00073000 000c0000 65666768");
    ASSERT_TRUE(std::holds_alternative<Forwarded>(nat64.forward(back.packet, kRight, 1)));
    EXPECT_EQ(transport_sum(back.ip(), kProtocolUdp), 0xFFFF);
    EXPECT_EQ(nat64.checksums_computed(), 1U);
}

// Every inside port, so every sum: a computed 0 is sent as all ones (RFC 768).
TEST(Nat, ChecksumsAreRightForEveryPort) {
    for (const bool six : {false, true}) {
        Forwarder dut = nat(six, {.capacity = 16, .when_full = WhenFull::evict});
        for (unsigned port = 0; port < 65536; ++port) {
            Framed framed(six ? "60000000 00081140 20010002000000000000000000000002 20010002000064640000 0000c6130002 "
                                "c0200007 00080000"
                              : "4500001c 00014000 40110000 c6120002 c6130002 c0200007 00080000");
            const std::size_t header = six ? ipv6::kSize : ipv4::kSize;
            store_be16(framed.packet.ip() + header, static_cast<std::uint16_t>(port));
            Bytes ip = framed.ip();
            fill_checksums(ip, udp::kChecksum, kProtocolUdp);
            if (load<std::uint16_t>(&ip[header + udp::kChecksum]) == 0)
                store<std::uint16_t>(&ip[header + udp::kChecksum], 0xFFFF);
            std::ranges::copy(ip, framed.packet.ip());
            ASSERT_TRUE(std::holds_alternative<Forwarded>(dut.forward(framed.packet, kLeft, port)));
            const Bytes made = framed.ip();
            ASSERT_NE(load<std::uint16_t>(&made[ipv4::kSize + udp::kChecksum]), 0) << port;
            ASSERT_EQ(transport_sum(made, kProtocolUdp), 0xFFFF) << port;
            ASSERT_EQ(checksum_fold(checksum_add(made.data(), ipv4::kSize)), 0xFFFF) << port;
        }
    }
}

struct Lost {
    const char *name, *in;
    std::size_t from;
    Loss loss;
};

TEST(Nat, LossesByTheTable) {
    const std::vector<Lost> rows{
        {"from the outside without a connection",
         "45000020 00024000 40110000 c6130002 c613fe81 00073000 000c0000 65666768", kRight, Loss::no_connection},
        {"from the outside to an inside address",
         "45000020 00024000 40110000 c6130002 c6120002 0007c020 000c0000 65666768", kRight, Loss::no_connection},
        {"from the inside to the pool", "45000020 00024000 40110000 c6120002 c613fe81 0007c020 000c0000 65666768",
         kLeft, Loss::not_routable},
        {"from the outside back to it", "45000020 00024000 40110000 c6130002 c6130102 0007c020 000c0000 65666768",
         kRight, Loss::not_routable},
        {"TCP", "45000028 00014000 40060000 c6120002 c6130002 c0200007 00000000 00000000 50020000 00000000", kLeft,
         Loss::unsupported},
        {"a fragment", "45000020 00012000 40110000 c6120002 c6130002 c0200007 000c0000 61626364", kLeft,
         Loss::unsupported},
        {"options", "46000020 00014000 40110000 c6120002 c6130002 01010101 c0200007 00080000", kLeft,
         Loss::unsupported},
        {"UDP longer than the packet", "45000020 00014000 40110000 c6120002 c6130002 c0200007 00200000 61626364", kLeft,
         Loss::malformed},
        {"TTL", "45000020 00014000 01110000 c6120002 c6130002 c0200007 000c0000 61626364", kLeft, Loss::hop_limit}};
    for (const Lost& row : rows) {
        Forwarder dut = nat(false);
        Framed framed(row.in);
        std::uint8_t* ip = framed.packet.ip();
        store(ip + ipv4::kChecksum, checksum_finish(checksum_add(ip, 4 * (ip[0] & 0x0FU))));
        const auto result = dut.forward(framed.packet, row.from, 1);
        ASSERT_TRUE(std::holds_alternative<Loss>(result)) << row.name;
        EXPECT_EQ(std::get<Loss>(result), row.loss) << row.name;
        EXPECT_EQ(dut.nat()->table().counts().created, 0U) << row.name;
    }
}

TEST(Nat, NoConnectionIsMadeForAnAddressWithoutARoute) {
    for (const std::string& remote : {std::string("c0000201"), std::string("c613fe81")}) {  // nowhere, and its own pool
        Forwarder dut = nat(true);
        Framed framed = packet("60000000 00081140 20010002000000000000000000000002 20010002000064640000 0000" + remote +
                               " c0200007 00080000");
        const auto result = dut.forward(framed.packet, kLeft, 1);
        ASSERT_TRUE(std::holds_alternative<Loss>(result));
        EXPECT_EQ(std::get<Loss>(result), Loss::not_routable);
        EXPECT_EQ(dut.nat()->table().counts().created, 0U);
    }
}

TEST(Nat, OtherIpv6OfANat44IsRouted) {
    Forwarder dut = nat(false);
    Framed framed(
        "60000000 00081140 20010002000000000000000000000002 20010002000080000000000000000002 c0200007 00080001");
    const auto result = dut.forward(framed.packet, kLeft, 1);
    ASSERT_TRUE(std::holds_alternative<Forwarded>(result));
    EXPECT_FALSE(std::get<Forwarded>(result).translated);
}

}  // namespace
}  // namespace dutperf
