// SPDX-License-Identifier: Apache-2.0
// IP headers that the reference DUT writes: of a packet that it translates or encapsulates.
#pragma once

#include <array>

#include "frame/address.hpp"
#include "refdut/packet.hpp"

namespace dutperf {

template <class Address>
using AddressPair = std::array<Address, 2>;  // source, destination

struct HeaderFields {
    std::uint8_t traffic_class, hop_limit, protocol;
    std::size_t payload;  // bytes
};

// What matters of fragmentation in IPv4.
struct Fragmentation {
    std::uint16_t identification;
    bool may_fragment;
};

[[nodiscard]] std::uint8_t traffic_class_of(const Packet& packet);

// Write a header of 40 bytes with flow label 0, or of 20 bytes.
void write_header(std::uint8_t* at, const HeaderFields& fields, const AddressPair<Ipv6>& addresses);
void write_header(std::uint8_t* at, const HeaderFields& fields, const AddressPair<Ipv4>& addresses,
                  const Fragmentation& fragmentation);

}  // namespace dutperf
