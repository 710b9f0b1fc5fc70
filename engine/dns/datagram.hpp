// SPDX-License-Identifier: Apache-2.0
// UDP datagrams (RFC 768) directly over IPv4 or IPv6 in Ethernet frames without VLAN tags, as DNS uses them: reads them
// from received frames, and writes the headers of one that answers another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dns/message.hpp"
#include "frame/headers.hpp"

namespace dutperf::dns {

struct Datagram {
    // `unfinished`: the sum of the pseudo-header alone, as a kernel leaves it to a NIC that is none
    // (frame/dissect.hpp).
    enum class Checksum : std::uint8_t { good, unfinished, bad };

    IpAddress source, destination;
    std::uint16_t source_port = 0, destination_port = 0;
    Checksum checksum = Checksum::bad;
    Bytes payload;

    // Whether a host would take it. `unfinished_too`: the port may leave checksums unfinished.
    [[nodiscard]] bool is_intact(bool unfinished_too) const {
        return checksum == Checksum::good || (unfinished_too && checksum == Checksum::unfinished);
    }
};

// Nothing for any other frame, and for a fragment. With a wrong length or checksum of IP or UDP its checksum is `bad`.
std::optional<Datagram> read_datagram(Bytes frame);

// The size of the headers before the payload.
inline std::size_t headers_size(bool ipv6) { return ethernet::kSize + (ipv6 ? ipv6::kSize : ipv4::kSize) + udp::kSize; }

// Writes the headers of a datagram that goes back to where `received` came from, before a payload of `size` bytes that
// is in `frame` already. Returns the length of the frame.
std::size_t write_back_headers(Bytes received, const Datagram& datagram, std::size_t size, Room frame);

}  // namespace dutperf::dns
