// SPDX-License-Identifier: Apache-2.0
// Mapping of address and port (RFC 7597): its examples, port sets by definition, and bindings of lw4o6.
#include "refdut/map_rules.hpp"

#include <gtest/gtest.h>

#include "refdut/address_map.hpp"

namespace dutperf {
namespace {

MapRule rule(const std::string& ipv4, const std::string& ipv6, std::uint8_t ea_length, PortSharing sharing = {},
             std::optional<std::uint16_t> psid = std::nullopt) {
    return {.ipv4 = *parse_prefix4(ipv4),
            .ipv6 = *parse_prefix6(ipv6),
            .ea_length = ea_length,
            .sharing = sharing,
            .psid = psid};
}

MapRules rules(const std::vector<MapRule>& all) {
    MapRules made;
    for (const MapRule& one : all) EXPECT_TRUE(made.add(one));
    return made;
}

std::optional<Ipv4> ipv4_of(const MapRules& all, const std::string& ipv6) {
    const MapRule* found = all.rule_of(*parse_ipv6(ipv6));
    return found != nullptr ? std::optional(found->ipv4_of(*parse_ipv6(ipv6))) : std::nullopt;
}

// RFC 7597 appendix A, examples 1 and 2: 192.0.2.18 with PSID 0x34 of 8 bits, ports from 1232 on; and appendix B.
TEST(MapRules, ExamplesOfRfc7597) {
    const MapRules shared = rules({rule("192.0.2.0/24", "2001:db8::/40", 16, {.offset = 6, .psid_length = 8})});
    EXPECT_EQ(shared.ipv6_of(*parse_ipv4("192.0.2.18"), 1232), parse_ipv6("2001:db8:12:3400:0:c000:212:34"));
    EXPECT_EQ(ipv4_of(shared, "2001:db8:12:3400:0:c000:212:34"), parse_ipv4("192.0.2.18"));
    EXPECT_FALSE(shared.ipv6_of(*parse_ipv4("192.0.3.18"), 1232)) << "no rule";
    EXPECT_FALSE(ipv4_of(shared, "2001:db9:12:3400:0:c000:212:34")) << "no rule";

    // example 4: a complete address without sharing; example 5: no embedded bits, the PSID is provisioned
    const MapRules whole = rules({rule("192.0.2.0/24", "2001:db8:12::/48", 8)});
    EXPECT_EQ(whole.ipv6_of(*parse_ipv4("192.0.2.18"), 7), parse_ipv6("2001:db8:12:1200:0:c000:212:0"));
    const MapRules provisioned =
        rules({rule("192.0.2.18", "2001:db8:12:3400::/56", 0, {.offset = 6, .psid_length = 8}, 0x34)});
    EXPECT_EQ(provisioned.ipv6_of(*parse_ipv4("192.0.2.18"), 1232), parse_ipv6("2001:db8:12:3400:0:c000:212:34"));
    EXPECT_FALSE(provisioned.ipv6_of(*parse_ipv4("192.0.2.18"), 1236)) << "PSID 0x35";
}

// The ports of RFC 7597 example 2: 1232-1235, 2256-2259, ..., 63696-63699, 64720-64723.
TEST(MapRules, PortsOfAPsid) {
    const PortSharing sharing{.offset = 6, .psid_length = 8};
    std::vector<std::uint16_t> ports;
    for (unsigned port = 0; port < 65536; ++port) {
        if (sharing.psid_of(static_cast<std::uint16_t>(port)) == 0x34)
            ports.push_back(static_cast<std::uint16_t>(port));
    }
    EXPECT_EQ(ports.size(), 63U * 4);
    const std::vector<std::uint16_t> first(ports.begin(), ports.begin() + 5), last(ports.end() - 4, ports.end());
    EXPECT_EQ(first, (std::vector<std::uint16_t>{1232, 1233, 1234, 1235, 2256}));
    EXPECT_EQ(last, (std::vector<std::uint16_t>{64720, 64721, 64722, 64723}));
}

// For every offset and length each port is a number, its PSID and a rest, in the order of RFC 7597 figure 2.
TEST(MapRules, EveryPortBelongsToOnePsidOrIsExcluded) {
    for (std::uint8_t offset = 0; offset < 16; ++offset) {
        for (std::uint8_t length = 1; offset + length <= 16; ++length) {
            const PortSharing sharing{.offset = offset, .psid_length = length};
            const unsigned behind = 1U << (16U - offset - length);
            for (unsigned port = 0; port < 65536; port += 7) {
                const unsigned index = port / (behind << length), psid = port / behind % (1U << length);
                const auto found = sharing.psid_of(static_cast<std::uint16_t>(port));
                if (offset != 0 && index == 0) {
                    ASSERT_FALSE(found) << port;
                } else {
                    ASSERT_EQ(found, psid) << port << ' ' << int{offset} << ' ' << int{length};
                }
            }
        }
    }
    EXPECT_EQ((PortSharing{.offset = 6, .psid_length = 0}.psid_of(7)), 0) << "an address that is not shared";
}

TEST(MapRules, APrefixForACeAndALongPrefixThatOverwritesTheIdentifier) {
    const MapRules prefix = rules({rule("198.18.0.0/16", "2001:2:0:3000::/56", 0)});
    EXPECT_EQ(prefix.ipv6_of(*parse_ipv4("198.18.7.2"), 7), parse_ipv6("2001:2:0:3000:0:c612::"));
    const MapRules longer = rules({rule("198.18.0.0/16", "2001:2:0:3000::/56", 16)});
    EXPECT_EQ(longer.ipv6_of(*parse_ipv4("198.18.7.2"), 7), parse_ipv6("2001:2:0:3007:200:c612:702:0"));
    EXPECT_EQ(ipv4_of(longer, "2001:2:0:3007:200:c612:702:0"), parse_ipv4("198.18.7.2"));
}

// RFC 7596: several subscribers have one address, each an IPv6 address that has nothing of it.
TEST(MapRules, BindingsOfLw4o6) {
    const PortSharing sharing{.offset = 0, .psid_length = 6};
    MapRules table;
    for (std::uint16_t psid = 0; psid < 64; psid = static_cast<std::uint16_t>(psid + 2)) {
        const std::string b4 = "2001:2:0:4000::" + std::to_string(psid + 1);
        ASSERT_TRUE(table.add(rule("198.18.0.2", b4, 0, sharing, psid)));
    }
    EXPECT_EQ(table.ipv6_of(*parse_ipv4("198.18.0.2"), 1023), parse_ipv6("2001:2:0:4000::1"));
    EXPECT_FALSE(table.ipv6_of(*parse_ipv4("198.18.0.2"), 1024)) << "PSID 1 has no subscriber";
    EXPECT_EQ(table.ipv6_of(*parse_ipv4("198.18.0.2"), 2048), parse_ipv6("2001:2:0:4000::3"));
    EXPECT_FALSE(table.add(rule("198.18.0.2", "2001:2:0:4000::99", 0, {.offset = 6, .psid_length = 6}, 1)))
        << "shared in another way";
    EXPECT_TRUE(table.needs_ports());
}

TEST(MapRules, GoBeforeMappingsAndPrefix) {
    const AddressMap map({{*parse_prefix4("0.0.0.0/0"), *parse_prefix6("2001:2:0:4000::af")}}, std::nullopt,
                         rules({rule("198.18.0.0/24", "2001:2:0:3000::/56", 8, {})}));
    EXPECT_EQ(map.to_ipv6(*parse_ipv4("198.18.0.9"), 7), parse_ipv6("2001:2:0:3009:0:c612:9:0"));
    EXPECT_EQ(map.to_ipv6(*parse_ipv4("198.18.1.9"), 7), parse_ipv6("2001:2:0:4000::af"));
}

}  // namespace
}  // namespace dutperf
