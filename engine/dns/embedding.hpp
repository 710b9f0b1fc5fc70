// SPDX-License-Identifier: Apache-2.0
// IPv4 addresses embedded in IPv6 addresses (RFC 6052 section 2.2), as a DNS64 server makes them (RFC 6147 5.1.7).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "frame/address.hpp"

namespace dutperf::dns {

struct Embedding {
    Ipv6 prefix{};             // bits behind its length are zero
    std::uint8_t length = 96;  // one of kEmbeddingLengths

    bool operator==(const Embedding&) const = default;
};

inline constexpr std::array<std::uint8_t, 6> kEmbeddingLengths{32, 40, 48, 56, 64, 96};

inline constexpr std::size_t kReservedOctet = 8;  // bits 64 to 71: zero, and no part of the IPv4 address

// Offset of byte `i` of the IPv4 address.
inline constexpr std::size_t embedded_at(std::uint8_t length, std::size_t i) {
    const std::size_t at = length / 8U + i;
    return length <= 64 && at >= kReservedOctet ? at + 1 : at;
}

inline Ipv6 embed(const Embedding& in, const Ipv4& address) {
    Ipv6 made = in.prefix;
    for (std::size_t i = 0; i < address.size(); ++i) made[embedded_at(in.length, i)] = address[i];
    return made;
}

// What an address that was embedded with a prefix of this length embeds.
inline Ipv4 embedded(std::uint8_t length, const Ipv6& in) {
    Ipv4 address{};
    for (std::size_t i = 0; i < address.size(); ++i) address[i] = in[embedded_at(length, i)];
    return address;
}

}  // namespace dutperf::dns
