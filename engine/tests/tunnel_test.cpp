// SPDX-License-Identifier: Apache-2.0
// Encapsulation byte by byte, for both ends of each technology of RFC 8219: a packet in, a packet out, or why it is
// lost. Checksums are verified by definition.
#include "refdut/tunnel.hpp"

#include <gtest/gtest.h>

#include "tests/ip_packet.hpp"
#include "tests/tunnel_duts.hpp"

namespace dutperf {
namespace {

std::string hex(const Bytes& some) {
    std::string text;
    for (const std::uint8_t byte : some) {
        constexpr const char* kDigits = "0123456789abcdef";
        text += {kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
    return text;
}

// A packet with right checksums.
std::string udp(const std::string& text) {
    Bytes ip = bytes(text);
    fill_checksums(ip, udp::kChecksum, kProtocolUdp);
    return hex(ip);
}

// An IPv4 header with a right checksum.
std::string header4(const std::string& text) {
    Bytes ip = bytes(text);
    store(&ip[ipv4::kChecksum], checksum_finish(checksum_add(ip.data(), ipv4::kSize)));
    return hex(ip);
}

struct Row {
    std::string name;
    Forwarder (*dut)();
    std::size_t from;
    std::string in, out;
};

const std::string kData = "000c0000 61626364";  // length, checksum, payload of UDP
const std::string kCe = "20010002 00000234 0000c612 00020034", kBr = "20010002 00004000 00000000 0000000b";

// Port 0x04d0, 1232, is of PSID 0x34.
std::string outward4(int ttl) {
    return udp("45a80020 00014000 " +
               std::string(ttl == 64   ? "40"
                           : ttl == 63 ? "3f"
                                       : "3e") +
               "110000 c6120002 c6130002 04d00007" + kData);
}
std::string inward4(int ttl) {
    return udp("45000020 00024000 " +
               std::string(ttl == 64   ? "40"
                           : ttl == 63 ? "3f"
                                       : "3e") +
               "110000 c6130002 c6120002 000704d0" + kData);
}
std::string outward6(int hops) {
    return udp("61200000 000c11" +
               std::string(hops == 64   ? "40"
                           : hops == 63 ? "3f"
                                        : "3e") +
               "20010002 00000300 00000000 00000002 20010002 00008000 00000000 00000002 c0200007" + kData);
}
std::string inward6(int hops) {
    return udp("60000000 000c11" +
               std::string(hops == 64   ? "40"
                           : hops == 63 ? "3f"
                                        : "3e") +
               "20010002 00008000 00000000 00000002 20010002 00000300 00000000 00000002 0007c020" + kData);
}
const std::string kTo4 = "45120048 00004000 40290000 c6124083 c61240fe",
                  kFrom4 = "45000048 00004000 40290000 c61240fe c6124083";

const std::vector<Row> kRows{
    {"CE out", map_ce, kLeft, outward4(64), "6a800000 00200440" + kCe + kBr + outward4(63)},
    {"CE in", map_ce, kRight, "60000000 00200401" + kBr + kCe + inward4(64), inward4(63)},
    {"BR out", map_br, kLeft, "6a800000 00200440" + kCe + kBr + outward4(63), outward4(62)},
    {"BR in", map_br, kRight, inward4(64), "60000000 00200440" + kBr + kCe + inward4(63)},
    {"6rd CE out", six_rd_ce, kLeft, outward6(64),
     header4("45120048 00004000 40290000 c6124083 c61240fe") + outward6(63)},
    {"6rd CE in", six_rd_ce, kRight, header4(kFrom4) + inward6(64), inward6(63)},
    {"6rd BR out", six_rd_br, kLeft, header4(kTo4) + outward6(63), outward6(62)},
    {"6rd BR in", six_rd_br, kRight, inward6(64), header4(kFrom4) + inward6(63)},
};

TEST(Tunnel, PacketsByTheTable) {
    for (const Row& row : kRows) {
        Framed framed(row.in);
        Forwarder dut = row.dut();
        const auto result = dut.forward(framed.packet, row.from, 1);
        ASSERT_TRUE(std::holds_alternative<Forwarded>(result))
            << row.name << ": " << kLossNames[static_cast<std::size_t>(std::get<Loss>(result))];
        EXPECT_TRUE(std::get<Forwarded>(result).tunnelled) << row.name;
        EXPECT_FALSE(std::get<Forwarded>(result).translated) << row.name;
        EXPECT_EQ(std::get<Forwarded>(result).ipv6, framed.packet.is_ipv6()) << row.name;
        EXPECT_EQ(hex(framed.ip()), hex(bytes(row.out))) << row.name;
    }
}

const std::string kB4 = "20010002 00003000 00000000 000000b4", kOtherB4 = "20010002 00003000 00000000 000000b5",
                  kAftr = "20010002 00004000 00000000 000000af";

// RFC 6333 8.2: two B4s have the same inner address and port.
TEST(Tunnel, AnAftrTellsB4sByTheirAddresses) {
    const auto inside = [](const std::string& b4) {
        return "60000000 00200440" + b4 + kAftr + udp("45000020 00014000 40110000 c0a80102 c6130002 c0200007" + kData);
    };
    const auto outside = [](const std::string& port) {
        return udp("45000020 00014000 3f110000 c613fe81 c6130002" + port + "0007" + kData);
    };
    const auto back = [](const std::string& ttl, const std::string& to, const std::string& port) {
        return udp("45000020 00024000" + ttl + "110000 c6130002" + to + "0007" + port + kData);
    };
    const auto to_b4 = [&](const std::string& b4) {
        return "60000000 00200440" + kAftr + b4 + back("3f", "c0a80102", "c020");
    };
    struct Step {
        std::size_t from;
        std::string in, out;
    };
    Forwarder dut = aftr();
    for (const auto& [from, in, out] :
         {Step{kLeft, inside(kB4), outside("3000")}, Step{kLeft, inside(kOtherB4), outside("3001")},
          Step{kRight, back("40", "c613fe81", "3001"), to_b4(kOtherB4)},
          Step{kRight, back("40", "c613fe81", "3000"), to_b4(kB4)}, Step{kLeft, inside(kB4), outside("3000")}}) {
        Framed framed(in);
        const auto result = dut.forward(framed.packet, from, 1);
        ASSERT_TRUE(std::holds_alternative<Forwarded>(result))
            << kLossNames[static_cast<std::size_t>(std::get<Loss>(result))];
        EXPECT_TRUE(std::get<Forwarded>(result).tunnelled && std::get<Forwarded>(result).translated);
        EXPECT_EQ(hex(framed.ip()), hex(bytes(out)));
    }
    EXPECT_EQ(dut.nat()->table().counts().created, 2U);
}

struct Lost {
    std::string name;
    Forwarder (*dut)();
    std::size_t from;
    std::string in;
    Loss loss;
};

std::string udp4(const std::string& source, const std::string& destination, const std::string& ports) {
    return udp("45000020 00014000 40110000" + source + destination + ports + kData);
}
const std::string kOver6 = "60000000 00200440";

const std::vector<Lost> kLost{
    {"a port of another CE", map_ce, kLeft, udp4("c6120002", "c6130002", "04d40007"), Loss::wrong_source},
    {"a port of no CE", map_ce, kLeft, udp4("c6120002", "c6130002", "00070007"), Loss::wrong_source},
    {"another CE's address", map_ce, kLeft, udp4("c6120003", "c6130002", "04d00007"), Loss::wrong_source},
    {"a fragment, whose ports are unknown", map_ce, kLeft,
     udp("45000020 00012000 40110000 c6120002 c6130002 04d00007" + kData), Loss::unsupported},
    {"to a port of another CE", map_ce, kRight, kOver6 + kBr + kCe + udp4("c6130002", "c6120002", "000704d4"),
     Loss::wrong_destination},
    {"from somebody who is no BR", map_ce, kRight, kOver6 + kB4 + kCe + inward4(64), Loss::wrong_source},
    {"a CE's packet with a port that is not its own", map_br, kLeft,
     kOver6 + kCe + kBr + udp4("c6120002", "c6130002", "04d40007"), Loss::wrong_source},
    {"a CE's packet with an address that is not its own", map_br, kLeft,
     kOver6 + kCe + kBr + udp4("c6120003", "c6130002", "04d00007"), Loss::wrong_source},
    {"a BR is no way from CE to CE", map_br, kLeft, kOver6 + kCe + kBr + udp4("c6120002", "c6120003", "04d004d0"),
     Loss::wrong_destination},
    {"to a port of no CE", map_br, kRight, udp4("c6130002", "c6120002", "00070007"), Loss::not_routable},
    {"6rd: another CE's address", six_rd_br, kLeft,
     header4("45000048 00004000 40290000 c6124084 c61240fe") + outward6(63), Loss::wrong_source},
    {"6rd: IPv6 that is not this CE's", six_rd_ce, kRight,
     header4(kFrom4) + udp("60000000 000c1140 20010002 00008000 00000000 00000002 20010002 00000400 00000000 00000002 "
                           "0007c020" +
                           kData),
     Loss::wrong_destination},
    {"something else than IPv4 inside", map_br, kLeft, "60000000 00202940" + kCe + kBr + outward4(63),
     Loss::unsupported},
    {"no IP packet inside", map_br, kLeft, "60000000 00200440" + kCe + kBr + std::string(64, '0'), Loss::malformed},
    {"an inner packet that is longer than the outer one", map_br, kLeft, "60000000 001f0440" + kCe + kBr + outward4(63),
     Loss::malformed},
    {"an inner TTL that is used up", map_br, kLeft,
     kOver6 + kCe + kBr + udp("45000020 00014000 01110000 c6120002 c6130002 04d00007" + kData), Loss::hop_limit},
    {"a TTL that is used up", map_ce, kLeft, udp("45000020 00014000 01110000 c6120002 c6130002 04d00007" + kData),
     Loss::hop_limit},
    {"a fragment of IPv4 that carries IPv6", six_rd_br, kLeft,
     header4("45000048 00002000 40290000 c6124083 c61240fe") + outward6(63), Loss::unsupported},
    {"no native IPv4 into an AFTR", aftr, kLeft, udp4("c0a80102", "c6130002", "c0200007"), Loss::unsupported},
    {"no connection at the AFTR", aftr, kRight, udp4("c6130002", "c613fe81", "00073000"), Loss::no_connection},
};

TEST(Tunnel, LossesByTheTable) {
    for (const Lost& row : kLost) {
        Framed framed(row.in);
        Forwarder dut = row.dut();
        const auto result = dut.forward(framed.packet, row.from, 1);
        ASSERT_TRUE(std::holds_alternative<Loss>(result)) << row.name;
        EXPECT_STREQ(kLossNames[static_cast<std::size_t>(std::get<Loss>(result))],
                     kLossNames[static_cast<std::size_t>(row.loss)])
            << row.name;
    }
}

TEST(Tunnel, WhatDoesNotFitWithItsHeaderIsLost) {
    for (const auto& [length, fits] : {std::pair{kMtu - ipv6::kSize, true}, std::pair{kMtu - ipv6::kSize + 1, false}}) {
        Framed framed("4500ffff 00014000 40110000 c6120002 c6130002 04d00007" +
                      std::string(2 * (length - ipv4::kSize - 4), '0'));
        std::uint8_t* ip = framed.packet.ip();
        store_be16(ip + ipv4::kLength, static_cast<std::uint16_t>(length));
        store(ip + ipv4::kChecksum, checksum_finish(checksum_add(ip, ipv4::kSize)));
        const auto result = map_ce().forward(framed.packet, kLeft, 1);
        EXPECT_EQ(std::holds_alternative<Forwarded>(result), fits);
        if (!fits) {
            EXPECT_EQ(std::get<Loss>(result), Loss::too_long);
        }
    }
}

// RFC 7597 8.2: the identifier of an ICMP echo takes the place of the port.
TEST(Tunnel, AnEchoHasAnIdentifierForItsPort) {
    for (const auto& [identifier, mine] : {std::pair{"04d0", true}, std::pair{"04d4", false}}) {
        Bytes echo =
            bytes("45000020 00014000 40010000 c6120002 c6130002 08000000" + std::string(identifier) + "0001 61626364");
        fill_checksums(echo, icmp::kChecksum, kProtocolIcmp);
        Framed framed(hex(echo));
        EXPECT_EQ(std::holds_alternative<Forwarded>(map_ce().forward(framed.packet, kLeft, 1)), mine);
    }
}

// RFC 7599: addresses and ports that do not belong together, and those of a CE that is somebody else.
TEST(Tunnel, MapTTranslatesBetweenTheCeAndTheBr) {
    const AddressMap map({}, parse_prefix6("2001:2:0:6464::/96"), shared_by_ces());
    const auto ce = [&] {
        Routes routes;
        lead(routes, kLeft, {"198.18.0.0/16"});
        lead(routes, kRight, {"2001:2:0:6464::/96"});
        lead(routes, kTranslatorExit, {"198.19.0.0/16", "2001:2:0:234:0:c612:2:34"});
        return Forwarder(routes, Translator(map, ZeroChecksum::compute), kMtu);
    };
    const auto br = [&] {
        Routes routes;
        lead(routes, kRight, {"198.19.0.0/16"});
        lead(routes, kLeft, {"2001:2:0:200::/56"});
        lead(routes, kTranslatorExit, {"198.18.0.0/16", "2001:2:0:6464::/96"});
        return Forwarder(routes, Translator(map, ZeroChecksum::compute), kMtu);
    };
    const std::string far = "20010002 00006464 00000000 c6130002";
    const auto six = [](const std::string& hops, const std::string& from, const std::string& to,
                        const std::string& ports) { return udp("60000000 000c11" + hops + from + to + ports + kData); };
    const auto four = [](const std::string& ttl, const std::string& from, const std::string& to,
                         const std::string& ports, const std::string& fragment = "00004000") {
        return udp("45000020" + fragment + ttl + "110000" + from + to + ports + kData);
    };
    struct Step {
        std::string name, in, out;
        bool at_ce;
        std::size_t from;
        std::optional<Loss> loss;
    };
    const std::vector<Step> steps{
        {"CE out", four("40", "c6120002", "c6130002", "04d00007"), six("3f", kCe, far, "04d00007"), true, kLeft, {}},
        {"CE in",
         six("40", far, kCe, "000704d0"),
         four("3f", "c6130002", "c6120002", "000704d0", "00000000"),
         true,
         kRight,
         {}},
        {"BR out",
         six("40", kCe, far, "04d00007"),
         four("3f", "c6120002", "c6130002", "04d00007", "00000000"),
         false,
         kLeft,
         {}},
        {"BR in", four("40", "c6130002", "c6120002", "000704d0"), six("3f", far, kCe, "000704d0"), false, kRight, {}},
        {"CE out, another CE's port", four("40", "c6120002", "c6130002", "04d40007"), "", true, kLeft,
         Loss::wrong_source},
        {"CE out, nobody's port", four("40", "c6120002", "c6130002", "00070007"), "", true, kLeft, Loss::wrong_source},
        {"CE in, another CE's port", six("40", far, kCe, "000704d4"), "", true, kRight, Loss::wrong_destination},
        {"BR out, another CE's port", six("40", kCe, far, "04d40007"), "", false, kLeft, Loss::wrong_source},
        {"BR in, nobody's port", four("40", "c6130002", "c6120002", "00070007"), "", false, kRight,
         Loss::not_routable}};
    for (const Step& step : steps) {
        Framed framed(step.in);
        Forwarder dut = step.at_ce ? ce() : br();
        const auto result = dut.forward(framed.packet, step.from, 1);
        ASSERT_EQ(std::holds_alternative<Loss>(result), step.loss.has_value()) << step.name;
        if (step.loss) {
            EXPECT_EQ(std::get<Loss>(result), *step.loss) << step.name;
        } else {
            EXPECT_EQ(hex(framed.ip()), hex(bytes(step.out))) << step.name;
        }
    }
}

}  // namespace
}  // namespace dutperf
