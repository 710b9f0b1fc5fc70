// SPDX-License-Identifier: Apache-2.0
// The Internet checksum (RFC 1071), in the machine's byte order: a ones' complement sum does not depend on the order of bytes in its words,
// so nothing is swapped. Sums are kept unfolded in 64 bits, where no frame can overflow them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frame/bytes.hpp"

namespace dutperf {

// Unfolded sum of `size` bytes that start at an even offset of their header.
inline std::uint64_t checksum_add(const std::uint8_t* at, std::size_t size) {
    std::uint64_t sum = 0;
    std::size_t i = 0;
    for (; i + 4 <= size; i += 4) sum += load<std::uint32_t>(at + i);
    if (i + 2 <= size) {
        sum += load<std::uint16_t>(at + i);
        i += 2;
    }
    if (i < size) sum += at[i];
    return sum;
}

// Adds a 64-bit word whose bytes stand in the frame as they stand in memory: 2^16 = 1 modulo 2^16 - 1, so its halves may simply be added.
inline std::uint64_t checksum_add64(std::uint64_t sum, std::uint64_t word) { return sum + (word & 0xFFFFFFFFU) + (word >> 32U); }

// What 16 bits in memory order add to a sum: at an odd offset their bytes lie in the other halves of two neighbouring words.
inline std::uint16_t checksum_word(std::uint16_t word, bool at_odd_offset) { return at_odd_offset ? swap16(word) : word; }

inline std::uint16_t checksum_fold(std::uint64_t sum) {
    sum = (sum & 0xFFFFFFFFU) + (sum >> 32U);
    sum = (sum & 0xFFFFU) + (sum >> 16U);
    sum = (sum & 0xFFFFU) + (sum >> 16U);
    sum = (sum & 0xFFFFU) + (sum >> 16U);
    return static_cast<std::uint16_t>(sum);
}

// The checksum field of an IPv4 header.
inline std::uint16_t checksum_finish(std::uint64_t sum) { return static_cast<std::uint16_t>(~checksum_fold(sum)); }

// The checksum field of a UDP header: 0 means "none" there, so a computed 0 is sent as all ones (RFC 768).
inline std::uint16_t checksum_finish_udp(std::uint64_t sum) {
    const std::uint16_t checksum = checksum_finish(sum);
    return checksum != 0 ? checksum : std::uint16_t{0xFFFF};
}

// The sum of what a checksum field covers after words that add up to `removed` were replaced by others that add up to `added` (RFC 1624, equation 3):
// to be finished as the field was.
inline std::uint64_t checksum_update(std::uint16_t field, std::uint64_t removed, std::uint64_t added) {
    return std::uint64_t{static_cast<std::uint16_t>(~field)} + static_cast<std::uint16_t>(~checksum_fold(removed)) + added;
}

}  // namespace dutperf
