// SPDX-License-Identifier: Apache-2.0
// SIMD: a `Lanes` value holds as many 64-bit numbers as one vector register, one for each frame. Each instruction
// computes the varying fields of that many frames. Functions that are templates over the number type compute one value
// or lanes of them with the same code.
//
// This is the only file that depends on the instruction set. The compiler would keep a type wider than a register in
// memory, and every step would wait for the stores of the step before.
#pragma once

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dutperf {

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define DUTPERF_LANES_OF_AVX512
inline constexpr std::size_t kLanes = 8;
#elif defined(__AVX2__)
#define DUTPERF_LANES_OF_AVX2
inline constexpr std::size_t kLanes = 4;
#else
inline constexpr std::size_t kLanes = 2;
#endif

// For arrays that lanes are loaded from and stored to: an access that crosses a cache line takes twice as long.
inline constexpr std::size_t kLanesAlignment = 64;

using Lanes = std::uint64_t __attribute__((vector_size(kLanes * sizeof(std::uint64_t))));

// Consecutive words in memory, at any alignment.
template <class Word>
struct Packed {
    // NOLINTNEXTLINE(modernize-use-using): a template needs it so
    typedef Word Words __attribute__((vector_size(kLanes * sizeof(Word)), aligned(1), may_alias));
};

template <class Word>
inline Lanes load_lanes(const Word* at) {
#ifdef DUTPERF_LANES_OF_AVX512
    // GCC 12 extends each half for itself; with zeros in place of its undefined source, of which it warns
    if constexpr (sizeof(Word) == 4)
        return reinterpret_cast<Lanes>(
            _mm512_maskz_cvtepu32_epi64(0xFF, _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(at))));
    if constexpr (sizeof(Word) == 2)
        return reinterpret_cast<Lanes>(
            _mm512_maskz_cvtepu16_epi64(0xFF, _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(at))));
#endif
    return __builtin_convertvector(*reinterpret_cast<const typename Packed<Word>::Words*>(at), Lanes);
}

// Whether fewer bytes than lanes have can be loaded at once, the others as 0.
#ifdef DUTPERF_LANES_OF_AVX512
inline constexpr bool kLoadsParts = true;
inline Lanes load_part(const std::uint8_t* at, std::size_t bytes) {
    return reinterpret_cast<Lanes>(_mm512_maskz_loadu_epi8((std::uint64_t{1} << bytes) - 1, at));
}
#else
inline constexpr bool kLoadsParts = false;
inline Lanes load_part(const std::uint8_t* /*at*/, std::size_t /*bytes*/) { return Lanes{}; }
#endif

