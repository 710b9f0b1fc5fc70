// SPDX-License-Identifier: Apache-2.0
#include "flow/varying_lanes.hpp"

#include <algorithm>
#include <bit>

#include "frame/random_bits.hpp"

namespace dutperf {

namespace {

constexpr std::uint64_t kNumbers = std::uint64_t{1} << 40U, kAll = ~std::uint64_t{0};

bool is_below_2_32(Number128 count) { return count >> 32U == 0; }
bool is_power_of_2(Number128 count) { return (count & (count - 1)) == 0; }

// Whether the values differ by less than 2^64, and no addition carries to the bits above.
bool stays_in_lower_half(const VaryingBits& field) {
    if (field.bits <= 64) return true;
    const Number128 first = field.first & kAll;
    if (field.mode == FieldMode::random) return field.count != 0 && first + (field.count - 1) <= kAll;
    if (field.step > kAll) return false;
    const Number128 largest = field.count == 0 ? kNumbers : std::min<Number128>(field.count - 1, kNumbers),
                    distance = largest * field.step;
    return field.mode == FieldMode::increasing ? first + distance <= kAll : distance <= first;
}

}  // namespace

std::optional<VaryingLanes> VaryingLanes::of(const VaryingBits& field) {
    if (field.source != FieldSource::number || !field.values.empty() || !stays_in_lower_half(field)) return {};
    VaryingLanes made(field);
    if (field.mode == FieldMode::random) {
        if (is_below_2_32(field.count) || (is_power_of_2(field.count) && field.count <= kAll)) return made;
        return {};
    }
    if (field.mode != FieldMode::fixed)
        made.step_ = static_cast<std::uint64_t>(field.mode == FieldMode::increasing ? field.step : -field.step);
    if (field.count != 0 && field.count < kNumbers) {
        if (!is_below_2_32(field.count)) return {};
        made.in_range_.emplace(static_cast<std::uint32_t>(field.count));
    }
    return made;
}

void VaryingLanes::fill(const std::uint64_t* numbers, const std::uint64_t* seeds, std::size_t count,
                        std::uint64_t* low) const {
    is_random() ? draw(numbers, seeds, count, low) : step(numbers, count, low);
}

void VaryingLanes::step(const std::uint64_t* numbers, std::size_t count, std::uint64_t* low) const {
    for (std::size_t i = 0; i < count; i += kLanes) {
        Lanes in_range = load_lanes(numbers + i);
        if (in_range_) in_range = in_range_->of(in_range);
        store_lanes(low + i, first_ + (step_ == 1 ? in_range : in_range * step_));
    }
}

// VaryingBits::value multiplies 128 random bits by the count and takes what is above them. The lower 64 bits matter in
// one draw of 2^32 at most: these are computed one by one.
void VaryingLanes::draw(const std::uint64_t* numbers, const std::uint64_t* seeds, std::size_t count,
                        std::uint64_t* low) const {
    const auto range = static_cast<std::uint32_t>(field_.count);
    const auto shift = static_cast<unsigned>(64 - std::countr_zero(static_cast<std::uint64_t>(field_.count)));
    const bool is_whole = field_.count == 0, is_shifted = is_power_of_2(field_.count) && field_.count > 1;
    Lanes uncertain{};
    for (std::size_t i = 0; i < count; i += kLanes) {
        const Lanes bits = splitmix64(load_lanes(seeds + i) + (load_lanes(numbers + i) + 1) * kGamma);
        Lanes drawn;
        if (is_whole) {
            drawn = splitmix64(bits + kGamma);
        } else if (is_shifted) {
            drawn = bits >> shift;
        } else {
            const Lanes middle = multiply32(bits >> 32U, range) + (multiply32(bits, range) >> 32U);
            drawn = middle >> 32U;
            uncertain |= ((middle & 0xFFFFFFFFU) + 1) >> 32U;
        }
        store_lanes(low + i, first_ + drawn);
    }
    if (any_of(uncertain) == 0) [[likely]]
        return;
    for (std::size_t i = 0; i < count; ++i) low[i] = static_cast<std::uint64_t>(field_.value(numbers[i], seeds[i]));
}

}  // namespace dutperf
