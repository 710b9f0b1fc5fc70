// SPDX-License-Identifier: Apache-2.0
// The Internet checksum (RFC 1071), computed in the machine's byte order: a ones' complement sum does not depend on the
// byte order, so nothing is swapped. Sums stay unfolded in 64 bits, which no frame can overflow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frame/bytes.hpp"

namespace dutperf {

// Adds a 64-bit word in memory order. Its halves can be added as they are, because 2^16 = 1 modulo 2^16 - 1. `Sum`: one
// number, or lanes of them.
template <class Sum>
inline Sum checksum_add64(Sum sum, Sum word) {
    return sum + (word & 0xFFFFFFFFU) + (word >> 32U);
}

// Unfolded sum of `size` bytes that start at an even offset in their header.
inline std::uint64_t checksum_add(const std::uint8_t* at, std::size_t size) {
    std::uint64_t sum = 0;
    std::size_t i = 0;
    if (size >= sizeof(Lanes)) {
        Lanes low{}, high{};  // the halves of the words apart: neither addition waits for the other
        const auto add = [&](Lanes words) {
            low += words & 0xFFFFFFFFU;
            high += words >> 32U;
        };
        if constexpr (kLoadsParts) {
            // from a cache line on: a load that crosses its border takes twice as long
            const std::size_t before = -reinterpret_cast<std::uintptr_t>(at) % sizeof(Lanes);
            if (size >= 2 * sizeof(Lanes) && before % 2 == 0) {
                add(load_part(at, before));
                i = before;
            }
        }
        for (; i + sizeof(Lanes) <= size; i += sizeof(Lanes))
            add(load_lanes(reinterpret_cast<const std::uint64_t*>(at + i)));
        if constexpr (kLoadsParts) add(load_part(at + i, size - i));
        sum = sum_of(low + high);
        if constexpr (kLoadsParts) return sum;
    }
    std::uint64_t carries = 0;
    for (; i + 8 <= size; i += 8) carries += __builtin_add_overflow(sum, load<std::uint64_t>(at + i), &sum) ? 1U : 0U;
    sum = checksum_add64(carries, sum);
    if ((size & 4U) != 0) {
        sum += load<std::uint32_t>(at + i);
        i += 4;
    }
    if ((size & 2U) != 0) {
        sum += load<std::uint16_t>(at + i);
        i += 2;
    }
    return (size & 1U) != 0 ? sum + at[i] : sum;
}

// The contribution of a 16-bit field in memory order to a sum. At an odd offset its two bytes belong to two
// neighbouring words, so they are swapped.
template <class Word>
inline Word checksum_word(Word word, bool at_odd_offset) {
    return at_odd_offset ? swap16(word) : word;
}

// Folds a sum to 16 bits: adds the halves with end-around carry, twice. Each result is in the upper half.
inline std::uint64_t checksum_folded(std::uint64_t sum) {
    sum = (sum + ((sum << 32U) | (sum >> 32U))) >> 32U;
    return ((sum + ((sum << 16U) | (sum >> 16U))) >> 16U) & 0xFFFFU;
}
inline Lanes checksum_folded(Lanes sum) {
    sum += swap_halves64(sum);
    return add32(sum, swap_halves32(sum)) >> 48U;
}

// The checksum field of an IPv4 header.
template <class Sum>
inline Sum checksum_finished(Sum sum) {
    return checksum_folded(sum) ^ 0xFFFFU;
}

// The checksum field of a UDP header: 0 means "none" there, so a computed 0 is sent as all ones (RFC 768).
template <class Sum>
inline Sum checksum_finished_udp(Sum sum) {
    const Sum checksum = checksum_finished(sum);
    return checksum | ((checksum - 1) >> 16U);  // subtracting 1 borrows only from a 0
}

inline std::uint16_t checksum_fold(std::uint64_t sum) { return static_cast<std::uint16_t>(checksum_folded(sum)); }
inline std::uint16_t checksum_finish(std::uint64_t sum) { return static_cast<std::uint16_t>(checksum_finished(sum)); }
inline std::uint16_t checksum_finish_udp(std::uint64_t sum) {
    return static_cast<std::uint16_t>(checksum_finished_udp(sum));
}

// The new sum of a checksum field when words that sum to `removed` are replaced by words that sum to `added` (RFC 1624,
// equation 3). The caller finishes it like the old field.
inline std::uint64_t checksum_update(std::uint16_t field, std::uint64_t removed, std::uint64_t added) {
    return std::uint64_t{static_cast<std::uint16_t>(~field)} + static_cast<std::uint16_t>(~checksum_fold(removed)) +
           added;
}

}  // namespace dutperf
