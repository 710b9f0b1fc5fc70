// SPDX-License-Identifier: Apache-2.0
// What the fields of described frames hold of their connections (RFC 9693), for each burst: the Initiator's frames have
// the combinations of their connections, the Responder's what the state table has learned of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "flow/connections.hpp"
#include "flow/state_table.hpp"
#include "flow/varying_bits.hpp"
#include "trial/frame_family.hpp"

namespace dutperf {

struct ConnectionParts {
    ConnectionChoice choice;
    ConnectionFields combinations;  // of the same choice
    const StateTable* table;        // nullptr: the frames are the Initiator's; else every chosen connection is in it
};

class ConnectionColumns {
public:
    struct Values {
        alignas(kLanesAlignment) std::array<std::uint64_t, kMaxBurst> low{}, high{};  // halves of the values
    };

    // For frames of these families, `stride` apart.
    ConnectionColumns(const ConnectionParts& parts, std::uint64_t stride, std::span<const FrameFamily> families);

    // For `count` frames from frame k on.
    void fill(std::uint64_t k, std::uint32_t count);
    // The values of a field whose source is no number, of each frame of the burst.
    [[nodiscard]] const Values& values(const VaryingBits& field) const {
        return values_[index_of(field.source, field.part)];
    }

private:
    // One value for each source and part.
    static std::size_t index_of(FieldSource source, ConnectionPart part) {
        return static_cast<std::size_t>(part) + (source == FieldSource::learned ? kConnectionParts : 0);
    }
    [[nodiscard]] bool has(ConnectionPart part) const { return used_[index_of(FieldSource::connection, part)]; }
    Values& of(FieldSource source, ConnectionPart part) { return values_[index_of(source, part)]; }

    void fill_ports(std::uint64_t k, std::uint32_t count);
    void fill_addresses(std::uint64_t k, std::uint32_t count);
    void fill_learned(std::uint64_t k, std::uint32_t count);
    template <bool Ipv6>
    void read_entries(std::uint32_t count);

    ConnectionParts parts_;
    Stride stride_;
    std::array<bool, 2 * kConnectionParts> used_{};
    std::array<Values, 2 * kConnectionParts> values_{};
    alignas(kLanesAlignment) ConnectionNumbers connections_{};
    std::array<const std::uint64_t*, kMaxBurst> entries_{};
    alignas(kLanesAlignment) DoubleColumn ports_{};
    alignas(kLanesAlignment) Column source_address_{}, destination_address_{};
};

}  // namespace dutperf
