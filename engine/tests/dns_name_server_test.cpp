// SPDX-License-Identifier: Apache-2.0
// The name server by rows: a query, its answer, and what it counts as. Frames around them are checked by definition.
#include "dns/name_server.hpp"

#include <gtest/gtest.h>

#include "tests/ip_packet.hpp"

namespace dutperf::dns {
namespace {

using Buffer = std::vector<std::uint8_t>;

const std::string kZone = "047a6f6e65 00 ";  // zone
const std::string kA = "0001 0001 ", kAaaa = "001c 0001 ", kTxt = "0010 0001 ";
const std::string kOpt = "00 0029 1000 00000000 0000 ", kOurOpt = "00 0029 04d0 00000000 0000 ";
// of "zone", whose name is at that byte
std::string soa(const std::string& at) {
    return at + " 0006 0001 00000005 0026 026e73" + at + "0a686f73746d6173746572" + at +
           "00000001 00000e10 00000258 00015180 00000005 ";
}
// name number 5 of trial 7 and run 0x12ab, and others
const std::string kOfA = "13 61 31326162 30303037 30303030303030303035 " + kZone;
const std::string kOfB = "13 62 31326162 30303037 30303030303030303035 " + kZone;
const std::string kInCapitals = "13 42 31324142 30303037 30303030303030303035 045A6f4e45 00 ";
const std::string kOtherTrial = "13 61 31326162 30303036 30303030303030303035 " + kZone;
const std::string kOtherRun = "13 61 31326163 30303037 30303030303030303035 " + kZone;

NameServer server() {
    return NameServer({.zone = *parse_zone("zone"),
                       .ttl_s = 5,
                       .ipv4 = parse_ipv4("198.19.0.2"),
                       .ipv6 = {*parse_ipv6("2001:2:0:1000::2"), *parse_ipv6("fe80::1")},
                       .run = 0x12AB,
                       .trials = {7}});
}

// A frame with right checksums to port 53 of the server.
Buffer query_frame(bool six, const std::string& message, const std::string& to = "") {
    const Buffer payload = bytes(message);
    const auto length = static_cast<std::uint16_t>(udp::kSize + payload.size());
    Buffer ip = six ? bytes("60000000 0000 11 40 20010002000000000000000000000002" +
                            (to.empty() ? "20010002000010000000000000000002" : to))
                    : bytes("4500 0000 0001 0000 40 11 0000 c6120002" + (to.empty() ? "c6130002" : to));
    const std::size_t header = ip.size();
    store_be16(&ip[six ? ipv6::kPayloadLength : ipv4::kLength],
               static_cast<std::uint16_t>(six ? length : header + length));
    ip.resize(header + udp::kSize);
    store_be16(&ip[header + udp::kSourcePort], 0xC020);
    store_be16(&ip[header + udp::kDestinationPort], 53);
    store_be16(&ip[header + udp::kLength], length);
    ip.insert(ip.end(), payload.begin(), payload.end());
    fill_checksums(ip, udp::kChecksum, kProtocolUdp);
    Buffer frame = bytes(six ? "020000000001 020000000002 86dd" : "020000000001 020000000002 0800");
    frame.insert(frame.end(), ip.begin(), ip.end());
    return frame;
}

// The answer as a frame; empty: there is none.
Buffer answer(NameServer& server, const Buffer& frame) {
    const auto datagram = server.datagram_in(frame);
    if (!datagram) return {};
    Buffer to(NameServer::kMostAnswerSize);
    to.resize(server.answer(frame, *datagram, to));
    return to;
}

Buffer message_in(const Buffer& frame, bool six) {
    const auto headers = static_cast<std::ptrdiff_t>(datagram_payload_at(six));
    return frame.empty() ? frame : Buffer(frame.begin() + headers, frame.end());
}

struct Row {
    const char* name;
    std::string query, answer;
    std::uint64_t QueryCounts::*counted;
};

const Row kRows[] = {
    {"A of a name", "0001 0100 0001 0000 0000 0000 " + kOfA + kA,
     "0001 8500 0001 0001 0000 0000 " + kOfA + kA + "c00c 0001 0001 00000005 0004 c6120005", &QueryCounts::a},
    {"AAAA of a name without", "0001 0000 0001 0000 0000 0001 " + kOfA + kAaaa + kOpt,
     "0001 8400 0001 0000 0001 0001 " + kOfA + kAaaa + soa("c020") + kOurOpt, &QueryCounts::aaaa},
    {"AAAA of a name with one, in capitals", "0001 0000 0001 0000 0000 0000 " + kInCapitals + kAaaa,
     "0001 8400 0001 0001 0000 0000 " + kInCapitals + kAaaa +
         "c00c 001c 0001 00000005 0010 20010002 00000d64 00000000 00000005",
     &QueryCounts::aaaa},
    {"A of a name with both", "0001 0000 0001 0000 0000 0000 " + kOfB + kA,
     "0001 8400 0001 0001 0000 0000 " + kOfB + kA + "c00c 0001 0001 00000005 0004 c6120005", &QueryCounts::a},
    {"another type", "0001 0000 0001 0000 0000 0000 " + kOfA + kTxt,
     "0001 8400 0001 0000 0001 0000 " + kOfA + kTxt + soa("c020"), &QueryCounts::other},
    {"of an earlier trial", "0001 0000 0001 0000 0000 0000 " + kOtherTrial + kA,
     "0001 8400 0001 0001 0000 0000 " + kOtherTrial + kA + "c00c 0001 0001 00000005 0004 c6120005",
     &QueryCounts::stale},
    {"of another run", "0001 0000 0001 0000 0000 0000 " + kOtherRun + kTxt,
     "0001 8400 0001 0000 0001 0000 " + kOtherRun + kTxt + soa("c020"), &QueryCounts::stale},
    {"SOA of the zone", "0001 0000 0001 0000 0000 0000 " + kZone + "0006 0001",
     "0001 8400 0001 0001 0000 0000 " + kZone + "0006 0001" + soa("c00c"), &QueryCounts::other},
    {"NS of the zone", "0001 0000 0001 0000 0000 0000 " + kZone + "0002 0001",
     "0001 8400 0001 0001 0000 0000 " + kZone + "0002 0001 c00c 0002 0001 00000005 0005 026e73c00c",
     &QueryCounts::other},
    {"A of the zone", "0001 0000 0001 0000 0000 0000 " + kZone + kA,
     "0001 8400 0001 0000 0001 0000 " + kZone + kA + soa("c00c"), &QueryCounts::other},
    {"A of its server", "0001 0000 0001 0000 0000 0000 024e73 " + kZone + kA,
     "0001 8400 0001 0001 0000 0000 024e73 " + kZone + kA + "c00c 0001 0001 00000005 0004 c6130002",
     &QueryCounts::other},
    {"AAAA of its server", "0001 0000 0001 0000 0000 0000 026e73 " + kZone + kAaaa,
     "0001 8400 0001 0001 0000 0000 026e73 " + kZone + kAaaa +
         "c00c 001c 0001 00000005 0010 20010002000010000000000000000002",
     &QueryCounts::other},
    {"no name of the zone", "0001 0000 0001 0000 0000 0000 015f " + kZone + kA,
     "0001 8403 0001 0000 0001 0000 015f " + kZone + kA + soa("c00e"), &QueryCounts::unknown},
    {"below a name", "0001 0000 0001 0000 0000 0000 0161 " + kOfA + kA,
     "0001 8403 0001 0000 0001 0000 0161 " + kOfA + kA + soa("c022"), &QueryCounts::unknown},
    {"out of the zone", "0001 0100 0001 0000 0000 0000 047a6f6e66 00 " + kA,
     "0001 8105 0001 0000 0000 0000 047a6f6e66 00 " + kA, &QueryCounts::refused},
    {"the root", "0001 0000 0001 0000 0000 0000 00 0002 0001", "0001 8005 0001 0000 0000 0000 00 0002 0001",
     &QueryCounts::refused},
    {"another class", "0001 0000 0001 0000 0000 0000 " + kOfA + "0001 0003",
     "0001 8005 0001 0000 0000 0000 " + kOfA + "0001 0003", &QueryCounts::refused},
    {"another opcode", "0001 2800 0001 0000 0000 0000 " + kOfA + kA, "0001 a804 0000 0000 0000 0000",
     &QueryCounts::refused},
    {"a later version of EDNS", "0001 0000 0001 0000 0000 0001 " + kOfA + kA + "00 0029 1000 00018000 0000",
     "0001 8000 0001 0000 0000 0001 " + kOfA + kA + "00 0029 04d0 01008000 0000", &QueryCounts::refused},
    {"two questions", "0001 0100 0002 0000 0000 0000 " + kOfA + kA + kOfA + kA, "0001 8101 0000 0000 0000 0000",
     &QueryCounts::malformed},
    {"a question that does not end", "0001 0000 0001 0000 0000 0000 " + kOfA, "0001 8001 0000 0000 0000 0000",
     &QueryCounts::malformed},
    {"a response", "0001 8000 0001 0000 0000 0000 " + kOfA + kA, "", &QueryCounts::malformed},
    {"half a header", "0001 0000 0001", "", &QueryCounts::malformed},
    {"nothing", "", "", &QueryCounts::malformed},
};

TEST(DnsNameServer, AnswersByTheTable) {
    for (const bool six : {false, true}) {
        for (const Row& row : kRows) {
            NameServer one = server();
            const Buffer got = answer(one, query_frame(six, row.query));
            EXPECT_EQ(message_in(got, six), bytes(row.answer)) << row.name;
            EXPECT_EQ(one.counts().*row.counted, 1U) << row.name;
            const QueryCounts& all = one.counts();
            EXPECT_EQ(all.a + all.aaaa + all.other + all.stale + all.unknown + all.refused + all.malformed, 1U)
                << row.name;
        }
    }
}

TEST(DnsNameServer, AnAnswerGoesBackWithRightChecksums) {
    for (const bool six : {false, true}) {
        for (const std::string& type : {kA, kAaaa, kTxt}) {
            NameServer one = server();
            const Buffer frame = answer(one, query_frame(six, "0001 0000 0001 0000 0000 0000 " + kOfB + type));
            EXPECT_EQ(Buffer(frame.begin(), frame.begin() + 12), bytes("020000000002 020000000001"));
            const Buffer ip(frame.begin() + 14, frame.end());
            EXPECT_EQ(transport_sum(ip, kProtocolUdp), 0xFFFF);
            const auto back = read_datagram(frame);
            ASSERT_TRUE(back);
            EXPECT_EQ(back->checksum, Checksum::good);
            EXPECT_EQ(to_string(back->between.source), six ? "2001:2:0:1000::2" : "198.19.0.2");
            EXPECT_EQ(to_string(back->between.destination), six ? "2001:2::2" : "198.18.0.2");
            EXPECT_EQ(back->between.source_port, 53);
            EXPECT_EQ(back->between.destination_port, 0xC020);
            EXPECT_TRUE(six || ip[ipv4::kFragment] == 0x40) << "don't fragment";
            EXPECT_EQ(ip[six ? ipv6::kHopLimit : ipv4::kTtl], 64);
        }
    }
}

TEST(DnsNameServer, TakesWhatIsForItAndIntact) {
    const std::string query = "0001 0000 0001 0000 0000 0000 " + kOfA + kA;
    NameServer one = server();
    EXPECT_FALSE(one.datagram_in(query_frame(false, query, "c6130003")));
    EXPECT_FALSE(one.datagram_in(query_frame(true, query, "20010002000010000000000000000003")));
    EXPECT_FALSE(answer(one, query_frame(true, query, "fe800000000000000000000000000001")).empty());
    for (const bool six : {false, true}) {
        const Buffer whole = query_frame(six, query);
        for (std::size_t length = 0; length < whole.size(); ++length)
            EXPECT_TRUE(
                answer(one, Buffer(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))).empty());
        for (std::size_t at = datagram_payload_at(six); at < whole.size(); ++at) {
            Buffer damaged = whole;
            damaged[at] ^= 1U;
            EXPECT_TRUE(answer(one, damaged).empty()) << at;
        }
        Buffer padded = whole;
        padded.resize(padded.size() + 9, 0xFF);
        EXPECT_EQ(answer(one, padded), answer(one, whole));
        Buffer other_port = whole;
        other_port[datagram_payload_at(six) - 5] ^= 1U;
        EXPECT_FALSE(one.datagram_in(other_port));
    }
    Buffer fragment = query_frame(false, query);
    fragment[14 + ipv4::kFragment] = 0x20;
    EXPECT_FALSE(one.datagram_in(fragment));
}

TEST(DnsNameServer, UnfinishedChecksumsWhereTheyMayBe) {
    Buffer frame = query_frame(true, "0001 0000 0001 0000 0000 0000 " + kOfA + kA);
    const auto length = static_cast<std::uint16_t>(frame.size() - 54);
    store(&frame[54 + udp::kChecksum],
          checksum_fold(pseudo_header_sum(&frame[14 + ipv6::kSource], 32, length, kProtocolUdp)));
    NameServer strict = server();
    EXPECT_TRUE(answer(strict, frame).empty());
    NameServer tolerant(
        {.zone = *parse_zone("zone"), .ipv6 = {*parse_ipv6("2001:2:0:1000::2")}, .takes_unfinished = true});
    EXPECT_FALSE(answer(tolerant, frame).empty());
}

// Nothing has to be truncated: the least that a client takes over UDP (RFC 1035 4.2.1).
TEST(DnsNameServer, NoAnswerIsLongerThan512Bytes) {
    const std::string label60 = "3c" + std::string(std::size_t{2} * 60, '7');
    const std::string longest = label60 + label60 + label60 + label60 + "04 7a7a7a7a";  // with the zone 255 bytes
    for (const std::string& name : {longest + kZone, kOfA, kOfB, std::string("026e73") + kZone, kZone}) {
        for (const std::string& type : {kA, kAaaa, kTxt, std::string("0006 0001"), std::string("0002 0001")}) {
            NameServer one = server();
            const Buffer got = answer(one, query_frame(true, "0001 0000 0001 0000 0000 0001 " + name + type + kOpt));
            ASSERT_FALSE(got.empty());
            EXPECT_EQ(one.counts().malformed, 0U) << name;
            EXPECT_LE(message_in(got, true).size(), 512U) << name;
        }
    }
}

}  // namespace
}  // namespace dutperf::dns
