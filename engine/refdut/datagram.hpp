// SPDX-License-Identifier: Apache-2.0
// UDP datagrams to and from the reference DUT's own addresses, in untagged frames without IPv4 options and IPv6
// extension headers.
#pragma once

#include <optional>
#include <span>

#include "frame/address.hpp"
#include "refdut/packet.hpp"

namespace dutperf {

struct Endpoints {
    IpAddress source{}, destination{};  // of the same IP version
    std::uint16_t source_port = 0, destination_port = 0;
};

struct Datagram {
    Endpoints between;
    std::span<const std::uint8_t> payload;
};

// The datagram in a packet; nothing if there is none. Checksums are not verified.
std::optional<Datagram> read_datagram(const Packet& packet);

// Whether the UDP checksum is right. Without one only over IPv4 (RFC 768, RFC 8200 8.1). Requires a datagram.
bool has_right_checksum(const Packet& packet);

// Writes a frame but its payload, which is already at payload_at(): MAC addresses, IP header with hop limit 64, UDP
// header and checksums. Returns its length.
std::size_t write_datagram(std::uint8_t* frame, const Mac& source, const Mac& destination, const Endpoints& between,
                           std::size_t payload_size);

inline constexpr std::size_t payload_at(bool ipv6) {
    return (ipv6 ? kIpv6Layout : kIpv4Layout).transport_at() + udp::kSize;
}

}  // namespace dutperf
