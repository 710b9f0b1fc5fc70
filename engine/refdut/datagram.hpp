// SPDX-License-Identifier: Apache-2.0
// Reads UDP datagrams to the reference DUT's own addresses in untagged frames without IPv4 options and IPv6
// extension headers.
#pragma once

#include <optional>
#include <span>

#include "frame/own_frame.hpp"
#include "refdut/packet.hpp"

namespace dutperf {

struct Datagram {
    Endpoints between;
    std::span<const std::uint8_t> payload;
};

// The datagram in a packet; nothing if there is none. Checksums are not verified.
std::optional<Datagram> read_datagram(const Packet& packet);

// Whether the UDP checksum is right. Without one only over IPv4 (RFC 768, RFC 8200 8.1). Requires a datagram.
bool has_right_checksum(const Packet& packet);

}  // namespace dutperf
