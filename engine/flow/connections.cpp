// SPDX-License-Identifier: Apache-2.0
#include "flow/connections.hpp"

namespace dutperf {

namespace {

std::uint32_t combinations_of(const FieldSpec& field) { return field.mode == FieldMode::fixed ? 1 : field.range(); }

}  // namespace

std::uint64_t ConnectionSpace::size() const {
    const std::uint64_t ports = std::uint64_t{combinations_of(source_port)} * combinations_of(destination_port),
                        addresses =
                            std::uint64_t{combinations_of(source_address)} * combinations_of(destination_address);
    std::uint64_t all = 0;
    return __builtin_mul_overflow(ports, addresses, &all) ? ~std::uint64_t{0} : all;
}

std::uint32_t ConnectionChoice::of(std::uint64_t k) const {
    return numbers_.empty() ? place_of(k) : numbers_[place_of(k)];
}

std::uint32_t ConnectionChoice::place_of(std::uint64_t k) const {
    const auto in_order = static_cast<std::uint32_t>(k % count_);
    switch (kind_) {
        case Kind::random: return static_cast<std::uint32_t>(scale_to_range(random_bits(seed_, k), count_));
        case Kind::each: return order_.of(in_order);
        case Kind::decreasing: return count_ - 1 - in_order;
        case Kind::in_order: break;
    }
    return in_order;
}

void ConnectionChoice::fill(std::uint64_t k, const Stride& stride, std::size_t count, std::uint32_t* out) const {
    if (kind_ == Kind::random) {
        RandomLanes random(seed_, stride.lanes(k, 0), stride.distance());
        for (std::size_t i = 0; i < count; i += kLanes) store_lanes(&out[i], scale_to_range(random.next(), count_));
    } else {
        fill_in_order(k, stride, count, out);
        if (kind_ == Kind::each) order_.map(out, count);
        if (kind_ == Kind::decreasing) {
            for (std::size_t i = 0; i < count; ++i) out[i] = count_ - 1 - out[i];
        }
    }
    if (!numbers_.empty()) {
        for (std::size_t i = 0; i < count; ++i) out[i] = numbers_[out[i]];
    }
}

void ConnectionChoice::fill_in_order(std::uint64_t k, const Stride& stride, std::size_t count,
                                     std::uint32_t* out) const {
    auto number = static_cast<std::uint32_t>(k % count_);
    const std::size_t whole = (count + kLanes - 1) / kLanes * kLanes;
    if (number + stride.distance() * whole <= count_) [[likely]] {
        for (std::size_t i = 0; i < count; i += kLanes) store_lanes(&out[i], stride.lanes(number, i));
        return;
    }
    const auto forward = static_cast<std::uint32_t>(stride.distance() % count_);
    for (std::size_t i = 0; i < whole; ++i) {
        out[i] = number;
        number += forward;
        number = number >= count_ ? number - count_ : number;
    }
}

ConnectionFields::ConnectionFields(const ConnectionSpace& space, ConnectionChoice choice, std::uint64_t stride)
    : space_(space),
      choice_(std::move(choice)),
      stride_(stride),
      order_(static_cast<std::uint32_t>(space.size()), space.seed),
      source_ports_(combinations_of(space.source_port)),
      destination_ports_(combinations_of(space.destination_port)),
      source_addresses_(combinations_of(space.source_address)) {}

void ConnectionFields::find(std::uint64_t k, std::size_t count, ConnectionNumbers& combinations) const {
    choice_.fill(k, stride_, count, combinations.data());
    if (space_.order == ConnectionOrder::random) order_.map(combinations.data(), count);
    if (space_.order == ConnectionOrder::decreasing) {
        for (std::size_t i = 0; i < count; ++i) combinations[i] = order_.size() - 1 - combinations[i];
    }
}

void ConnectionFields::fill_ports(std::uint64_t k, std::size_t count, DoubleColumn& both) const {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): filled by find()
    alignas(kLanesAlignment) ConnectionNumbers combinations;
    find(k, count, combinations);
    const std::uint64_t source_min = space_.source_port.min, destination_min = space_.destination_port.min;
    // to the compiler, the stores could change any member
    const Divisor source_ports = source_ports_, destination_ports = destination_ports_;
    for (std::size_t i = 0; i < count; i += kLanes) {
        const Lanes all = load_lanes(&combinations[i]);
        const Lanes rest = source_ports.quotient(all);
        const Lanes source = source_min + source_ports.remainder(all, rest);
        const Lanes destination = destination_min + destination_ports.remainder(rest, destination_ports.quotient(rest));
        store_lanes(&both[i], swap_bytes_of_words(source | destination << 16U));
    }
}

void ConnectionFields::fill_addresses(std::uint64_t k, std::size_t count, Column& source, Column& destination) const {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): filled by find()
    alignas(kLanesAlignment) ConnectionNumbers combinations;
    find(k, count, combinations);
    const std::uint64_t source_min = space_.source_address.min, destination_min = space_.destination_address.min;
    for (std::size_t i = 0; i < count; i += kLanes) {
        const Lanes of_addresses = destination_ports_.quotient(source_ports_.quotient(load_lanes(&combinations[i])));
        const Lanes of_destination = source_addresses_.quotient(of_addresses);
        store_lanes(&source[i], source_min + source_addresses_.remainder(of_addresses, of_destination));
        store_lanes(&destination[i], destination_min + of_destination);
    }
}

}  // namespace dutperf
