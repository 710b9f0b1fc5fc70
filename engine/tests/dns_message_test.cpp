// SPDX-License-Identifier: Apache-2.0
// DNS messages byte by byte: queries and their answers, and messages that no reader may trust.
#include "dns/message.hpp"

#include <gtest/gtest.h>

#include "dns/embedding.hpp"
#include "tests/ip_packet.hpp"

namespace dutperf::dns {
namespace {

using Buffer = std::vector<std::uint8_t>;

// www.example, A or AAAA, and the pointer to it.
const std::string kName = "03777777 076578616d706c65 00 ", kAskA = kName + "0001 0001 ",
                  kAskAaaa = kName + "001c 0001 ";
const std::string kOpt = "00 0029 04d0 00000000 0000 ";
constexpr std::size_t kZoneAt = 4;  // "example"
// ns.example hostmaster.example 1 3600 600 86400 60, of "example", whose name is at byte 16
const std::string kSoa =
    "c010 0006 0001 0000003c 0026 026e73c010 0a686f73746d6173746572c010 00000001 00000e10 00000258 00015180 0000003c ";

std::size_t write(const std::string& query, const Reply& reply, Buffer& to) {
    to = bytes(query);
    const auto question = read_question(to);
    to.resize(512);
    return question ? write_reply(to, *question, reply) : write_error(to, reply.rcode);
}

TEST(DnsMessage, AnswersByteByByte) {
    const Ipv4 a{198, 18, 0, 7};
    const std::array<Ipv6, 1> aaaa{*parse_ipv6("64:ff9b::c612:7")};
    const struct {
        const char* name;
        std::string query;
        Reply reply;
        std::string answer;
    } rows[] = {
        {"an A record",
         "1234 0100 0001 0000 0000 0000 " + kAskA,
         {.authoritative = true, .ttl_s = 60, .a = &a},
         "1234 8500 0001 0001 0000 0000 " + kAskA + "c00c 0001 0001 0000003c 0004 c6120007"},
        {"an AAAA record",
         "1234 0000 0001 0000 0000 0000 " + kAskAaaa,
         {.recursion_available = true, .ttl_s = 60, .aaaa = aaaa},
         "1234 8080 0001 0001 0000 0000 " + kAskAaaa +
             "c00c 001c 0001 0000003c 0010 0064ff9b 00000000 00000000 c6120007"},
        {"no data",
         "0001 0100 0001 0000 0000 0001 " + kAskAaaa + kOpt,
         {.authoritative = true, .ttl_s = 60, .soa = true, .zone_at = kZoneAt, .edns = Edns{.dnssec_ok = true}},
         "0001 8500 0001 0000 0001 0001 " + kAskAaaa + kSoa + "00 0029 04d0 00008000 0000"},
        {"no such name",
         "0001 0000 0001 0000 0000 0000 " + kAskA,
         {.rcode = Rcode::nxdomain, .authoritative = true, .ttl_s = 60, .soa = true, .zone_at = kZoneAt},
         "0001 8403 0001 0000 0001 0000 " + kAskA + kSoa},
        {"the zone's own records",
         "0001 0000 0001 0000 0000 0000 " + kName + "00ff 0001 ",
         {.ttl_s = 60, .soa_as_answer = true, .ns = true, .zone_at = kZoneAt},
         "0001 8000 0001 0002 0000 0000 " + kName + "00ff 0001 " + kSoa + "c010 0002 0001 0000003c 0005 026e73c010"},
        {"refused",
         "0001 0100 0001 0000 0000 0000 " + kAskA,
         {.rcode = Rcode::refused},
         "0001 8105 0001 0000 0000 0000 " + kAskA},
        {"servfail",
         "0001 0110 0001 0000 0000 0000 " + kAskA,
         {.rcode = Rcode::servfail},
         "0001 8102 0001 0000 0000 0000 " + kAskA},
        {"another opcode",
         "0001 2000 0001 0000 0000 0000 " + kAskA,
         {.rcode = Rcode::notimp},
         "0001 a004 0001 0000 0000 0000 " + kAskA},
        {"a later version of EDNS",
         "0001 0000 0001 0000 0000 0001 " + kAskA + "00 0029 1000 00050000 0000",
         {.rcode = Rcode::badvers, .edns = Edns{}},
         "0001 8000 0001 0000 0000 0001 " + kAskA + "00 0029 04d0 01000000 0000"},
        {"a header only", "0001 0100 0001 0000 0000 0000 ", {.rcode = Rcode::formerr}, "0001 8101 0000 0000 0000 0000"},
    };
    for (const auto& row : rows) {
        Buffer buffer;
        const std::size_t size = write(row.query, row.reply, buffer);
        EXPECT_EQ(Buffer(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(size)), bytes(row.answer))
            << row.name;
        EXPECT_TRUE(row.reply.rcode == Rcode::formerr || read_message({buffer.data(), size})) << row.name;
    }
}

TEST(DnsMessage, AQueryByteByByte) {
    const Buffer name = bytes(kName);
    Buffer buffer(64);
    const std::size_t size = write_query({.id = 0xBEEF, .name = name}, buffer);
    buffer.resize(size);
    EXPECT_EQ(buffer, bytes("beef 0100 0001 0000 0000 0001 " + kAskAaaa + kOpt));
    const auto read = read_message(buffer);
    ASSERT_TRUE(read && read->edns);
    EXPECT_EQ(read->edns->udp_size, kUdpSize);
    EXPECT_EQ(read->question.type, type::kAaaa);
}

TEST(DnsMessage, WhatDoesNotFitIsNotWritten) {
    const Buffer name = bytes(kName), query = bytes("0001 0000 0001 0000 0000 0000 " + kAskA);
    const Ipv4 a{198, 18, 0, 7};
    const Reply reply{.ttl_s = 60, .a = &a, .soa = true, .edns = Edns{}};
    Buffer whole;
    const std::size_t needs = write("0001 0000 0001 0000 0000 0000 " + kAskA, reply, whole);
    for (std::size_t room = 0; room < 200; ++room) {
        Buffer buffer(query);
        buffer.resize(room);
        const std::size_t size = write_reply(buffer, *read_question(query), reply);
        EXPECT_EQ(size, room < needs ? 0 : needs) << room;
        EXPECT_EQ(write_query({.name = name}, buffer), room < 40 ? 0 : 40) << room;
    }
}

TEST(DnsMessage, MessagesThatCannotBeRead) {
    const std::string head = "0001 8000 0001 0001 0000 0000 ";
    const std::string record = " 0001 0001 00000000 0004 c6120007";
    const std::string label = "3f" + std::string(126, '6');
    const struct {
        const char* name;
        std::string message;
        bool is_read;
    } rows[] = {
        {"a pointer to the question", head + kAskA + "c00c" + record, true},
        {"a pointer behind labels", head + kAskA + "0161 c00c" + record, true},
        {"a name of its own", head + kAskA + kName + record, true},
        {"no record", head + kAskA, false},
        {"half a record", head + kAskA + "c00c 0001 0001 0000", false},
        {"data that does not end", head + kAskA + "c00c 0001 0001 00000000 0005 c6120007", false},
        {"a pointer to itself", head + kAskA + "c01d" + record, false},
        {"a pointer to a later name", head + kAskA + "c02d" + record + "00", false},
        {"a pointer back to its own labels", head + kAskA + "0161 c01d" + record, false},
        {"a pointer into the header", head + kAskA + "c000" + record, false},
        {"half a pointer", head + kAskA + "c0", false},
        {"a label of another kind", head + kAskA + "4061 00" + record, false},
        {"labels that do not end", head + kAskA + "0361", false},
        {"a long name", head + label + label + label + "3d" + std::string(122, '6') + "00 0001 0001 c00c" + record,
         true},
        {"a name that is too long",
         head + label + label + label + "3e" + std::string(124, '6') + "00 0001 0001 c00c" + record, false},
        {"a pointer that makes a name too long",
         head + label + label + label + "3d" + std::string(122, '6') + "00 0001 0001 0161c00c" + record, false},
        {"a compressed question", "0001 8000 0001 0000 0000 0000 c00c 0001 0001", false},
        {"two questions", "0001 8000 0002 0000 0000 0000 " + kAskA + kAskA, false},
        {"no question", "0001 8000 0000 0000 0000 0000 ", false},
        {"two OPT records", "0001 8000 0001 0000 0000 0002 " + kAskA + kOpt + kOpt, false},
        {"an OPT record with a name", "0001 8000 0001 0000 0000 0001 " + kAskA + "c00c 0029 04d0 00000000 0000", false},
        {"an OPT record as answer", "0001 8000 0001 0001 0000 0000 " + kAskA + kOpt, false},
        {"a short header", "0001 8000 0001", false},
    };
    for (const auto& row : rows) {
        const Buffer message = bytes(row.message);
        EXPECT_EQ(read_message(message).has_value(), row.is_read) << row.name;
        for (std::size_t size = 0; size < message.size(); ++size) {
            const Buffer cut(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(size));
            EXPECT_FALSE(read_message(cut)) << row.name << " of " << size << " bytes";
        }
    }
}

TEST(DnsMessage, TheUpperBitsOfTheRcode) {
    const Buffer message = bytes("0001 8000 0001 0000 0000 0001 " + kAskA + "00 0029 04d0 01000000 0000");
    EXPECT_EQ(read_message(message)->rcode(), Rcode::badvers);
}

// The table of RFC 6052 2.4.
TEST(DnsEmbedding, ExamplesOfRfc6052) {
    const Ipv4 address{192, 0, 2, 33};
    const struct {
        const char* prefix;
        std::uint8_t length;
        const char* embedded;
    } rows[] = {
        {"2001:db8::", 32, "2001:db8:c000:221::"},
        {"2001:db8:100::", 40, "2001:db8:1c0:2:21::"},
        {"2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"},
        {"2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"},
        {"2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100::"},
        {"2001:db8:122:344::", 96, "2001:db8:122:344::192.0.2.33"},
    };
    for (const auto& row : rows) {
        const Ipv6 made = embed({.prefix = *parse_ipv6(row.prefix), .length = row.length}, address);
        EXPECT_EQ(to_string(made), to_string(*parse_ipv6(row.embedded)));
        EXPECT_EQ(embedded(row.length, made), address);
    }
}

}  // namespace
}  // namespace dutperf::dns
