// SPDX-License-Identifier: Apache-2.0
#include "dns/datagram.hpp"

namespace dutperf::dns {

namespace {

Checksum checksum_of(const IpPayload& packet) {
    const bool is_whole = packet.has_right_lengths && load_be16(&packet.bytes[udp::kLength]) == packet.bytes.size();
    if (!is_whole) return Checksum::bad;
    // RFC 768: optional with IPv4
    if (load<std::uint16_t>(&packet.bytes[udp::kChecksum]) == 0) return packet.ipv6 ? Checksum::bad : Checksum::good;
    return packet.checksum(kProtocolUdp, udp::kChecksum);
}

}  // namespace

std::optional<Datagram> read_datagram(Bytes frame) {
    const auto packet = ip_payload(frame, kProtocolUdp);
    if (!packet || packet->bytes.size() < udp::kSize) return std::nullopt;
    return Datagram{
        .between = packet->endpoints(), .checksum = checksum_of(*packet), .payload = packet->bytes.subspan(udp::kSize)};
}

}  // namespace dutperf::dns
