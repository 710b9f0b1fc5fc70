// SPDX-License-Identifier: Apache-2.0
#include "frame/arrival.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/test_frame.hpp"

namespace dutperf {
namespace {

bool arrives_intact(const Bytes& bytes) {
    const std::uint8_t* payload = find_tag(bytes.data(), bytes.size());
    return payload != nullptr && is_intact(bytes.data(), bytes.size());
}

TEST(Arrival, FramesOfEverySizeAreRecognised) {
    for (const bool ipv6 : {false, true}) {
        for (const std::uint16_t size :
             {std::uint16_t{84}, std::uint16_t{85}, std::uint16_t{128}, std::uint16_t{1518}, std::uint16_t{9216}}) {
            const Bytes bytes = test_frame({.ipv6 = ipv6, .size = size});
            ASSERT_TRUE(arrives_intact(bytes)) << ipv6 << size;
            const Tag tag = read_tag(find_tag(bytes.data(), bytes.size()));
            EXPECT_EQ(tag.trial, 9);
            EXPECT_EQ(tag.sequence, 0x123456789AU);
            EXPECT_EQ(tag.stamp, 0xFEDCBA9876U);
        }
    }
}

TEST(Arrival, PaddingIsNotCorruption) {
    Bytes bytes = test_frame({});
    bytes.resize(bytes.size() + 4, 0xEE);
    EXPECT_TRUE(arrives_intact(bytes));
}

// Any bit error from the IP header on is detected, except those that make it another kind of frame.
TEST(Arrival, EveryBitErrorIsDetected) {
    for (const bool ipv6 : {false, true}) {
        const Bytes good = test_frame({.ipv6 = ipv6, .size = 90});
        for (std::size_t bit = 8 * ethernet::kSize; bit < 8 * good.size(); ++bit) {
            Bytes bad = good;
            bad[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
            const bool unprotected = ipv6 && bit >= 8 * 14 && bit < 8 * 22 && (bit / 8 < 18 || bit / 8 == 21) &&
                                     bit / 8 != 14;  // flow label, hop limit
            const bool traffic_class = ipv6 && bit / 8 == 14 && bit % 8 < 4;
            if (!unprotected && !traffic_class) {
                EXPECT_FALSE(arrives_intact(bad)) << "byte " << bit / 8 << " bit " << bit % 8;
            }
        }
    }
}

TEST(Arrival, CutFramesAreNotRead) {
    const Bytes good = test_frame({.ipv6 = true, .size = 84});
    for (std::size_t length = 0; length < good.size(); ++length) {
        const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_FALSE(arrives_intact(cut)) << length;
        kind_of(cut.data(), cut.size());
    }
}

TEST(Arrival, Ipv4MayDoWithoutAUdpChecksum) {
    Bytes bytes = test_frame({});
    store<std::uint16_t>(&bytes[ethernet::kSize + ipv4::kSize + udp::kChecksum], 0);
    EXPECT_TRUE(arrives_intact(bytes));
}

Bytes frame_of(std::uint16_t type, Bytes payload) {
    Bytes bytes(ethernet::kSize);
    store_be16(&bytes[ethernet::kType], type);
    payload.resize(std::max<std::size_t>(payload.size(), 46));
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
}

Bytes ipv4_of(std::uint8_t protocol, std::uint8_t first) {
    Bytes bytes(ipv4::kSize + 8);
    bytes[0] = 0x45;
    bytes[ipv4::kProtocol] = protocol;
    bytes[ipv4::kSize] = first;
    return frame_of(ethernet::kTypeIpv4, bytes);
}

Bytes ipv6_of(std::uint8_t next, std::uint8_t first) {
    Bytes bytes(ipv6::kSize + 8);
    bytes[0] = 0x60;
    bytes[ipv6::kNextHeader] = next;
    bytes[ipv6::kSize] = first;
    return frame_of(ethernet::kTypeIpv6, bytes);
}

// A multicast listener report: hop-by-hop options precede ICMPv6.
Bytes report() {
    Bytes bytes = ipv6_of(0, kProtocolIcmpv6);
    bytes[ethernet::kSize + ipv6::kSize + 8] = 143;
    return bytes;
}

// With the fragment field of IPv4, or an IPv6 fragment header with these two bytes.
Bytes fragment(bool ipv6, std::uint16_t offset_and_flags) {
    Bytes bytes = ipv6 ? ipv6_of(44, 17) : ipv4_of(17, 0);
    store_be16(&bytes[ethernet::kSize + (ipv6 ? ipv6::kSize + 2 : ipv4::kFragment)], offset_and_flags);
    return bytes;
}

Bytes to_group(Bytes frame) {
    frame[0] |= 1U;
    return frame;
}

TEST(Arrival, KindsByTheTable) {
    struct Row {
        OtherKind kind;
        Bytes frame;
    };
    const std::vector<Row> rows{
        {OtherKind::arp_request, frame_of(0x0806, {0, 1, 8, 0, 6, 4, 0, 1})},
        {OtherKind::arp_reply, frame_of(0x0806, {0, 1, 8, 0, 6, 4, 0, 2})},
        {OtherKind::icmp_unreachable, ipv4_of(1, 3)},
        {OtherKind::icmp_time_exceeded, ipv4_of(1, 11)},
        {OtherKind::icmp_other, ipv4_of(1, 8)},
        {OtherKind::udp, ipv4_of(17, 0)},
        {OtherKind::tcp, ipv4_of(6, 0)},
        {OtherKind::ipv4_other, ipv4_of(89, 0)},
        {OtherKind::icmpv6_unreachable, ipv6_of(58, 1)},
        {OtherKind::icmpv6_packet_too_big, ipv6_of(58, 2)},
        {OtherKind::icmpv6_time_exceeded, ipv6_of(58, 3)},
        {OtherKind::ndp_solicitation, ipv6_of(58, 135)},
        {OtherKind::ndp_advertisement, ipv6_of(58, 136)},
        {OtherKind::icmpv6_other, report()},
        {OtherKind::udp, ipv6_of(17, 0)},
        {OtherKind::ipv6_other, ipv6_of(44, 0)},
        {OtherKind::fragment, fragment(false, 0x2000)},  // the first one
        {OtherKind::fragment, fragment(false, 185)},     // the last one
        {OtherKind::udp, fragment(false, ipv4::kDontFragment)},
        {OtherKind::fragment, fragment(true, 1)},
        {OtherKind::fragment, fragment(true, 185 << 3)},
        {OtherKind::ipv6_other, fragment(true, 0)},  // "atomic": the whole packet
        {OtherKind::ipv4_other, to_group(fragment(false, 185))},
        {OtherKind::ipv6_other, to_group(fragment(true, 1))},
        {OtherKind::not_ip, frame_of(0x88CC, {})},
    };
    for (const Row& row : rows) {
        const auto kind = kind_of(row.frame.data(), row.frame.size());
        EXPECT_EQ(kind, row.kind) << kOtherKindNames[static_cast<std::size_t>(row.kind)] << " read as "
                                  << kOtherKindNames[static_cast<std::size_t>(kind)];
        EXPECT_EQ(find_tag(row.frame.data(), row.frame.size()), nullptr);
    }
}

// The second bytes of the message's header, where an MTU is.
Bytes with_mtu(Bytes error, std::uint16_t mtu) {
    const bool ipv6 = type_of(error.data()) == ethernet::kTypeIpv6;
    store_be16(&error[ethernet::kSize + (ipv6 ? ipv6::kSize : ipv4::kSize) + 6], mtu);
    return error;
}

Bytes with_code(Bytes error, std::uint8_t code) {
    const bool ipv6 = type_of(error.data()) == ethernet::kTypeIpv6;
    error[ethernet::kSize + (ipv6 ? ipv6::kSize : ipv4::kSize) + 1] = code;
    return error;
}

// "port unreachable" of 198.19.0.200 or 2001:2::c8, about a packet to this destination.
Bytes port_unreachable(bool ipv6, const std::string& destination) {
    const std::size_t ip = ethernet::kSize, size = ipv6 ? ipv6::kSize : ipv4::kSize;
    Bytes error = with_code(ipv6 ? ipv6_of(58, 1) : ipv4_of(1, 3), ipv6 ? 4 : 3);
    Bytes quoted(size);
    if (ipv6) {
        std::ranges::copy(*parse_ipv6("2001:2::c8"), &error[ip + ipv6::kSource]);
        std::ranges::copy(*parse_ipv6(destination), &quoted[ipv6::kDestination]);
    } else {
        std::ranges::copy(*parse_ipv4("198.19.0.200"), &error[ip + ipv4::kSource]);
        std::ranges::copy(*parse_ipv4(destination), &quoted[ipv4::kDestination]);
    }
    error.resize(ip + size + icmp::kSize);  // without padding
    error.insert(error.end(), quoted.begin(), quoted.end());
    return error;
}

TEST(Arrival, AnErrorFromItsPacketsDestinationIsOfTheStationThatHasIt) {
    for (const std::string address : {"198.19.0.200", "2001:2::c8"}) {
        const bool ipv6 = address.find(':') != std::string::npos;
        const Bytes own = port_unreachable(ipv6, address);
        const auto error = icmp_error_of(innermost_packet(own.data(), own.size()));
        ASSERT_TRUE(error && error->holder);
        EXPECT_EQ(to_string(*error->holder), address);
        for (std::size_t length = 0; length < own.size(); ++length) {
            const Bytes cut(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(length));
            const auto of_cut = icmp_error_of(innermost_packet(cut.data(), cut.size()));  // reads nothing outside
            EXPECT_FALSE(of_cut && of_cut->holder);
        }
        const Bytes of_router = port_unreachable(ipv6, ipv6 ? "2001:2::2" : "198.19.0.2");
        EXPECT_FALSE(icmp_error_of(innermost_packet(of_router.data(), of_router.size()))->holder);
    }
}

// In VXLAN over IPv4.
Bytes in_vxlan(const Bytes& frame) {
    Bytes outer = ipv4_of(kProtocolUdp, 0);
    outer.resize(ethernet::kSize + ipv4::kSize + udp::kSize + vxlan::kSize);
    std::uint8_t* const ip = &outer[ethernet::kSize];
    ip[0] = ipv4::kFirstByte;
    const std::size_t packet = outer.size() - ethernet::kSize + frame.size();
    store_be16(ip + ipv4::kLength, static_cast<std::uint16_t>(packet));
    store_be16(ip + ipv4::kSize + udp::kDestinationPort, udp::kVxlan);
    outer.insert(outer.end(), frame.begin(), frame.end());
    return outer;
}

// Directly in IPv6.
Bytes in_ipv6(const Bytes& frame) {
    const bool ipv6 = type_of(frame.data()) == ethernet::kTypeIpv6;
    Bytes outer = ipv6_of(ipv6 ? kProtocolIpv6 : kProtocolIpv4, 0);
    outer.resize(ethernet::kSize + ipv6::kSize);
    outer[ethernet::kSize] = 0x60;
    const std::size_t packet = frame.size() - ethernet::kSize;
    store_be16(&outer[ethernet::kSize + ipv6::kPayloadLength], static_cast<std::uint16_t>(packet));
    outer.insert(outer.end(), frame.begin() + ethernet::kSize, frame.end());
    return outer;
}

TEST(Arrival, IcmpErrorsSayWhy) {
    struct Row {
        std::optional<IcmpError> error;
        Bytes frame;
    };
    const std::vector<Row> rows{
        {IcmpError{.ipv6 = false, .type = 3, .code = 1, .mtu = 0}, with_code(with_mtu(ipv4_of(1, 3), 1280), 1)},
        {IcmpError{.ipv6 = false, .type = 3, .code = 4, .mtu = 1280}, with_code(with_mtu(ipv4_of(1, 3), 1280), 4)},
        {IcmpError{.ipv6 = false, .type = 11, .code = 0, .mtu = 0}, ipv4_of(1, 11)},
        {std::nullopt, ipv4_of(1, 8)},
        {std::nullopt, ipv4_of(17, 3)},
        {IcmpError{.ipv6 = true, .type = 2, .code = 0, .mtu = 1400}, with_mtu(ipv6_of(58, 2), 1400)},
        {IcmpError{.ipv6 = true, .type = 1, .code = 3, .mtu = 0}, with_code(ipv6_of(58, 1), 3)},
        {std::nullopt, ipv6_of(58, 128)},
        {std::nullopt, ipv6_of(58, 135)},
        {std::nullopt, frame_of(0x88CC, {})},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(icmp_error_of(innermost_packet(row.frame.data(), row.frame.size())), row.error);
        if (type_of(row.frame.data()) == 0x88CC) continue;
        for (const Bytes& tunnelled : {in_vxlan(row.frame), in_ipv6(row.frame)}) {
            EXPECT_EQ(icmp_error_of(innermost_packet(tunnelled.data(), tunnelled.size())), row.error);
            EXPECT_EQ(kind_in_tunnels(tunnelled.data(), tunnelled.size(),
                                      innermost_packet(tunnelled.data(), tunnelled.size())),
                      kind_of(row.frame.data(), row.frame.size()));
            for (std::size_t length = 0; length < tunnelled.size(); ++length) {
                const Bytes cut(tunnelled.begin(), tunnelled.begin() + static_cast<std::ptrdiff_t>(length));
                icmp_error_of(innermost_packet(cut.data(), cut.size()));
                kind_in_tunnels(cut.data(), cut.size(), innermost_packet(cut.data(), cut.size()));
            }
        }
        for (std::size_t length = 0; length < row.frame.size(); ++length) {
            const Bytes cut(row.frame.begin(), row.frame.begin() + static_cast<std::ptrdiff_t>(length));
            icmp_error_of(innermost_packet(cut.data(), cut.size()));  // reads nothing outside
        }
    }
}

}  // namespace
}  // namespace dutperf
