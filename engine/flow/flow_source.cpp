// SPDX-License-Identifier: Apache-2.0
#include "flow/flow_source.hpp"

#include "frame/bytes.hpp"

namespace dutperf {

namespace {

void fill_counting(const FieldSpec& spec, std::uint64_t k, std::uint64_t stride, std::size_t count, Column& out) {
    const std::uint32_t range = spec.range(), forward = static_cast<std::uint32_t>(stride % range);
    auto step = static_cast<std::uint32_t>(k % range);
    const bool up = spec.mode == FieldMode::increasing;
    for (std::size_t i = 0; i < count; ++i) {
        out[i] = static_cast<std::uint16_t>(up ? spec.min + step : spec.max - step);
        step += forward;
        step = step >= range ? step - range : step;
    }
}

// A field that is not random is drawn from a range of one value.
std::uint32_t range_drawn_from(const FieldSpec& spec) { return spec.mode == FieldMode::random ? spec.range() : 1; }

}  // namespace

template <class OnLanes>
void FieldPair::draw(std::uint64_t k, std::size_t count, const OnLanes& on_lanes) const {
    const std::uint32_t first_range = range_drawn_from(first_), second_range = range_drawn_from(second_);
    const std::uint64_t first_min = first_.min, second_min = second_.min;
    RandomLanes random(seed_, stride_.lanes(k, 0), stride_.distance());
    for (std::size_t i = 0; i < count; i += kLanes) {
        const Lanes bits = random.next();
        on_lanes(i, first_min + scale_to_range(bits, first_range),
                 second_min + scale_to_range(bits >> 32U, second_range));
    }
}

void FieldPair::fill(std::uint64_t k, std::size_t count, Column& first, Column& second) const {
    if (!first_.counts() || !second_.counts()) {
        draw(k, count, [&](std::size_t i, Lanes one, Lanes other) {
            store_lanes(&first[i], one);
            store_lanes(&second[i], other);
        });
    }
    if (first_.counts()) fill_counting(first_, k, stride_.distance(), count, first);
    if (second_.counts()) fill_counting(second_, k, stride_.distance(), count, second);
}

void FieldPair::fill(std::uint64_t k, std::size_t count, DoubleColumn& both) const {
    const auto put = [&both](std::size_t i, Lanes first, Lanes second) {
        store_lanes(&both[i], swap_bytes_of_words(first | second << 16U));
    };
    if (!first_.counts() && !second_.counts()) return draw(k, count, put);
    Column first, second;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled
    fill(k, count, first, second);
    for (std::size_t i = 0; i < count; i += kLanes) put(i, load_lanes(&first[i]), load_lanes(&second[i]));
}

}  // namespace dutperf
