// SPDX-License-Identifier: Apache-2.0
// Stateless translation between IPv4 and IPv6 (RFC 7915; with rules as a CE or BR of MAP-T, RFC 7599), in place, for
// unfragmented UDP and TCP packets and ICMP echo. It rejects fragments, IPv4 options, IPv6 extension headers, ICMP
// errors and other transports. It sends no ICMP errors; counters show what was rejected.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "refdut/address_map.hpp"
#include "refdut/ip_header.hpp"
#include "refdut/loss.hpp"
#include "refdut/packet.hpp"

namespace dutperf {

// RFC 7915 4.5: the handling of UDP over IPv4 without a checksum, which IPv6 requires.
enum class ZeroChecksum : std::uint8_t { compute, drop };

class Translator {
public:
    Translator(AddressMap map, ZeroChecksum zero_checksum) : map_(std::move(map)), zero_checksum_(zero_checksum) {}

    // Requires valid lengths and a hop limit above 1. Decrements the hop limit. After a loss the packet may be partly
    // changed.
    std::optional<Loss> translate(Packet& packet);
    // The same with addresses that the caller has chosen.
    std::optional<Loss> to_ipv6(Packet& packet, const AddressPair<Ipv6>& addresses);
    std::optional<Loss> to_ipv4(Packet& packet, const AddressPair<Ipv4>& addresses);

    [[nodiscard]] const AddressMap& map() const { return map_; }
    [[nodiscard]] std::uint64_t checksums_computed() const { return checksums_computed_; }

private:
    std::optional<Loss> to_ipv6(Packet& packet, const Ports& ports);
    std::optional<Loss> to_ipv4(Packet& packet, const Ports& ports);

    AddressMap map_;
    ZeroChecksum zero_checksum_;
    std::uint16_t identification_ = 0;
    std::uint64_t checksums_computed_ = 0;
};

}  // namespace dutperf
