// SPDX-License-Identifier: Apache-2.0
// The ports and addresses of the frames (RFC 4814 4.4, 4.5; RFC 2544 12). Values depend only on the seed and the frame
// number: a trial has the same frames at any burst size and number of cores. Values are filled column by column for
// each burst, so that a field's mode is checked once a burst and the loops can be vectorised.
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
    std::uint16_t min = 0;  // inclusive range; a fixed field holds `min`
    std::uint16_t max = 0;

    bool operator==(const FieldSpec&) const = default;

    [[nodiscard]] bool counts() const { return mode == FieldMode::increasing || mode == FieldMode::decreasing; }
    [[nodiscard]] std::uint32_t range() const { return std::uint32_t{max} - min + 1; }
};

// Maps the lower 32 random bits uniformly to 0 … range-1; for 16-bit ranges the bias is below 2^-16.
template <class Number>
inline Number scale_to_range(Number bits, std::uint32_t range) {
    return multiply32(bits, range) >> 32U;
}

using Column = std::array<std::uint16_t, kMaxBurst>;
// both fields of each frame as adjacent words in frame byte order
using DoubleColumn = std::array<std::uint32_t, kMaxBurst>;

// Two fields of a frame that share one random word: both ports, or both addresses.
class FieldPair {
public:
    // For frames `stride` apart.
    FieldPair(const FieldSpec& first, const FieldSpec& second, std::uint64_t seed, std::uint64_t stride = 1)
        : first_(first), second_(second), seed_(seed), stride_(stride) {}

    // Fills the values of `count` frames from frame k on. Later entries up to a multiple of kLanes are undefined.
    void fill(std::uint64_t k, std::size_t count, Column& first, Column& second) const;
    void fill(std::uint64_t k, std::size_t count, DoubleColumn& both) const;

private:
    // Calls `on_lanes(i, first, second)` for consecutive lanes of frames.
    template <class OnLanes>
    void draw(std::uint64_t k, std::size_t count, const OnLanes& on_lanes) const;

    FieldSpec first_, second_;
    std::uint64_t seed_;
    Stride stride_;
};

}  // namespace dutperf
