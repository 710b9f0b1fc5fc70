// SPDX-License-Identifier: Apache-2.0
// Connections of stateful tests (RFC 9693 sections 4.1, 4.4): combinations of source and destination ports, and of
// addresses. Connection c has the c-th combination in a pseudorandom or counting order, and a frame belongs to a
// connection by its number alone, so a trial always has the same frames.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "flow/flow_source.hpp"
#include "flow/permutation.hpp"

namespace dutperf {

using ConnectionNumbers = std::array<std::uint32_t, kMaxBurst>;

enum class ConnectionOrder : std::uint8_t { random, increasing, decreasing };

// The combinations of the fields that are not fixed.
struct ConnectionSpace {
    FieldSpec source_port, destination_port, source_address, destination_address;
    ConnectionOrder order = ConnectionOrder::random;
    std::uint64_t seed = 0;

    bool operator==(const ConnectionSpace&) const = default;

    // The number of combinations, at most 2^64 - 1.
    [[nodiscard]] std::uint64_t size() const;
};

// Which connection each frame belongs to, among `count`.
class ConnectionChoice {
public:
    static ConnectionChoice in_order(std::uint32_t count) { return {Kind::in_order, count, 0}; }
    // From the last to the first.
    static ConnectionChoice decreasing(std::uint32_t count) { return {Kind::decreasing, count, 0}; }
    static ConnectionChoice first() { return {Kind::in_order, 1, 0}; }
    static ConnectionChoice random(std::uint32_t count, std::uint64_t seed) { return {Kind::random, count, seed}; }
    // Each once, in a pseudorandom order.
    static ConnectionChoice each(std::uint32_t count, std::uint64_t seed) { return {Kind::each, count, seed}; }
    // These, in this order; at least one.
    static ConnectionChoice listed(std::vector<std::uint32_t> numbers) {
        const auto count = static_cast<std::uint32_t>(numbers.size());
        return in_order(count).among(std::move(numbers));
    }

    // The same choice among `numbers`, of which there are at least `count`.
    [[nodiscard]] ConnectionChoice among(std::vector<std::uint32_t> numbers) && {
        numbers_ = std::move(numbers);
        return std::move(*this);
    }

    // Of `count` frames from frame k on, `stride` apart. Later entries up to a multiple of kLanes are numbers of
    // connections too.
    void fill(std::uint64_t k, const Stride& stride, std::size_t count, std::uint32_t* out) const;
    [[nodiscard]] std::uint32_t of(std::uint64_t k) const;

private:
    enum class Kind : std::uint8_t { in_order, decreasing, random, each };
    ConnectionChoice(Kind kind, std::uint32_t count, std::uint64_t seed)
        : kind_(kind), count_(count), seed_(seed), order_(count, seed) {}

    [[nodiscard]] std::uint32_t place_of(std::uint64_t k) const;

    void fill_in_order(std::uint64_t k, const Stride& stride, std::size_t count, std::uint32_t* out) const;

    Kind kind_;
    std::uint32_t count_;
    std::uint64_t seed_;
    Permutation order_;
    std::vector<std::uint32_t> numbers_;  // empty: of all connections
};

// The fields of the initiator's frames.
class ConnectionFields {
public:
    // For frames `stride` apart.
    ConnectionFields(const ConnectionSpace& space, ConnectionChoice choice, std::uint64_t stride);

    // See FieldPair::fill.
    void fill_ports(std::uint64_t k, std::size_t count, DoubleColumn& both) const;
    void fill_addresses(std::uint64_t k, std::size_t count, Column& source, Column& destination) const;

private:
    // The numbers of the combinations.
    void find(std::uint64_t k, std::size_t count, ConnectionNumbers& combinations) const;

    ConnectionSpace space_;
    ConnectionChoice choice_;
    Stride stride_;
    Permutation order_;
    Divisor source_ports_, destination_ports_, source_addresses_;
};

}  // namespace dutperf
