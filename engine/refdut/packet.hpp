// SPDX-License-Identifier: Apache-2.0
// A frame that is being forwarded: its start in the buffer and its length without FCS. Translation to IPv6 uses the
// room before it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frame/layout.hpp"

namespace dutperf {

inline constexpr std::size_t kTranslationGrowth = ipv6::kSize - ipv4::kSize;

struct Packet {
    std::uint8_t* at;  // at least kTranslationGrowth bytes of the buffer are before it
    std::size_t length;

    [[nodiscard]] std::uint8_t* ip() const { return at + kEthernetPayloadAt; }
    [[nodiscard]] bool is_ipv6() const { return load_be16(at + ethernet::kType) == ethernet::kTypeIpv6; }
};

template <class Address>
Address address_at(const std::uint8_t* at) {
    Address address{};
    std::memcpy(address.data(), at, address.size());
    return address;
}

}  // namespace dutperf
