// SPDX-License-Identifier: Apache-2.0
// Eight numbers that are computed at once: what differs from frame to frame is computed for eight frames by one vector instruction where the processor
// has wide ones, by several where it has not. Functions that are templates over their number compute one value or eight by the same lines.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace dutperf {

inline constexpr std::size_t kLanes = 8;
using Lanes = std::uint64_t __attribute__((vector_size(kLanes * sizeof(std::uint64_t))));

// Eight words that lie one behind the other in memory, anywhere.
template <class Word>
struct Packed {
    typedef Word Words __attribute__((vector_size(kLanes * sizeof(Word)), aligned(1), may_alias));  // NOLINT(modernize-use-using): a template needs it so
};

template <class Word>
inline Lanes load_lanes(const Word* at) {
    return __builtin_convertvector(*reinterpret_cast<const typename Packed<Word>::Words*>(at), Lanes);
}

// The lower bits of each.
template <class Word>
inline void store_lanes(Word* at, Lanes lanes) {
    *reinterpret_cast<typename Packed<Word>::Words*>(at) = __builtin_convertvector(lanes, typename Packed<Word>::Words);
}

// The bits that any of them has.
inline std::uint64_t any_of(Lanes lanes) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < kLanes; ++i) bits |= lanes[i];
    return bits;
}

// Counts in steps of `distance`, eight numbers at once.
class Stride {
public:
    explicit Stride(std::uint64_t distance = 1) : distance_(distance) {
        for (std::size_t i = 0; i < kLanes; ++i) steps_[i] = i * distance;
    }
    [[nodiscard]] std::uint64_t distance() const { return distance_; }
    // The number that is `steps` steps from `first`, and the seven that follow it.
    [[nodiscard]] Lanes lanes(std::uint64_t first, std::uint64_t steps) const { return first + steps * distance_ + load_lanes(steps_.data()); }

private:
    std::uint64_t distance_;
    std::array<std::uint64_t, kLanes> steps_{};
};

// The bytes of each in the opposite order. Without AVX-512 the compiler moves bytes one by one if asked for all at once.
inline Lanes swap64(Lanes lanes) {
#ifdef __AVX512BW__
    using Bytes = std::uint8_t __attribute__((vector_size(sizeof(Lanes))));
    const auto bytes = reinterpret_cast<Bytes>(lanes);
    return reinterpret_cast<Lanes>(__builtin_shufflevector(bytes, bytes, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8, 23, 22, 21, 20, 19, 18, 17, 16,
                                                           31, 30, 29, 28, 27, 26, 25, 24, 39, 38, 37, 36, 35, 34, 33, 32, 47, 46, 45, 44, 43, 42, 41, 40, 55,
                                                           54, 53, 52, 51, 50, 49, 48, 63, 62, 61, 60, 59, 58, 57, 56));
#else
    using Bytes = std::uint8_t __attribute__((vector_size(sizeof(Lanes) / 2)));
    std::array<Bytes, 2> halves = std::bit_cast<std::array<Bytes, 2>>(lanes);
    for (Bytes& half : halves) {
        half = __builtin_shufflevector(half, half, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8, 23, 22, 21, 20, 19, 18, 17, 16, 31, 30, 29, 28, 27, 26,
                                       25, 24);
    }
    return std::bit_cast<Lanes>(halves);
#endif
}
inline std::uint64_t swap64(std::uint64_t number) { return __builtin_bswap64(number); }

}  // namespace dutperf
