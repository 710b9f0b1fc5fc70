// SPDX-License-Identifier: Apache-2.0
#include "flow/flow_source.hpp"

#include <algorithm>

namespace dutperf {

namespace {

void fill_counting(const FieldSpec& spec, std::uint64_t k, std::size_t count, Column& out) {
    const std::uint32_t range = spec.range();
    auto step = static_cast<std::uint32_t>(k % range);
    const bool up = spec.mode == FieldMode::increasing;
    for (std::size_t i = 0; i < count; ++i) {
        out[i] = static_cast<std::uint16_t>(up ? spec.min + step : spec.max - step);
        step = step + 1 == range ? 0 : step + 1;
    }
}

void fill_one(const FieldSpec& spec, std::uint64_t k, std::size_t count, const std::array<std::uint32_t, kMaxBurst>& bits, Column& out) {
    switch (spec.mode) {
        case FieldMode::fixed: std::fill_n(out.begin(), count, spec.min); break;
        case FieldMode::increasing:
        case FieldMode::decreasing: fill_counting(spec, k, count, out); break;
        case FieldMode::random: {
            const std::uint32_t range = spec.range();
            for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint16_t>(spec.min + scale_to_range(bits[i], range));
            break;
        }
    }
}

}  // namespace

void FieldPair::fill(std::uint64_t k, std::size_t count, Column& first, Column& second) const {
    // written before they are read, and only where a field is random: not initialised on purpose
    std::array<std::uint32_t, kMaxBurst> low;   // NOLINT(cppcoreguidelines-pro-type-member-init)
    std::array<std::uint32_t, kMaxBurst> high;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    if (first_.mode == FieldMode::random || second_.mode == FieldMode::random) {
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t bits = random_bits(seed_, k + i);
            low[i] = static_cast<std::uint32_t>(bits);
            high[i] = static_cast<std::uint32_t>(bits >> 32U);
        }
    }
    fill_one(first_, k, count, low, first);
    fill_one(second_, k, count, high, second);
}

}  // namespace dutperf
