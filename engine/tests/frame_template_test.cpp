// SPDX-License-Identifier: Apache-2.0
#include "frame/frame_template.hpp"

#include <gtest/gtest.h>

#include <string>

#include "frame/arrival.hpp"

namespace dutperf {
namespace {

const Mac kTester = *parse_mac("02:00:00:00:00:01"), kDut = *parse_mac("02:00:00:00:00:02");
constexpr FrameIdentity kIdentity{
    .trial = 0xABCD34, .stream = kStreamReverse | kStreamBackground, .source_port = 0xC020, .destination_port = 7};

FrameSpec ipv4_spec(std::uint16_t size) {
    return {.size = size, .addresses = {*parse_ipv4("198.18.0.2"), *parse_ipv4("198.19.0.2")}};
}
FrameSpec ipv6_spec(std::uint16_t size) {
    return {.size = size, .addresses = {*parse_ipv6("2001:2::2"), *parse_ipv6("2001:2:0:1000::2")}};
}

std::string hex(const std::uint8_t* at, std::size_t size) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) {
        char two[3];
        std::snprintf(two, sizeof two, "%02x", at[i]);
        text += two;
    }
    return text;
}

// A line a header.
// clang-format off
TEST(FrameTemplate, Ipv4ByteForByte) {
    const FrameTemplate frame(ipv4_spec(64), kTester, kDut, kIdentity, {});
    EXPECT_EQ(hex(frame.data(), frame.length()),
              "020000000002"                              // to the DUT
              "020000000001"                              //
              "0800"                                      //
              "4500002e00004000" "0a11" "e495"            // 46 bytes, don't fragment, TTL 10, UDP; ~(4500+2e+4000+0a11+c612+2+c613+2)
              "c6120002" "c6130002"                       //
              "c0200007" "001a" "0000"                    // ports, 26 bytes, checksum still open
              "d75450" "abcd34" "03" "01"                 // signature, run and trial, reverse background, layout
              "00000000000000000000");                    // sequence and stamp still open
}

TEST(FrameTemplate, Ipv6ByteForByte) {
    const FrameTemplate frame(ipv6_spec(86), kTester, kDut, kIdentity, {});
    EXPECT_EQ(hex(frame.data(), frame.length()),
              "020000000002" "020000000001" "86dd"        //
              "60000000" "001c" "11" "0a"                 // 28 bytes, UDP, hop limit 10
              "20010002000000000000000000000002"          //
              "20010002000010000000000000000002"          //
              "c0200007" "001c" "0000"                    //
              "d75450" "abcd34" "03" "01"                 //
              "00000000000000000000"                      //
              "1213");                                    // the payload counts up after the tag
}

// clang-format on

struct Row {
    const char* name;
    FrameSpec spec;
    AddressVariations vary;
    std::uint16_t at;    // of the destination's slot in the frame
    std::uint16_t word;  // in the frame for the value 0xABCD, big-endian
};

TEST(FrameTemplate, DestinationSlotByTheTable) {
    using enum AddressVariation;
    const std::vector<Row> rows{
        {"IPv4 network: bits 16-23", ipv4_spec(64), {none, network, 0, 0}, 32, 0xCD02},
        {"IPv6 network: bits 56-63", ipv6_spec(84), {none, network, 0, 0}, 44, 0x10CD},
        {"IPv4 last 16 bits", ipv4_spec(64), {none, word, 0, 2}, 32, 0xABCD},
        {"IPv4 at an odd offset", ipv4_spec(64), {none, word, 0, 1}, 31, 0xABCD},
        {"IPv6 last 16 bits", ipv6_spec(84), {none, word, 0, 14}, 52, 0xABCD},
        {"IPv6 at an odd offset", ipv6_spec(84), {none, word, 0, 7}, 45, 0xABCD},
        {"nothing varies: the address itself", ipv4_spec(64), {none, none, 0, 0}, 30, 0xC613},
    };
    for (const Row& row : rows) {
        const FrameTemplate frame(row.spec, kTester, kDut, kIdentity, row.vary);
        EXPECT_EQ(frame.destination_slot().at, row.at) << row.name;
        EXPECT_EQ(swap16(frame.destination_slot().words(Lanes{0xABCD}))[0], row.word) << row.name;
    }
}

TEST(FrameTemplate, AddressesParse) {
    EXPECT_EQ(to_string(*parse_mac("aa:BB:0c:00:00:01")), "aa:bb:0c:00:00:01");
    for (const char* bad :
         {"", "aa:bb:cc:dd:ee", "aa:bb:cc:dd:ee:ff:00", "aa-bb-cc-dd-ee-ff", "aa:bb:cc:dd:ee:f", "gg:bb:cc:dd:ee:ff"})
        EXPECT_FALSE(parse_mac(bad)) << bad;
    EXPECT_FALSE(parse_ipv4("198.18.0.256"));
    EXPECT_FALSE(parse_ipv6("2001:2::2::1"));
    EXPECT_EQ(to_string(multicast_mac(solicited_node(*parse_ipv6("2001:2::1:2345:6789")))), "33:33:ff:45:67:89");
}

}  // namespace
}  // namespace dutperf
