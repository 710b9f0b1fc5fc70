// SPDX-License-Identifier: Apache-2.0
// Offsets of header fields, in bytes from the start of the header: Ethernet II, IPv4 (RFC 791), IPv6 (RFC 8200), UDP
// (RFC 768).
#pragma once

#include <cstddef>
#include <cstdint>

#include "frame/bytes.hpp"
#include "frame/checksum.hpp"

namespace dutperf {

namespace ethernet {
inline constexpr std::size_t kSize = 14, kDestination = 0, kSource = 6, kType = 12;
inline constexpr std::uint16_t kTypeIpv4 = 0x0800, kTypeIpv6 = 0x86DD, kTypeArp = 0x0806;
}  // namespace ethernet

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
}  // namespace ipv6

namespace udp {
inline constexpr std::size_t kSize = 8, kSourcePort = 0, kDestinationPort = 2, kLength = 4, kChecksum = 6;
}

namespace tcp {
inline constexpr std::size_t kSize = 20, kChecksum = 16;
}

namespace icmp {
inline constexpr std::size_t kSize = 8, kType = 0, kChecksum = 2;
inline constexpr std::uint8_t kEchoReply = 0, kEchoRequest = 8, kEchoRequest6 = 128,
                              kEchoReply6 = 129;  // RFC 792, RFC 4443
}  // namespace icmp

inline constexpr std::uint8_t kProtocolIcmp = 1, kProtocolTcp = 6, kProtocolUdp = 17, kProtocolIcmpv6 = 58;

// Sum of the pseudo-header that transport checksums cover (RFC 768, RFC 8200 8.1): both addresses, length and protocol.
inline std::uint64_t pseudo_header_sum(const std::uint8_t* addresses, std::size_t addresses_size, std::uint16_t length,
                                       std::uint8_t protocol) {
    return checksum_add(addresses, addresses_size) + swap16(length) + swap16(protocol);
}

}  // namespace dutperf
