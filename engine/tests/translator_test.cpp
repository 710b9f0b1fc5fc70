// SPDX-License-Identifier: Apache-2.0
// Translation byte by byte (RFC 7915), address mapping (RFC 7757, RFC 6052), and the losses of the forwarder.
#include "refdut/translator.hpp"

#include <gtest/gtest.h>

#include <string>

#include "refdut/forwarder.hpp"
#include "tests/ip_packet.hpp"

namespace dutperf {
namespace {

ExplicitMapping mapping(const std::string& ipv4, const std::string& ipv6) {
    return {*parse_prefix4(ipv4), *parse_prefix6(ipv6)};
}

AddressMap lab_map() {
    return {{mapping("198.18.0.2", "2001:2::2"), mapping("198.19.0.2", "2001:2:0:1000::2")},
            parse_prefix6("2001:2:0:6464::/96")};
}

struct Address {
    const char *ipv4, *ipv6;
};

TEST(AddressMap, ExamplesOfRfc6052) {
    const std::vector<std::pair<const char*, const char*>> rows{
        {"2001:db8::/32", "2001:db8:c000:221::"},
        {"2001:db8:100::/40", "2001:db8:1c0:2:21::"},
        {"2001:db8:122::/48", "2001:db8:122:c000:2:2100::"},
        {"2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"},
        {"2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"},
        {"2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"}};
    for (const auto& [prefix, ipv6] : rows) {
        const AddressMap map({}, parse_prefix6(prefix));
        EXPECT_EQ(map.to_ipv6(*parse_ipv4("192.0.2.33")), parse_ipv6(ipv6)) << prefix;
        EXPECT_EQ(map.to_ipv4(*parse_ipv6(ipv6)), parse_ipv4("192.0.2.33")) << prefix;
        EXPECT_TRUE(is_translation_prefix(*parse_prefix6(prefix)));
    }
    EXPECT_FALSE(is_translation_prefix(*parse_prefix6("2001:db8::/60")));
}

// Rows of RFC 7757 figure 2, and the order of its section 3.3: explicit mappings before the prefix, longest first.
TEST(AddressMap, ExamplesOfRfc7757) {
    const AddressMap map(
        {mapping("192.0.2.1", "2001:db8:aaaa::"), mapping("192.0.2.2/32", "2001:db8:bbbb::b/128"),
         mapping("192.0.2.16/28", "2001:db8:cccc::/124"), mapping("192.0.2.128/26", "2001:db8:dddd::/64"),
         mapping("192.0.2.192/29", "2001:db8:eeee:8::/62"), mapping("192.0.2.224/31", "64:ff9b::/127")},
        parse_prefix6("64:ff9b::/96"));
    const std::vector<Address> rows{
        {"192.0.2.1", "2001:db8:aaaa::"},          {"192.0.2.2", "2001:db8:bbbb::b"},
        {"192.0.2.16", "2001:db8:cccc::"},         {"192.0.2.24", "2001:db8:cccc::8"},
        {"192.0.2.31", "2001:db8:cccc::f"},        {"192.0.2.128", "2001:db8:dddd::"},
        {"192.0.2.152", "2001:db8:dddd:0:6000::"}, {"192.0.2.183", "2001:db8:dddd:0:dc00::"},
        {"192.0.2.191", "2001:db8:dddd:0:fc00::"}, {"192.0.2.193", "2001:db8:eeee:8:8000::"},
        {"192.0.2.195", "2001:db8:eeee:9:8000::"}, {"192.0.2.225", "64:ff9b::1"},
        {"198.51.100.1", "64:ff9b::198.51.100.1"}};
    for (const Address& row : rows) {
        EXPECT_EQ(map.to_ipv6(*parse_ipv4(row.ipv4)), parse_ipv6(row.ipv6)) << row.ipv4;
        EXPECT_EQ(map.to_ipv4(*parse_ipv6(row.ipv6)), parse_ipv4(row.ipv4)) << row.ipv6;
    }
    EXPECT_EQ(map.to_ipv4(*parse_ipv6("2001:db8:dddd:0:6000::1")), parse_ipv4("192.0.2.152"))
        << "bits after the suffix do not count";
    EXPECT_FALSE(map.to_ipv4(*parse_ipv6("2001:db8::1")));
    EXPECT_FALSE(mapping("192.0.2.0/24", "2001:db8::/125").fits());
}

TEST(AddressMap, RejectsTextThatIsNotAPrefix) {
    for (const char* text : {"", "198.18.0.0/33", "198.18.0.0/", "198.18.0.0/x", "198.18.0.0/8x", "2001:2::/48"})
        EXPECT_FALSE(parse_prefix4(text)) << text;
    for (const char* text : {"2001:2::/129", "2001:2::/-1", "198.18.0.0/16"}) EXPECT_FALSE(parse_prefix6(text)) << text;
}

struct Case {
    const char* name;
    std::uint8_t protocol4, protocol6;
    std::size_t checksum_at;
    const char *ipv4, *ipv6;  // with the hop limits of an incoming packet; checksums zero
};

// Both forms of a packet. DF and identification of the IPv4 form are those of a packet that was translated from IPv6
// (RFC 7915 5.1).
const std::vector<Case> kCases{
    {"UDP with a traffic class", 17, 17, 6, "45280020 00000000 0a110000 c6130002 c6120002 c0200007 000c0000 61626364",
     "62800000 000c110a 20010002000010000000000000000002 20010002000000000000000000000002 c0200007 000c0000 61626364"},
    {"UDP of odd length", 17, 17, 6, "4500001f 00000000 40110000 c6120002 c6130002 c0200007 000b0000 616263",
     "60000000 000b1140 20010002000000000000000000000002 20010002000010000000000000000002 c0200007 000b0000 616263"},
    {"TCP", 6, 6, 16, "45000028 00000000 0a060000 c6120002 c6130002 04000050 00000001 00000002 50102000 00000000",
     "60000000 0014060a 20010002000000000000000000000002 20010002000010000000000000000002 04000050 00000001 00000002 "
     "50102000 00000000"},
    {"echo request", 1, 58, 2, "45000020 00000000 0a010000 c6120002 c6130002 08000000 12340001 61626364",
     "60000000 000c3a0a 20010002000000000000000000000002 20010002000010000000000000000002 80000000 12340001 61626364"},
    {"echo reply", 1, 58, 2, "45000020 00000000 0a010000 c6130002 c6120002 00000000 12340001 61626364",
     "60000000 000c3a0a 20010002000010000000000000000002 20010002000000000000000000000002 81000000 12340001 61626364"},
    {"a mapped destination and an embedded one", 17, 17, 6,
     "45000020 00000000 0a110000 c6120002 cb007107 c0200007 000c0000 61626364",
     "60000000 000c110a 20010002000000000000000000000002 200100020000646400000000cb007107 c0200007 000c0000 61626364"},
};

TEST(Translator, PacketsInBothVersions) {
    for (const Case& row : kCases) {
        Framed four(row.ipv4), six(row.ipv6);
        Bytes as4 = four.ip(), as6 = six.ip();
        fill_checksums(as4, row.checksum_at, row.protocol4);
        fill_checksums(as6, row.checksum_at, row.protocol6);
        std::ranges::copy(as4, four.packet.ip());
        std::ranges::copy(as6, six.packet.ip());
        Translator translator(lab_map(), ZeroChecksum::compute);
        ASSERT_FALSE(translator.translate(four.packet)) << row.name;
        ASSERT_FALSE(translator.translate(six.packet)) << row.name;
        --as6[ipv6::kHopLimit];
        --as4[ipv4::kTtl];
        fill_checksums(as4, row.checksum_at, row.protocol4);
        EXPECT_EQ(four.ip(), as6) << row.name;
        EXPECT_EQ(six.ip(), as4) << row.name;
    }
}

// RFC 768: a sum of zero is sent as all ones, however it was computed.
TEST(Translator, NoUdpChecksumBecomesZero) {
    Translator translator(lab_map(), ZeroChecksum::compute);
    for (unsigned port = 0; port < 65536; ++port) {
        Framed framed(
            "60000000 0008110a 20010002000000000000000000000002 20010002000010000000000000000002 00000007 00080000");
        store_be16(framed.packet.ip() + ipv6::kSize, static_cast<std::uint16_t>(port));
        Bytes ip = framed.ip();
        fill_checksums(ip, udp::kChecksum, kProtocolUdp);
        if (load<std::uint16_t>(&ip[ipv6::kSize + udp::kChecksum]) == 0)
            store<std::uint16_t>(&ip[ipv6::kSize + udp::kChecksum], 0xFFFF);
        std::ranges::copy(ip, framed.packet.ip());
        ASSERT_FALSE(translator.translate(framed.packet));
        const Bytes made = framed.ip();
        ASSERT_NE(load<std::uint16_t>(&made[ipv4::kSize + udp::kChecksum]), 0) << port;
        ASSERT_EQ(transport_sum(made, kProtocolUdp), 0xFFFF) << port;
    }
}

TEST(Translator, AMissingUdpChecksumIsComputedOrThePacketIsDropped) {
    const char* without = "45000020 00004000 0a110000 c6120002 c6130002 c0200007 000c0000 61626364";
    Framed computed(without), dropped(without);
    Translator computing(lab_map(), ZeroChecksum::compute), dropping(lab_map(), ZeroChecksum::drop);
    ASSERT_FALSE(computing.translate(computed.packet));
    EXPECT_EQ(transport_sum(computed.ip(), kProtocolUdp), 0xFFFF);
    EXPECT_EQ(computing.checksums_computed(), 1U);
    EXPECT_EQ(dropping.translate(dropped.packet), Loss::unsupported);
}

// RFC 7915 5.1: routers may fragment packets of up to 1260 bytes, and each has its own identification.
TEST(Translator, FragmentationOfWhatComesFromIpv6) {
    Translator translator(lab_map(), ZeroChecksum::compute);
    struct Expected {
        std::size_t length;
        std::uint16_t identification, flags;
    };
    for (const Expected& row :
         {Expected{32, 0, 0}, Expected{1260, 1, 0}, Expected{1261, 0, ipv4::kDontFragment}, Expected{100, 2, 0}}) {
        Framed framed("60000000 0000110a 20010002000000000000000000000002 20010002000010000000000000000002" +
                      std::string(2 * (row.length - 20), '1'));
        const auto size = static_cast<std::uint16_t>(row.length - ipv4::kSize);
        store_be16(framed.packet.ip() + ipv6::kPayloadLength, size);
        store_be16(framed.packet.ip() + ipv6::kSize + udp::kLength, size);
        ASSERT_FALSE(translator.translate(framed.packet));
        EXPECT_EQ(load_be16(framed.packet.ip() + ipv4::kLength), row.length);
        EXPECT_EQ(load_be16(framed.packet.ip() + ipv4::kIdentification), row.identification) << row.length;
        EXPECT_EQ(load_be16(framed.packet.ip() + ipv4::kFragment), row.flags) << row.length;
    }
}

struct Rejection {
    const char *name, *ip;
    Loss loss;
};

TEST(Translator, RejectsByTheTable) {
    const std::vector<Rejection> rows{
        {"fragment", "45000020 00002000 0a110000 c6120002 c6130002 c0200007 000c0000 61626364", Loss::unsupported},
        {"options", "46000020 00004000 0a110000 c6120002 c6130002 01010101 c0200007 00080000", Loss::unsupported},
        {"unknown protocol", "45000018 00004000 0a2f0000 c6120002 c6130002 00000000", Loss::unsupported},
        {"ICMP error", "4500001c 00004000 0a010000 c6120002 c6130002 0301fcfe 00000000", Loss::unsupported},
        {"ICMPv6 over IPv4", "4500001c 00004000 0a3a0000 c6120002 c6130002 80000000 00000000", Loss::unsupported},
        {"short TCP", "4500001c 00004000 0a060000 c6120002 c6130002 04000050 00000001", Loss::malformed},
        {"UDP longer than the packet", "4500001c 00004000 0a110000 c6120002 c6130002 c0200007 00090001",
         Loss::malformed},
        {"extension header",
         "60000000 0008000a 20010002000000000000000000000002 20010002000010000000000000000002 11000000 00000000",
         Loss::unsupported},
        {"IPv6 UDP without checksum",
         "60000000 0008110a 20010002000000000000000000000002 20010002000010000000000000000002 c0200007 00080000",
         Loss::malformed},
        {"unmapped source",
         "60000000 0008110a 20010002000000000000000000000003 20010002000010000000000000000002 c0200007 00080001",
         Loss::not_routable}};
    for (const Rejection& row : rows) {
        Framed framed(row.ip);
        EXPECT_EQ(Translator(lab_map(), ZeroChecksum::compute).translate(framed.packet), row.loss) << row.name;
    }
}

Forwarder router() {
    Routes routes;
    routes.ipv4.add(*parse_prefix4("198.18.0.0/16"), 0);
    routes.ipv4.add(*parse_prefix4("198.19.0.0/16"), 1);
    routes.ipv6.add(*parse_prefix6("2001:2::/56"), 0);
    routes.ipv6.add(*parse_prefix6("2001:2:0:8000::/56"), 1);
    routes.ipv6.add(*parse_prefix6("2001:2:0:1000::/56"), kTranslatorExit);
    return {routes, Translator(lab_map(), ZeroChecksum::compute), 1500};
}

TEST(Forwarder, DecrementsAndKeepsTheChecksumRight) {
    for (unsigned ttl = 2; ttl < 256; ++ttl) {
        Framed framed("4500001c 12344000 00110000 c6120002 c6130002 c0200007 00080000 0000");  // with padding
        std::uint8_t* ip = framed.packet.ip();
        ip[ipv4::kTtl] = static_cast<std::uint8_t>(ttl);
        store(ip + ipv4::kChecksum, checksum_finish(checksum_add(ip, ipv4::kSize)));
        Forwarder forwarder = router();
        ASSERT_TRUE(std::holds_alternative<Forwarded>(forwarder.forward(framed.packet, 0)));
        EXPECT_EQ(ip[ipv4::kTtl], ttl - 1);
        EXPECT_EQ(checksum_fold(checksum_add(ip, ipv4::kSize)), 0xFFFF);
        EXPECT_EQ(framed.packet.length, ethernet::kSize + 28);
    }
}

TEST(Forwarder, LossesByTheTable) {
    const std::string six_to = "20010002000000000000000000000002 20010002000080000000000000000002 c0200007 00080001";
    const std::string far_away = "20010002000000000000000000000002 20010003000080000000000000000002 c0200007 00080001";
    const std::string back = "20010002000000000000000000000002 20010002000000000000000000000003 c0200007 00080001";
    const std::vector<std::pair<std::string, Loss>> rows{
        {"60000000 00081101" + six_to, Loss::hop_limit},
        {"60000000 00081100" + six_to, Loss::hop_limit},
        {"60000000 0009110a" + six_to, Loss::malformed},
        {"60000000 0008110a" + far_away, Loss::not_routable},
        {"60000000 0008110a" + back, Loss::not_routable},
        {"4500001c 00004000 0a110000 c6120002 c6130002 c0200007 00080000", Loss::malformed},
        {"60000000 05b5110a" + six_to + std::string(2 * (0x5b5 - 8), '0'), Loss::too_long}};
    for (const auto& [ip, loss] : rows) {
        Framed framed(ip);
        Forwarder forwarder = router();
        const auto result = forwarder.forward(framed.packet, 0);
        ASSERT_TRUE(std::holds_alternative<Loss>(result)) << ip.substr(0, 40);
        EXPECT_EQ(std::get<Loss>(result), loss) << ip.substr(0, 40);
    }
    Framed passes("60000000 0008110a" + six_to);
    Forwarder forwarder = router();
    EXPECT_TRUE(std::holds_alternative<Forwarded>(forwarder.forward(passes.packet, 0)));
    EXPECT_EQ(passes.ip()[ipv6::kHopLimit], 9);
}

TEST(Forwarder, TranslatesWhatIsRoutedToTheTranslator) {
    Framed framed(
        "60000000 0008110a 20010002000000000000000000000002 20010002000010000000000000000002 c0200007 00080001");
    Forwarder forwarder = router();
    const auto result = forwarder.forward(framed.packet, 0);
    ASSERT_TRUE(std::holds_alternative<Forwarded>(result));
    EXPECT_TRUE(std::get<Forwarded>(result).translated);
    EXPECT_FALSE(std::get<Forwarded>(result).ipv6);
    EXPECT_EQ(framed.packet.length, ethernet::kSize + 28);
}

}  // namespace
}  // namespace dutperf
