// SPDX-License-Identifier: Apache-2.0
// What a received IPv4 or IPv6 packet carries, directly over Ethernet without VLAN tags, and whether its checksums are
// right: the part of reading that UDP datagrams and TCP segments share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dns/message.hpp"
#include "frame/headers.hpp"
#include "frame/own_frame.hpp"

namespace dutperf::dns {

// `unfinished`: the sum of the pseudo-header alone, as a kernel leaves it to a NIC that is none (frame/dissect.hpp).
enum class Checksum : std::uint8_t { good, unfinished, bad };

// Whether a host would take it. `unfinished_too`: the port may leave checksums unfinished.
inline bool is_intact(Checksum checksum, bool unfinished_too) {
    return checksum == Checksum::good || (unfinished_too && checksum == Checksum::unfinished);
}

struct IpPayload {
    bool ipv6;
    bool has_right_lengths;  // and checksum, of the IP header
    Bytes addresses;         // both
    Bytes bytes;             // to the end of the packet

    [[nodiscard]] IpAddress address(bool destination) const {
        const std::uint8_t* at = addresses.data() + (destination ? addresses.size() / 2 : 0);
        return ipv6 ? ip_of(read_address<Ipv6>(at)) : ip_of(read_address<Ipv4>(at));
    }
    // Of a UDP or TCP header, which is whole.
    [[nodiscard]] Endpoints endpoints() const {
        return {.source = address(false),
                .destination = address(true),
                .source_port = load_be16(&bytes[udp::kSourcePort]),
                .destination_port = load_be16(&bytes[udp::kDestinationPort])};
    }
    // Of the whole payload, which has its checksum there.
    [[nodiscard]] Checksum checksum(std::uint8_t protocol, std::size_t at) const {
        const std::uint64_t pseudo =
            pseudo_header_sum(addresses.data(), addresses.size(), static_cast<std::uint16_t>(bytes.size()), protocol);
        if (checksum_fold(pseudo + checksum_add(bytes.data(), bytes.size())) == 0xFFFF) return Checksum::good;
        return load<std::uint16_t>(&bytes[at]) == checksum_fold(pseudo) ? Checksum::unfinished : Checksum::bad;
    }
};

namespace reading {

inline std::optional<IpPayload> payload_of(Bytes ip, bool ipv6, std::size_t header, std::size_t length,
                                           std::size_t addresses_at) {
    if (header > ip.size()) return std::nullopt;
    const bool fits = length >= header && length <= ip.size();
    return IpPayload{.ipv6 = ipv6,
                     .has_right_lengths = fits,
                     .addresses = ip.subspan(addresses_at, ipv6 ? 2 * sizeof(Ipv6) : 2 * sizeof(Ipv4)),
                     .bytes = ip.subspan(header, fits ? length - header : ip.size() - header)};
}

inline std::optional<IpPayload> over_ipv4(Bytes ip, std::uint8_t protocol) {
    if (ip.size() < ipv4::kSize || ip[0] >> 4U != 4 || ip[ipv4::kProtocol] != protocol) return std::nullopt;
    if ((load_be16(&ip[ipv4::kFragment]) & ipv4::kFragmentMask) != 0) return std::nullopt;
    const std::size_t header = 4 * std::size_t{ip[0] & 0x0FU};
    auto payload = payload_of(ip, false, header, load_be16(&ip[ipv4::kLength]), ipv4::kSource);
    if (payload && (header < ipv4::kSize || checksum_fold(checksum_add(ip.data(), header)) != 0xFFFF))
        payload->has_right_lengths = false;
    return payload;
}

inline std::optional<IpPayload> over_ipv6(Bytes ip, std::uint8_t protocol) {
    if (ip.size() < ipv6::kSize || ip[0] >> 4U != 6 || ip[ipv6::kNextHeader] != protocol) return std::nullopt;
    return payload_of(ip, true, ipv6::kSize, ipv6::kSize + load_be16(&ip[ipv6::kPayloadLength]), ipv6::kSource);
}

}  // namespace reading

// Of a frame with an IP packet of this protocol that is no fragment. Nothing for any other frame. Inline, as it is in
// the path of every query and answer.
inline std::optional<IpPayload> ip_payload(Bytes frame, std::uint8_t protocol) {
    if (frame.size() < ethernet::kSize) return std::nullopt;
    const std::uint16_t type = load_be16(&frame[ethernet::kType]);
    if (type != ethernet::kTypeIpv4 && type != ethernet::kTypeIpv6) return std::nullopt;
    const Bytes ip = frame.subspan(ethernet::kSize);
    return type == ethernet::kTypeIpv6 ? reading::over_ipv6(ip, protocol) : reading::over_ipv4(ip, protocol);
}

}  // namespace dutperf::dns
