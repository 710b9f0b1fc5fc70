// SPDX-License-Identifier: Apache-2.0
#include "frame/layout.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "frame/arrival.hpp"
#include "frame/batch_match.hpp"
#include "tests/test_frame.hpp"

namespace dutperf {
namespace {

struct Row {
    const char* name;
    Layout layout;
    std::size_t type_at, ip_at, protocol_at, source_at, destination_at, transport_at, tag_at, tag_end, min_frame_size,
        mtu_of_1518;
};

TEST(Layout, OffsetsByTheTable) {
    const std::vector<Row> rows{
        {"IPv4", {.ipv6 = false}, 12, 14, 23, 26, 30, 34, 42, 60, 64, 1500},
        {"IPv6", {.ipv6 = true}, 12, 14, 20, 22, 38, 54, 62, 80, 84, 1500},
        {"IPv4, one tag", {.ipv6 = false, .vlan_tags = 1}, 16, 18, 27, 30, 34, 38, 46, 64, 68, 1496},
        {"IPv6, two tags", {.ipv6 = true, .vlan_tags = 2}, 20, 22, 28, 30, 46, 62, 70, 88, 92, 1492},
        {"IPv6, an extension header", {.ipv6 = true, .extensions_size = 8}, 12, 14, 54, 22, 38, 62, 70, 88, 92, 1500},
    };
    for (const Row& row : rows) {
        const Layout& layout = row.layout;
        EXPECT_EQ(layout.type_at(), row.type_at) << row.name;
        EXPECT_EQ(layout.ip_at(), row.ip_at) << row.name;
        EXPECT_EQ(layout.protocol_at(), row.protocol_at) << row.name;
        EXPECT_EQ(layout.source_at(), row.source_at) << row.name;
        EXPECT_EQ(layout.destination_at(), row.destination_at) << row.name;
        EXPECT_EQ(layout.transport_at(), row.transport_at) << row.name;
        EXPECT_EQ(layout.tag_at(), row.tag_at) << row.name;
        EXPECT_EQ(layout.tag_end(), row.tag_end) << row.name;
        EXPECT_EQ(layout.min_frame_size(), row.min_frame_size) << row.name;
        EXPECT_EQ(layout.mtu_of(1518), row.mtu_of_1518) << row.name;
        EXPECT_EQ(layout.frame_size_of(row.mtu_of_1518), 1518) << row.name;
    }
}

TEST(Layout, ChecksumsCoverWhatTheRfcsSay) {
    const Layout ipv4{.ipv6 = false}, ipv6{.ipv6 = true, .extensions_size = 8};
    EXPECT_EQ(ipv4.ip_covered(), (Range{14, 34}));
    EXPECT_EQ(ipv4.addresses(), (Range{26, 34}));
    EXPECT_EQ(ipv4.ip_length(26), 46U);
    EXPECT_EQ(ipv6.ip_covered().size(), 0U);
    EXPECT_EQ(ipv6.addresses(), (Range{22, 54}));
    EXPECT_EQ(ipv6.extensions(), (Range{54, 62}));
    EXPECT_EQ(ipv6.ip_length(26), 34U);
}

// Adds a tag of VLAN 5, and destination options that are padding.
Bytes with_tag_and_extension(Bytes bytes) {
    constexpr std::uint8_t kDestinationOptions = 60;
    const Bytes extension{17, 0, 1, 4, 0, 0, 0, 0}, tag{0x81, 0x00, 0x00, 0x05};
    bytes[20] = kDestinationOptions;
    store_be16(&bytes[18], static_cast<std::uint16_t>(load_be16(&bytes[18]) + extension.size()));
    bytes.insert(bytes.begin() + 54, extension.begin(), extension.end());
    bytes.insert(bytes.begin() + 12, tag.begin(), tag.end());
    return bytes;
}

// All readers of frames follow the layout: one by one, and by batch match.
TEST(Layout, FramesOfAnotherLayoutAreReadByIt) {
    constexpr Layout kLayout{.ipv6 = true, .vlan_tags = 1, .extensions_size = 8};
    const auto batch = std::make_unique<BatchMatch<kLayout>>();
    const Bytes first = with_tag_and_extension(test_frame({.ipv6 = true, .size = 90, .sequence = 7}));
    ASSERT_EQ(find_tag_at<kLayout>(first.data(), first.size()), first.data() + 74);
    ASSERT_TRUE(is_intact_at<kLayout>(first.data(), first.size()));
    batch->set_reference(first.data(), first.size());
    const Bytes next =
        with_tag_and_extension(test_frame({.ipv6 = true, .size = 90, .sequence = 8, .ports = 0x12345678}));
    batch->reader()(0, next.data(), next.size());
    batch->match(1);
    ASSERT_EQ(batch->run_from(0, 1).size(), 1U);
    EXPECT_EQ(batch->tag(0).sequence, 8U);
    for (const std::size_t at :
         {13U, 15U, 18U, 60U, 70U, 89U}) {  // types, tag, version, extension header, ports, after the tag
        Bytes bad = next;
        bad[at] ^= 0x40U;
        batch->reader()(0, bad.data(), bad.size());
        batch->match(1);
        EXPECT_TRUE(batch->run_from(0, 1).empty()) << at;
    }
}

}  // namespace
}  // namespace dutperf
