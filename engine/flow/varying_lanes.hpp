// SPDX-License-Identifier: Apache-2.0
// The values of a field whose source is a number, for lanes of numbers at once: those of VaryingBits::value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "flow/divisor.hpp"
#include "flow/varying_bits.hpp"

namespace dutperf {

class VaryingLanes {
public:
    // Of numbers below 2^40. Nothing: the field has values in turn, so many that more than their lower 64 bits vary, or
    // a count for which there is no division of lanes.
    static std::optional<VaryingLanes> of(const VaryingBits& field);

    [[nodiscard]] bool is_random() const { return field_.mode == FieldMode::random; }
    // The bits above the lower 64: the same in all values.
    [[nodiscard]] std::uint64_t high() const { return static_cast<std::uint64_t>(field_.first >> 64U); }
    // The lower 64 bits of `count` values, of which those above the field's bits are undefined. `seeds`: of each
    // number, read if the field is random. Up to a multiple of kLanes is read and written.
    void fill(const std::uint64_t* numbers, const std::uint64_t* seeds, std::size_t count, std::uint64_t* low) const;

private:
    explicit VaryingLanes(const VaryingBits& field) : field_(field) {}
    void step(const std::uint64_t* numbers, std::size_t count, std::uint64_t* low) const;
    void draw(const std::uint64_t* numbers, const std::uint64_t* seeds, std::size_t count, std::uint64_t* low) const;

    VaryingBits field_;
    std::uint64_t first_ = static_cast<std::uint64_t>(field_.first);
    std::uint64_t step_ = 0;                  // modulo 2^64, down as well
    std::optional<Remainder> in_range_ = {};  // nothing: every number is in range
};

}  // namespace dutperf
