// SPDX-License-Identifier: Apache-2.0
// Stateless translation between IPv4 and IPv6 (RFC 7915), in place, for whole UDP and TCP packets and ICMP echo. Not
// translated, but refused: fragments, IPv4 options, IPv6 extension headers, ICMP errors, other transports. ICMP errors
// are not made either; the counters say what was refused.
#pragma once

#include <cstdint>
#include <optional>

#include "refdut/address_map.hpp"
#include "refdut/loss.hpp"
#include "refdut/packet.hpp"

namespace dutperf {

// RFC 7915 4.5: what becomes of UDP over IPv4 without a checksum, which IPv6 demands.
enum class ZeroChecksum : std::uint8_t { compute, drop };

class Translator {
public:
    Translator(AddressMap map, ZeroChecksum zero_checksum) : map_(std::move(map)), zero_checksum_(zero_checksum) {}

    // Lengths are right and the hop limit is above 1. The hop limit is decremented. Where there is a loss the packet is
    // as it was, or half changed.
    std::optional<Loss> translate(Packet& packet) { return packet.is_ipv6() ? to_ipv4(packet) : to_ipv6(packet); }

    [[nodiscard]] std::uint64_t checksums_computed() const { return checksums_computed_; }

private:
    std::optional<Loss> to_ipv6(Packet& packet);
    std::optional<Loss> to_ipv4(Packet& packet);

    AddressMap map_;
    ZeroChecksum zero_checksum_;
    std::uint16_t identification_ = 0;
    std::uint64_t checksums_computed_ = 0;
};

}  // namespace dutperf
