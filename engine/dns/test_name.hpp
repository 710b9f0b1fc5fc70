// SPDX-License-Identifier: Apache-2.0
// The names that a trial asks for, and their addresses. The name says all of them, so the server needs no state.
// protocol/README.md describes them: `a` or `b`, 4 hex digits of the run, 4 of the trial, 10 of the number, the zone.
// Other servers have names of addresses instead: `198-018-000-007`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "dns/message.hpp"
#include "frame/bytes.hpp"

namespace dutperf::dns {

struct TestName {
    bool has_aaaa = false;  // besides its A record
    std::uint16_t run = 0, trial = 0;
    std::uint64_t number = 0;  // 40 bits

    bool operator==(const TestName&) const = default;
};

inline constexpr std::size_t kTestLabelSize = 19;
inline constexpr std::uint64_t kMaxTestNumber = (std::uint64_t{1} << 40U) - 1;

// Writes the label without the byte of its size.
void write_test_label(const TestName& name, std::uint8_t* to);
// Writes the lowest four bits of each of the `digits` digits of a number, in lower case.
void write_hex(std::uint64_t number, std::size_t digits, std::uint8_t* to);
// The inverse, in any case; nothing if it is no such label.
std::optional<TestName> read_test_label(Bytes label);

inline constexpr std::size_t kAddressLabelSize = 15;

// Writes the label of an address: three decimal digits of each byte.
void write_address_label(const Ipv4& address, std::uint8_t* to);

inline Ipv4 a_record_of(std::uint64_t number) {
    constexpr std::uint32_t kFirst = 198U << 24U | 18U << 16U;  // 198.18.0.0/15 (RFC 2544 C.2.2)
    Ipv4 address{};
    store_be32(address.data(), kFirst + static_cast<std::uint32_t>(number % (1U << 17U)));
    return address;
}

inline Ipv6 aaaa_record_of(std::uint64_t number) {
    Ipv6 address{0x20, 0x01, 0x00, 0x02, 0x00, 0x00, 0x0D, 0x64};  // 2001:2::/48 (RFC 5180 8)
    store_be64(address.data() + 8, number);
    return address;
}

// A zone's name as in messages.
struct Zone {
    static constexpr std::size_t kMaxText = 64, kMaxLabels = 8;

    std::array<std::uint8_t, kMaxText + 2> bytes{};
    std::size_t size = 1;

    [[nodiscard]] Bytes name() const { return {bytes.data(), size}; }
    // Where the zone begins in a name; nothing if the name is not in the zone.
    [[nodiscard]] std::optional<std::size_t> place_in(Bytes name) const;
};

// Of lower-case letters, digits, hyphens and dots.
std::optional<Zone> parse_zone(std::string_view text);

}  // namespace dutperf::dns
