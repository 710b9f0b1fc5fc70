// SPDX-License-Identifier: Apache-2.0
#include "dns/test_name.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dutperf::dns {
namespace {

std::string text_of(const TestName& name) {
    std::array<std::uint8_t, kTestLabelSize> label{};
    write_test_label(name, label.data());
    return {label.begin(), label.end()};
}

std::optional<TestName> read(const std::string& label) {
    return read_test_label({reinterpret_cast<const std::uint8_t*>(label.data()), label.size()});
}

TEST(DnsTestName, LabelsSayTheirNumbers) {
    EXPECT_EQ(text_of({.has_aaaa = false, .run = 0x12AB, .trial = 7, .number = 0xFEDCBA9876}), "a12ab0007fedcba9876");
    EXPECT_EQ(text_of({.has_aaaa = true, .number = 1}), "b000000000000000001");
    for (const TestName& name : {TestName{.has_aaaa = true, .run = 0xFFFF, .trial = 0x1000, .number = kMaxTestNumber},
                                 TestName{.run = 1, .trial = 0xFF, .number = 123456}}) {
        std::string label = text_of(name);
        EXPECT_EQ(read(label), name);
        for (char& letter : label) letter = static_cast<char>(std::toupper(letter));
        EXPECT_EQ(read(label), name);
    }
    for (const char* other :
         {"c12ab0007fedcba9876", "a12ab0007fedcba987", "a12ab0007fedcba98766", "a12ab0007fedcba987g", ""})
        EXPECT_FALSE(read(other)) << other;
}

TEST(DnsTestName, AddressesFollowFromTheNumber) {
    EXPECT_EQ(to_string(a_record_of(7)), "198.18.0.7");
    EXPECT_EQ(to_string(a_record_of(131071)), "198.19.255.255");
    EXPECT_EQ(to_string(a_record_of(131072 + 256)), "198.18.1.0");
    EXPECT_EQ(to_string(aaaa_record_of(0x123456789A)), "2001:2:0:d64:0:12:3456:789a");
}

TEST(DnsTestName, LabelsOfAddressesHaveThreeDigitsForEachByte) {
    std::array<std::uint8_t, kAddressLabelSize> label{};
    for (const auto& [address, text] :
         {std::pair{"198.18.0.7", "198-018-000-007"}, std::pair{"255.255.255.255", "255-255-255-255"},
          std::pair{"0.90.100.10", "000-090-100-010"}}) {
        write_address_label(*parse_ipv4(address), label.data());
        EXPECT_EQ(std::string(label.begin(), label.end()), text);
    }
}

TEST(DnsTestName, ZonesOfText) {
    const auto zone = parse_zone("dutperf.test");
    ASSERT_TRUE(zone);
    EXPECT_EQ(std::string(zone->name().begin(), zone->name().end()), std::string("\x07"
                                                                                 "dutperf"
                                                                                 "\x04"
                                                                                 "test\0",
                                                                                 14));
    EXPECT_TRUE(parse_zone("a.b.c.d.e.f.g.h"));
    EXPECT_TRUE(parse_zone(std::string(60, 'a') + ".com"));
    for (const std::string& other :
         {std::string(), std::string("."), std::string("a."), std::string(".a"), std::string("a..b"), std::string("A"),
          std::string("a_b"), std::string("a.b.c.d.e.f.g.h.i"), std::string(64, 'a'), std::string(60, 'a') + ".comm"})
        EXPECT_FALSE(parse_zone(other)) << other;
}

TEST(DnsTestName, PlacesOfAZone) {
    const auto place = [zone = *parse_zone("zone.test")](std::string name) {
        for (char& letter : name) letter = letter == '.' ? '\0' : letter;
        std::vector<std::uint8_t> wire;
        for (std::size_t at = 0; at < name.size();) {
            const std::string label = name.c_str() + at;
            wire.push_back(static_cast<std::uint8_t>(label.size()));
            wire.insert(wire.end(), label.begin(), label.end());
            at += label.size() + 1;
        }
        wire.push_back(0);
        return zone.place_in(wire);
    };
    EXPECT_EQ(place("zone.test"), 0U);
    EXPECT_EQ(place("www.zone.test"), 4U);
    EXPECT_EQ(place("_.www.ZONE.tEsT"), 6U);
    for (const char* other : {"test", "zone.tesu", "azone.test", "www.azone.test", "zone.test.com"})
        EXPECT_FALSE(place(other)) << other;
}

}  // namespace
}  // namespace dutperf::dns
