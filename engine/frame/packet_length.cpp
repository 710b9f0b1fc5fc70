// SPDX-License-Identifier: Apache-2.0
#include "frame/packet_length.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "frame/arrival.hpp"
#include "frame/dissect.hpp"

namespace dutperf {

namespace {

constexpr std::size_t kFragmentHeader = 8;

std::uint16_t bounded(std::size_t bytes) {
    return static_cast<std::uint16_t>(std::min<std::size_t>(bytes, std::numeric_limits<std::uint16_t>::max()));
}

PacketLength of_ipv4(const std::uint8_t* ip, PacketLength otherwise) {
    const std::size_t header = 4 * std::size_t{ip[0] & 0x0FU}, whole = load_be16(ip + ipv4::kLength);
    if (header < ipv4::kSize || whole < header) return otherwise;
    return {.of = LengthOf::ipv4, .bytes = static_cast<std::uint16_t>(whole - header)};
}

PacketLength of_ipv6(const std::uint8_t* ip) {
    const std::uint16_t payload = load_be16(ip + ipv6::kPayloadLength);
    const bool fragment = ip[ipv6::kNextHeader] == ipv6::kFragment && payload >= kFragmentHeader;
    return {.of = LengthOf::ipv6, .bytes = static_cast<std::uint16_t>(payload - (fragment ? kFragmentHeader : 0))};
}

bool is_local_multicast(const std::uint8_t* ip, bool ipv6) {
    constexpr std::array<std::uint8_t, 3> kLocal4{224, 0, 0};
    if (!ipv6) return std::equal(kLocal4.begin(), kLocal4.end(), ip + ipv4::kDestination);
    return ip[ipv6::kDestination] == 0xFF && (ip[ipv6::kDestination + 1] & 0x0FU) == 2;
}

}  // namespace

PacketLength packet_length(const std::uint8_t* frame, std::size_t length) {
    const Network network = network_of(frame, length);
    const std::size_t tags = network.at > ethernet::kSize && network.at < length ? network.at - ethernet::kSize : 0;
    const PacketLength whole{.of = LengthOf::other, .bytes = bounded(length - tags)};
    const std::uint8_t* ip = frame + network.at;
    if (network.type == ethernet::kTypeIpv4 && length >= network.at + ipv4::kSize) return of_ipv4(ip, whole);
    if (network.type == ethernet::kTypeIpv6 && length >= network.at + ipv6::kSize) return of_ipv6(ip);
    return whole;
}

bool is_for_neighbours(const std::uint8_t* frame, std::size_t length) {
    constexpr std::array<std::uint8_t, 5> kBridges{0x01, 0x80, 0xC2, 0x00, 0x00};
    if (length < ethernet::kSize) return false;
    if (std::equal(kBridges.begin(), kBridges.end(), frame)) return true;
    switch (kind_of(frame, length)) {
        case OtherKind::arp_request:
        case OtherKind::arp_reply:
        case OtherKind::ndp_solicitation:
        case OtherKind::ndp_advertisement: return true;
        default: break;
    }
    const Network network = network_of(frame, length);
    if (network.type == ethernet::kTypeIpv4)
        return length >= network.at + ipv4::kSize && is_local_multicast(frame + network.at, false);
    return network.type == ethernet::kTypeIpv6 && length >= network.at + ipv6::kSize &&
           is_local_multicast(frame + network.at, true);
}

}  // namespace dutperf
