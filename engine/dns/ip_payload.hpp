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

// Of a frame with an IP packet of this protocol that is no fragment. Nothing for any other frame.
std::optional<IpPayload> ip_payload(Bytes frame, std::uint8_t protocol);

}  // namespace dutperf::dns
