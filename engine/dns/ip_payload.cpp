// SPDX-License-Identifier: Apache-2.0
#include "dns/ip_payload.hpp"

namespace dutperf::dns {

namespace {

std::optional<IpPayload> payload_of(Bytes ip, bool ipv6, std::size_t header, std::size_t length,
                                    std::size_t addresses_at) {
    if (header > ip.size()) return std::nullopt;
    const bool fits = length >= header && length <= ip.size();
    return IpPayload{.ipv6 = ipv6,
                     .has_right_lengths = fits,
                     .addresses = ip.subspan(addresses_at, ipv6 ? 2 * sizeof(Ipv6) : 2 * sizeof(Ipv4)),
                     .bytes = ip.subspan(header, fits ? length - header : ip.size() - header)};
}

std::optional<IpPayload> over_ipv4(Bytes ip, std::uint8_t protocol) {
    if (ip.size() < ipv4::kSize || ip[0] >> 4U != 4 || ip[ipv4::kProtocol] != protocol) return std::nullopt;
    if ((load_be16(&ip[ipv4::kFragment]) & ipv4::kFragmentMask) != 0) return std::nullopt;
    const std::size_t header = 4 * std::size_t{ip[0] & 0x0FU};
    auto payload = payload_of(ip, false, header, load_be16(&ip[ipv4::kLength]), ipv4::kSource);
    if (payload && (header < ipv4::kSize || checksum_fold(checksum_add(ip.data(), header)) != 0xFFFF))
        payload->has_right_lengths = false;
    return payload;
}

std::optional<IpPayload> over_ipv6(Bytes ip, std::uint8_t protocol) {
    if (ip.size() < ipv6::kSize || ip[0] >> 4U != 6 || ip[ipv6::kNextHeader] != protocol) return std::nullopt;
    return payload_of(ip, true, ipv6::kSize, ipv6::kSize + load_be16(&ip[ipv6::kPayloadLength]), ipv6::kSource);
}

}  // namespace

std::optional<IpPayload> ip_payload(Bytes frame, std::uint8_t protocol) {
    if (frame.size() < ethernet::kSize) return std::nullopt;
    const std::uint16_t type = load_be16(&frame[ethernet::kType]);
    if (type != ethernet::kTypeIpv4 && type != ethernet::kTypeIpv6) return std::nullopt;
    const Bytes ip = frame.subspan(ethernet::kSize);
    return type == ethernet::kTypeIpv6 ? over_ipv6(ip, protocol) : over_ipv4(ip, protocol);
}

}  // namespace dutperf::dns
