// SPDX-License-Identifier: Apache-2.0
// A field of 1 to 128 bits anywhere in a frame, whose value is a function of a number: the frame's among its kind, or
// its flow's. protocol/README.md documents the functions.
#pragma once

#include <cstdint>
#include <vector>

#include "flow/flow_source.hpp"

namespace dutperf {

__extension__ using Number128 = unsigned __int128;

struct VaryingBits {
    std::uint32_t bit = 0;   // the field's highest bit, from the start of the frame; bit 0: the highest one of byte 0
    std::uint32_t bits = 1;  // 1 to 128
    bool by_flow = false;
    FieldMode mode = FieldMode::increasing;  // unless there are `values`
    Number128 first = 0, step = 1;
    Number128 count = 0;  // of different numbers (increasing, decreasing) or values (random); 0: 2^128, or as many as
                          // the field has
    std::vector<Number128> values;  // in turn

    [[nodiscard]] std::uint32_t end() const { return bit + bits; }
    [[nodiscard]] Number128 mask() const { return ~Number128{0} >> (128 - bits); }
    // `seed`: of the field's own generator.
    [[nodiscard]] Number128 value(std::uint64_t number, std::uint64_t seed) const;
    bool operator==(const VaryingBits&) const = default;
};

}  // namespace dutperf
