// SPDX-License-Identifier: Apache-2.0
// Offsets of header fields, in bytes from the start of the header: Ethernet II, IPv4 (RFC 791), IPv6 (RFC 8200), UDP
// (RFC 768), TCP (RFC 9293).
#pragma once

#include <cstddef>
#include <cstdint>

#include "frame/bytes.hpp"
#include "frame/checksum.hpp"

namespace dutperf {

namespace ethernet {
inline constexpr std::size_t kSize = 14, kDestination = 0, kSource = 6, kType = 12;
inline constexpr std::uint16_t kTypeIpv4 = 0x0800, kTypeIpv6 = 0x86DD, kTypeArp = 0x0806, kTypeVlan = 0x8100,
                               kTypeServiceVlan = 0x88A8, kTypeOldVlan = 0x9100, kTypeMpls = 0x8847,
                               kTypeMplsMulticast = 0x8848, kTypeBridged = 0x6558;
inline constexpr std::size_t kVlanTagSize = 4;  // IEEE 802.1Q 9.3
}  // namespace ethernet

namespace mpls {
inline constexpr std::size_t kSize = 4;
inline constexpr std::uint8_t kBottom = 1;  // of the third byte
}  // namespace mpls

namespace ipv4 {
inline constexpr std::uint8_t kFirstByte = 0x45;  // version, and a header without options
inline constexpr std::size_t kSize = 20, kTos = 1, kLength = 2, kIdentification = 4, kFragment = 6, kTtl = 8,
                             kProtocol = 9, kChecksum = 10, kSource = 12, kDestination = 16;
inline constexpr std::uint16_t kDontFragment = 0x4000, kFragmentMask = 0x3FFF;  // mask: "more fragments" and the offset
}  // namespace ipv4

namespace ipv6 {
inline constexpr std::size_t kSize = 40, kPayloadLength = 4, kNextHeader = 6, kHopLimit = 7, kSource = 8,
                             kDestination = 24;
inline constexpr std::uint8_t kFirstByte = 0x60;  // version, and the upper half of the traffic class
// Extension headers. All but the fragment and the authentication header have their size in units of eight bytes,
// without the first unit.
inline constexpr std::uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kDestinationOptions = 60;
inline constexpr std::size_t kExtensionUnit = 8, kRoutingType = 2, kSegmentsLeft = 3, kSegments = 8;
inline constexpr std::uint8_t kSegmentRouting = 4;      // RFC 8754
inline constexpr std::uint16_t kFragmentMask = 0xFFF9;  // the offset and "more fragments"
}  // namespace ipv6

namespace udp {
inline constexpr std::size_t kSize = 8, kSourcePort = 0, kDestinationPort = 2, kLength = 4, kChecksum = 6;
inline constexpr std::uint16_t kVxlan = 4789, kGtpU = 2152, kMpls = 6635, kGre = 4754;  // ports of tunnels
}  // namespace udp

namespace tcp {
inline constexpr std::size_t kSize = 20, kSourcePort = 0, kDestinationPort = 2, kSequence = 4, kAcknowledgement = 8,
                             kDataOffset = 12, kFlags = 13, kWindow = 14, kChecksum = 16;
inline constexpr std::uint8_t kFin = 1, kSyn = 2, kRst = 4, kPsh = 8, kAck = 16;
inline constexpr std::uint8_t kOptionEnd = 0, kOptionNothing = 1, kOptionMss = 2;
inline constexpr std::size_t kMssSize = 4;
}  // namespace tcp

namespace icmp {
inline constexpr std::size_t kSize = 8, kType = 0, kChecksum = 2;
inline constexpr std::uint8_t kEchoReply = 0, kEchoRequest = 8, kEchoRequest6 = 128,
                              kEchoReply6 = 129;  // RFC 792, RFC 4443
}  // namespace icmp

namespace gre {
inline constexpr std::size_t kSize = 4, kType = 2, kOptional = 4;  // bytes of each optional part
inline constexpr std::uint16_t kChecksumPresent = 0x8000, kKeyPresent = 0x2000, kSequencePresent = 0x1000;
}  // namespace gre

namespace vxlan {
inline constexpr std::size_t kSize = 8;
}

// Authentication header (RFC 4302): its size is in units of four bytes, without the first two.
namespace ah {
inline constexpr std::size_t kNextHeader = 0, kLength = 1, kSmallest = 8, kUnit = 4, kUncounted = 2;
}  // namespace ah

namespace esp {
inline constexpr std::size_t kSize = 8;
}  // namespace esp

// Mobility header (RFC 6275): its size is in units of eight bytes, without the first one. Nothing follows it.
namespace mobility {
inline constexpr std::size_t kSmallest = 8, kLength = 1, kUnit = 8;
}  // namespace mobility

namespace gtpu {
inline constexpr std::size_t kSize = 8, kMessage = 1, kLength = 2, kOptional = 4;
inline constexpr std::uint8_t kPacket = 255, kExtension = 4, kOptionalPresent = 7;
}  // namespace gtpu

inline constexpr std::uint8_t kProtocolIcmp = 1, kProtocolIpv4 = 4, kProtocolTcp = 6, kProtocolUdp = 17,
                              kProtocolIpv6 = 41, kProtocolGre = 47, kProtocolEsp = 50, kProtocolAh = 51,
                              kProtocolIcmpv6 = 58, kProtocolMobility = 135, kProtocolMpls = 137,
                              kProtocolEthernet = 143;

// Sum of the pseudo-header that transport checksums cover (RFC 768, RFC 8200 8.1): both addresses, length and protocol.
inline std::uint64_t pseudo_header_sum(const std::uint8_t* addresses, std::size_t addresses_size, std::uint16_t length,
                                       std::uint8_t protocol) {
    return checksum_add(addresses, addresses_size) + swap16(length) + swap16(protocol);
}

}  // namespace dutperf
