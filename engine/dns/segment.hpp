// SPDX-License-Identifier: Apache-2.0
// Reads TCP segments (RFC 9293 3.1) directly over IPv4 or IPv6 from received Ethernet frames without VLAN tags.
#pragma once

#include <cstdint>
#include <optional>

#include "dns/ip_payload.hpp"

namespace dutperf::dns {

struct Segment {
    Endpoints between;
    Checksum checksum = Checksum::bad;
    std::uint32_t sequence = 0, acknowledgement = 0;
    std::uint8_t flags = 0;
    std::uint16_t window = 0;
    std::optional<std::uint16_t> mss = {};
    Bytes payload;

    [[nodiscard]] bool is(std::uint8_t flag) const { return (flags & flag) != 0; }
    // How many sequence numbers it takes (SEG.LEN).
    [[nodiscard]] std::uint32_t length() const {
        return static_cast<std::uint32_t>(payload.size()) + (is(tcp::kSyn) ? 1U : 0U) + (is(tcp::kFin) ? 1U : 0U);
    }
};

// Nothing for any other frame, and for a fragment. With a wrong length or checksum of IP or TCP its checksum is `bad`.
std::optional<Segment> read_segment(Bytes frame);

}  // namespace dutperf::dns
