// SPDX-License-Identifier: Apache-2.0
// Reads and writes numbers in frames. All multi-byte header fields are big-endian (RFC 791, RFC 8200, RFC 768).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "frame/lanes.hpp"

namespace dutperf {

static_assert(std::endian::native == std::endian::little, "checksums and field writers assume a little-endian machine");

template <class T>
inline T load(const std::uint8_t* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

template <class T>
inline void store(std::uint8_t* at, T value) {
    std::memcpy(at, &value, sizeof value);
}

inline std::uint16_t swap16(std::uint16_t v) { return __builtin_bswap16(v); }
inline Lanes swap16(Lanes v) {
    return ((v << 8U) | (v >> 8U)) & 0xFFFFU;
}  // swaps the lower 16 bits; the upper bits must be 0

inline std::uint16_t load_be16(const std::uint8_t* at) { return swap16(load<std::uint16_t>(at)); }
inline std::uint32_t load_be32(const std::uint8_t* at) { return __builtin_bswap32(load<std::uint32_t>(at)); }
inline std::uint64_t load_be64(const std::uint8_t* at) { return __builtin_bswap64(load<std::uint64_t>(at)); }
inline void store_be16(std::uint8_t* at, std::uint16_t v) { store(at, swap16(v)); }
inline void store_be32(std::uint8_t* at, std::uint32_t v) { store(at, __builtin_bswap32(v)); }
inline void store_be64(std::uint8_t* at, std::uint64_t v) { store(at, __builtin_bswap64(v)); }

}  // namespace dutperf
