// SPDX-License-Identifier: Apache-2.0
// A given number of independent times, uniform over an interval, in order: the arrivals of a Poisson process, given
// their number. The interval is halved repeatedly. Of the n times of a part, Binomial(n, 1/2) are in its earlier half.
// A part with few times draws them one by one and sorts them. So any time can be computed without the earlier ones, no
// error adds up over a trial, and all of it uses integers: the package computes the same times
// (src/dutperf/model/pattern.py).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "frame/random_bits.hpp"

namespace dutperf {

inline constexpr std::uint32_t kFewTimes = 32;
using FewTimes = std::array<std::uint64_t, kFewTimes>;

class UniformTimes {
public:
    // The part `id` of the interval: part 1 is the whole, and the halves of part `id` are 2 id and 2 id + 1. Times are
    // in 2^-64 of the interval.
    struct Part {
        std::uint64_t id = 1, begin = 0;
        std::uint64_t first = 0, count = 0;  // the number of its first time among all, and the count of its times

        [[nodiscard]] bool has_few() const { return count <= kFewTimes; }
    };
    struct Halves {
        Part earlier, later;
    };

    UniformTimes(std::uint64_t seed, std::uint64_t count) : seed_(seed), count_(count) {}

    [[nodiscard]] Part whole() const { return {.count = count_}; }

    [[nodiscard]] Halves halves(const Part& part) const {
        const std::uint64_t earlier = earlier_of(part.count, random_bits(seed_, part.id));
        return {{2 * part.id, part.begin, part.first, earlier},
                {2 * part.id + 1, part.begin + (std::uint64_t{1} << (63 - level_of(part))), part.first + earlier,
                 part.count - earlier}};
    }

    // Draws the times of a part that has few, and returns their number.
    std::uint32_t draw(const Part& part, FewTimes& times) const {
        const auto count = static_cast<std::uint32_t>(part.count);
        const std::uint64_t seed = random_bits(seed_, part.id);
        for (std::uint32_t i = 0; i < count; ++i) times[i] = part.begin + (random_bits(seed, i) >> level_of(part));
        std::sort(times.begin(), times.begin() + count);
        return count;
    }

    // How many times are earlier than `time`.
    [[nodiscard]] std::uint64_t before(std::uint64_t time) const {
        Part part = whole();
        while (!part.has_few()) {
            const auto [earlier, later] = halves(part);
            part = time <= later.begin ? earlier : later;
        }
        FewTimes times{};
        const auto* const end = times.begin() + draw(part, times);
        return part.first + static_cast<std::uint64_t>(std::lower_bound(times.cbegin(), end, time) - times.cbegin());
    }

    // Time number k, counted from 0.
    [[nodiscard]] std::uint64_t at(std::uint64_t k) const {
        Part part = whole();
        while (!part.has_few()) {
            const auto [earlier, later] = halves(part);
            part = k < later.first ? earlier : later;
        }
        FewTimes times{};
        draw(part, times);
        return times[k - part.first];
    }

private:
    // The most coins that are tossed one by one, so that halving a part takes less than a microsecond.
    static constexpr std::uint64_t kMaxTosses = std::uint64_t{1} << 14U;

    // With any realistic probability, parts of level 63 have few times.
    static unsigned level_of(const Part& part) { return static_cast<unsigned>(std::bit_width(part.id)) - 1; }

    // How many of `count` times are in the earlier half. If there are many, only a 4^-j share of the coins is tossed,
    // and the deviation from the mean is multiplied by 2^j. Mean and variance are then exact, and the values are so
    // dense (a 64th of the standard deviation) that the result is indistinguishable from the normal distribution.
    static std::uint64_t earlier_of(std::uint64_t count, std::uint64_t seed) {
        unsigned j = 0;
        while (count >> (2 * j) > kMaxTosses) ++j;
        const std::uint64_t tosses = count >> (2 * j);
        std::uint64_t heads = 0;
        for (std::uint64_t i = 0; i < tosses / 64; ++i)
            heads += static_cast<std::uint64_t>(std::popcount(random_bits(seed, i)));
        if (tosses % 64 != 0)
            heads += static_cast<std::uint64_t>(std::popcount(random_bits(seed, tosses / 64) >> (64 - tosses % 64)));
        return (count + (2 * heads << j) - (tosses << j)) / 2;
    }

    std::uint64_t seed_, count_;
};

}  // namespace dutperf
