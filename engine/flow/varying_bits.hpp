// SPDX-License-Identifier: Apache-2.0
// A field of 1 to 128 bits anywhere in a frame, whose value is a function of a number: the frame's among its kind, or
// its flow's; or that is a part of the frame's connection. protocol/README.md documents the functions.
#pragma once

#include <cstdint>
#include <vector>

#include "flow/flow_source.hpp"

namespace dutperf {

__extension__ using Number128 = unsigned __int128;

// Where the values of a field come from.
enum class FieldSource : std::uint8_t {
    number,      // of the frame or the flow
    connection,  // the combination of the frame's connection
    learned,     // what the state table has of the frame's connection
};
enum class ConnectionPart : std::uint8_t { source_port, destination_port, source_address, destination_address };
inline constexpr std::size_t kConnectionParts = 4;

struct VaryingBits {
    std::uint32_t bit = 0;   // the field's highest bit, from the start of the frame; bit 0: the highest one of byte 0
    std::uint32_t bits = 1;  // 1 to 128
    bool by_flow = false;
    FieldMode mode = FieldMode::increasing;  // unless there are `values`
    Number128 first = 0, step = 1;
    Number128 count = 0;  // of different numbers (increasing, decreasing) or values (random); 0: 2^128, or as many as
                          // the field has
    std::vector<Number128> values;  // in turn
    FieldSource source = FieldSource::number;
    ConnectionPart part = ConnectionPart::source_port;  // unless the source is a number

    [[nodiscard]] std::uint32_t end() const { return bit + bits; }
    [[nodiscard]] Number128 mask() const { return ~Number128{0} >> (128 - bits); }
    // The numbers that a part of combinations has.
    [[nodiscard]] FieldSpec combined() const {
        return {.mode = count == 1 ? FieldMode::fixed : FieldMode::random,
                .min = static_cast<std::uint16_t>(first),
                .max = static_cast<std::uint16_t>(first + count - 1)};
    }
    // `seed`: of the field's own generator. The first value, if the source is no number.
    [[nodiscard]] Number128 value(std::uint64_t number, std::uint64_t seed) const;
    bool operator==(const VaryingBits&) const = default;
};

}  // namespace dutperf
