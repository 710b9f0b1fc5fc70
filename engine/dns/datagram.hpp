// SPDX-License-Identifier: Apache-2.0
// Reads UDP datagrams (RFC 768) directly over IPv4 or IPv6 from received Ethernet frames without VLAN tags, as DNS uses
// them.
#pragma once

#include <cstdint>
#include <optional>

#include "dns/ip_payload.hpp"

namespace dutperf::dns {

struct Datagram {
    Endpoints between;
    Checksum checksum = Checksum::bad;
    Bytes payload;
};

// Nothing for any other frame, and for a fragment. With a wrong length or checksum of IP or UDP its checksum is `bad`.
std::optional<Datagram> read_datagram(Bytes frame);

}  // namespace dutperf::dns