// Stores the lower bits of each lane.
template <class Word>
inline void store_lanes(Word* at, Lanes lanes) {
#ifdef DUTPERF_LANES_OF_AVX2
    if constexpr (sizeof(Word) == 8) {
        std::memcpy(at, &lanes, sizeof lanes);
    } else {
        const auto all = reinterpret_cast<__m256i>(lanes);
        const __m128 low = _mm_castsi128_ps(_mm256_castsi256_si128(all)),
                     high = _mm_castsi128_ps(_mm256_extracti128_si256(all, 1));
        const __m128i words = _mm_castps_si128(_mm_shuffle_ps(low, high, 0x88));  // every second 32-bit word
        if constexpr (sizeof(Word) == 4) {
            std::memcpy(at, &words, sizeof words);
        } else {
            static_assert(sizeof(Word) == 2);
            const __m128i packed = _mm_shuffle_epi8(words, _mm_set_epi64x(-1, 0x0D0C'0908'0504'0100));
            std::memcpy(at, &packed, kLanes * sizeof(Word));
        }
    }
#else
    *reinterpret_cast<typename Packed<Word>::Words*>(at) = __builtin_convertvector(lanes, typename Packed<Word>::Words);
#endif
}

// The words `offset` words behind each pointer.
inline Lanes gather_lanes(const std::uint64_t* const* at, std::size_t offset) {
#if defined(DUTPERF_LANES_OF_AVX512)
    const auto behind = static_cast<long long>(offset) * static_cast<long long>(sizeof(std::uint64_t));
    const __m512i from = _mm512_loadu_si512(at) + _mm512_set1_epi64(behind);
    return reinterpret_cast<Lanes>(_mm512_mask_i64gather_epi64(_mm512_setzero_si512(), 0xFF, from, nullptr, 1));
#else
    Lanes lanes{};
    for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = at[i][offset];
    return lanes;
#endif
}

// Multiplies the lower 32 bits of each lane by a 32-bit number. A 64-bit multiplication takes many instructions without
// AVX-512 and is slow with it.
inline Lanes multiply32(Lanes lanes, std::uint32_t by) {
#if defined(DUTPERF_LANES_OF_AVX512)
    // with zeros, which nothing takes, in place of GCC's undefined source, of which it warns
    return reinterpret_cast<Lanes>(
        _mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(lanes), _mm512_set1_epi64(by)));
#elif defined(DUTPERF_LANES_OF_AVX2)
    return reinterpret_cast<Lanes>(_mm256_mul_epu32(reinterpret_cast<__m256i>(lanes), _mm256_set1_epi64x(by)));
#else
    return (lanes & 0xFFFFFFFFU) * by;
#endif
}
inline std::uint64_t multiply32(std::uint64_t number, std::uint32_t by) { return (number & 0xFFFFFFFFU) * by; }

using LanesOf32 = std::uint32_t __attribute__((vector_size(sizeof(Lanes))));
using LanesOfDouble = double __attribute__((vector_size(sizeof(Lanes))));
using LanesOf8 = std::uint8_t __attribute__((vector_size(sizeof(Lanes))));

// Shuffles bytes within each pair of lanes. `order` describes the first pair. This compiles to one instruction.
template <std::size_t... order>
inline Lanes shuffle_bytes(Lanes all) {
    static_assert(sizeof...(order) == 16);
    const auto bytes = reinterpret_cast<LanesOf8>(all);
    if constexpr (kLanes == 8) {
        return reinterpret_cast<Lanes>(
            __builtin_shufflevector(bytes, bytes, order..., (16 + order)..., (32 + order)..., (48 + order)...));
    } else if constexpr (kLanes == 4) {
        return reinterpret_cast<Lanes>(__builtin_shufflevector(bytes, bytes, order..., (16 + order)...));
    } else {
        return reinterpret_cast<Lanes>(__builtin_shufflevector(bytes, bytes, order...));
    }
}

// Reverses the bytes of each lane.
inline Lanes swap64(Lanes all) { return shuffle_bytes<7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8>(all); }
inline std::uint64_t swap64(std::uint64_t number) { return __builtin_bswap64(number); }

// Swaps the two bytes of every 16-bit word.
inline Lanes swap_bytes_of_words(Lanes all) {
    return shuffle_bytes<1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14>(all);
}

// Swaps the halves of each 64-bit lane, or of each 32-bit half.
inline Lanes swap_halves64(Lanes all) {
    return shuffle_bytes<4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11>(all);
}
inline Lanes swap_halves32(Lanes all) {
    return shuffle_bytes<2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13>(all);
}

// The smaller of each two 32-bit halves.
inline Lanes min32(Lanes one, Lanes other) {
    const auto a = reinterpret_cast<LanesOf32>(one), b = reinterpret_cast<LanesOf32>(other);
    return reinterpret_cast<Lanes>(a < b ? a : b);
}

// Adds the 32-bit halves of each lane independently.
inline Lanes add32(Lanes one, Lanes other) {
    return reinterpret_cast<Lanes>(reinterpret_cast<LanesOf32>(one) + reinterpret_cast<LanesOf32>(other));
}

inline std::uint64_t sum_of(Lanes all) {
#ifdef DUTPERF_LANES_OF_AVX512
    all += __builtin_shufflevector(all, all, 4, 5, 6, 7, 4, 5, 6, 7);
    constexpr std::size_t kLeft = 4;
#else
    constexpr std::size_t kLeft = kLanes;
#endif
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kLeft; ++i) sum += all[i];
    return sum;
}

// The bitwise OR of all lanes.
inline std::uint64_t any_of(Lanes all) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < kLanes; ++i) bits |= all[i];
    return bits;
}

// Counts in steps of `distance`, one number for each lane.
class Stride {
public:
    explicit Stride(std::uint64_t distance = 1) : distance_(distance) {
        for (std::size_t i = 0; i < kLanes; ++i) steps_[i] = i * distance;
    }
    [[nodiscard]] std::uint64_t distance() const { return distance_; }
    // The number `steps` steps after `first`, and the numbers that follow.
    [[nodiscard]] Lanes lanes(std::uint64_t first, std::uint64_t steps) const {
        return first + steps * distance_ + load_lanes(steps_.data());
    }

private:
    std::uint64_t distance_;
    std::array<std::uint64_t, kLanes> steps_{};
};

}  // namespace dutperf
