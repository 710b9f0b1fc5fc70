// SPDX-License-Identifier: Apache-2.0
#include "trial/connection_columns.hpp"

#include <algorithm>

namespace dutperf {

ConnectionColumns::ConnectionColumns(const ConnectionParts& parts, std::uint64_t stride,
                                     std::span<const FrameFamily> families)
    : parts_(parts), stride_(stride) {
    for (const FrameFamily& family : families) {
        for (const FrameForm::Field& field : family.form().fields) {
            if (field.bits.source != FieldSource::number) used_[index_of(field.bits.source, field.bits.part)] = true;
        }
    }
}

void ConnectionColumns::fill(std::uint64_t k, std::uint32_t count) {
    if (has(ConnectionPart::source_port) || has(ConnectionPart::destination_port)) fill_ports(k, count);
    if (has(ConnectionPart::source_address) || has(ConnectionPart::destination_address)) fill_addresses(k, count);
    if (parts_.table != nullptr) fill_learned(k, count);
}

void ConnectionColumns::fill_ports(std::uint64_t k, std::uint32_t count) {
    parts_.combinations.fill_ports(k, count, ports_);
    Values &source = of(FieldSource::connection, ConnectionPart::source_port),
           &destination = of(FieldSource::connection, ConnectionPart::destination_port);
    for (std::uint32_t i = 0; i < count; i += kLanes) {
        const Lanes ports = swap_bytes_of_words(load_lanes(&ports_[i]));
        store_lanes(&source.low[i], ports & 0xFFFFU);
        store_lanes(&destination.low[i], ports >> 16U);
    }
}

// The Responder's source is the destination of the connection.
void ConnectionColumns::fill_addresses(std::uint64_t k, std::uint32_t count) {
    const bool replies = parts_.table != nullptr;
    parts_.combinations.fill_addresses(k, count, replies ? destination_address_ : source_address_,
                                       replies ? source_address_ : destination_address_);
    std::copy_n(source_address_.begin(), count,
                of(FieldSource::connection, ConnectionPart::source_address).low.begin());
    std::copy_n(destination_address_.begin(), count,
                of(FieldSource::connection, ConnectionPart::destination_address).low.begin());
}

// The entries of a large table are in no cache: all are fetched before the first is read.
void ConnectionColumns::fill_learned(std::uint64_t k, std::uint32_t count) {
    parts_.choice.fill(k, stride_, count, connections_.data());
    for (std::uint32_t i = 0; i < count; ++i) {
        entries_[i] = parts_.table->entry(connections_[i]);
        __builtin_prefetch(entries_[i]);
    }
    parts_.table->ipv6() ? read_entries<true>(count) : read_entries<false>(count);
}

template <bool Ipv6>
void ConnectionColumns::read_entries(std::uint32_t count) {
    constexpr std::size_t kPortsIn = (Ipv6 ? StateTable::kWordsIpv6 : StateTable::kWordsIpv4) - 1;
    Values &address = of(FieldSource::learned, ConnectionPart::destination_address),
           &source_port = of(FieldSource::learned, ConnectionPart::source_port),
           &destination_port = of(FieldSource::learned, ConnectionPart::destination_port);
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint64_t* entry = entries_[i];
        const std::uint64_t ports = entry[kPortsIn];
        if constexpr (Ipv6) address.high[i] = swap64(entry[0]);
        address.low[i] = Ipv6 ? swap64(entry[1]) : swap64(ports << 32U);
        source_port.low[i] = swap16(static_cast<std::uint16_t>(ports >> 32U));
        destination_port.low[i] = swap16(static_cast<std::uint16_t>(ports >> 48U));
    }
}

}  // namespace dutperf
