// SPDX-License-Identifier: Apache-2.0
// Reproducible random events: what happens to frame k of a direction depends only on seed, purpose, direction and k
// (SplitMix64, flow_source.hpp).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "flow/flow_source.hpp"
#include "refdut/properties.hpp"

namespace dutperf {

enum class Purpose : std::uint8_t { loss, duplicate, reorder, bit_error, bit, extra_delay, jitter };

class Chance {
public:
    Chance(std::uint64_t seed, Purpose purpose, std::size_t direction)
        : seed_(random_bits(seed, 2 * static_cast<std::uint64_t>(purpose) + direction)) {}

    [[nodiscard]] std::uint64_t bits(std::uint64_t k) const { return random_bits(seed_, k); }

    // Whether frame k belongs to the random share `ratio_ppb`.
    [[nodiscard]] bool hits(std::uint64_t k, std::uint32_t ratio_ppb) const {
        __extension__ using Wide = unsigned __int128;
        return static_cast<std::uint64_t>((static_cast<Wide>(bits(k)) * 1'000'000'000U) >> 64U) < ratio_ppb;
    }

    // Mean 0, standard deviation 1 (Box and Muller, 1958).
    [[nodiscard]] double normal(std::uint64_t k) const {
        return std::sqrt(-2 * std::log(unit(bits(2 * k)))) * std::cos(2 * std::numbers::pi * unit(bits(2 * k + 1)));
    }

    // Mean 1.
    [[nodiscard]] double exponential(std::uint64_t k) const { return -std::log(unit(bits(k))); }

private:
    // In (0, 1].
    static double unit(std::uint64_t bits) { return (static_cast<double>(bits >> 11U) + 1) * 0x1p-53; }

    std::uint64_t seed_;
};

// Applies a choice to the frames of one direction.
class Chooser {
public:
    enum class Cause : std::uint8_t { none, random, every };

    Chooser(const Choice& choice, const Chance& chance) : choice_(choice), chance_(chance) {}

    [[nodiscard]] Cause cause(std::uint64_t k) const {
        if (choice_.every != 0 && (k + 1) % choice_.every == 0) return Cause::every;
        return choice_.ratio_ppb != 0 && chance_.hits(k, choice_.ratio_ppb) ? Cause::random : Cause::none;
    }
    [[nodiscard]] bool operator()(std::uint64_t k) const { return cause(k) != Cause::none; }

private:
    Choice choice_;
    Chance chance_;
};

}  // namespace dutperf
