// SPDX-License-Identifier: Apache-2.0
// Reproducible random numbers: each is a function of a seed and an index, so no draw depends on earlier draws.
#pragma once

#include <cstdint>

#include "frame/lanes.hpp"

namespace dutperf {

// SplitMix64 of Steele, Lea and Flood (2014): `Number` is one number or lanes of them.
template <class Number>
inline Number splitmix64(Number z) {
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
}

inline constexpr std::uint64_t kGamma = 0x9E3779B97F4A7C15U;

// 64 random bits for frame `k` from the generator `seed`.
inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t k) { return splitmix64(seed + (k + 1) * kGamma); }

// The same for consecutive lanes of frames, `distance` apart.
class RandomLanes {
public:
    RandomLanes(std::uint64_t seed, Lanes first, std::uint64_t distance)
        : state_(seed + (first + 1) * kGamma), step_(kLanes * distance * kGamma) {}

    Lanes next() {
        const Lanes bits = splitmix64(state_);
        state_ += step_;
        return bits;
    }

private:
    Lanes state_;
    std::uint64_t step_;
};

}  // namespace dutperf
