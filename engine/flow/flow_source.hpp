// SPDX-License-Identifier: Apache-2.0
// Which ports and addresses the frames have (RFC 4814 4.4, 4.5; RFC 2544 12). Values are a function of seed and frame
// number alone: the same trial has the same frames whatever the burst or the number of cores. A burst's values are
// filled column by column, so that a field's mode is looked at once a burst and the loops can be vectorised.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "frame/lanes.hpp"
#include "frame/random_bits.hpp"

namespace dutperf {

inline constexpr std::size_t kMaxBurst = 512;
static_assert(kMaxBurst % kLanes == 0);

enum class FieldMode : std::uint8_t { fixed, increasing, decreasing, random };

struct FieldSpec {
    FieldMode mode = FieldMode::fixed;
    std::uint16_t min = 0;  // both ends included; a fixed field holds `min`
    std::uint16_t max = 0;

    [[nodiscard]] bool counts() const { return mode == FieldMode::increasing || mode == FieldMode::decreasing; }
    [[nodiscard]] std::uint32_t range() const { return std::uint32_t{max} - min + 1; }
};

// Uniform over 0 … range-1 from the lower 32 bits, which are random; with 16-bit ranges the bias is below 2^-16.
template <class Number>
inline Number scale_to_range(Number bits, std::uint32_t range) {
    return multiply32(bits, range) >> 32U;
}

using Column = std::array<std::uint16_t, kMaxBurst>;
using DoubleColumn = std::array<std::uint32_t, kMaxBurst>;  // both fields of each frame as they stand in it if one
                                                            // follows the other, the first one first

// Two fields of a frame that share one random word: the ports, or the addresses.
class FieldPair {
public:
    // Of frames `stride` apart.
    FieldPair(const FieldSpec& first, const FieldSpec& second, std::uint64_t seed, std::uint64_t stride = 1)
        : first_(first), second_(second), seed_(seed), stride_(stride) {}

    // Values of `count` frames from frame k on; what the columns hold behind them, up to a multiple of kLanes, is
    // undefined.
    void fill(std::uint64_t k, std::size_t count, Column& first, Column& second) const;
    void fill(std::uint64_t k, std::size_t count, DoubleColumn& both) const;

private:
    // Calls `on_lanes(i, first, second)` for lanes of frames after lanes of them.
    template <class OnLanes>
    void draw(std::uint64_t k, std::size_t count, const OnLanes& on_lanes) const;

    FieldSpec first_, second_;
    std::uint64_t seed_;
    Stride stride_;
};

}  // namespace dutperf
