// SPDX-License-Identifier: Apache-2.0
#include "dns/test_name.hpp"

#include <algorithm>
#include <array>

namespace dutperf::dns {

namespace {

constexpr std::size_t kRunDigits = 4, kTrialDigits = 4, kNumberDigits = 10;
constexpr std::size_t kRunAt = 1, kTrialAt = kRunAt + kRunDigits, kNumberAt = kTrialAt + kTrialDigits;
static_assert(kNumberAt + kNumberDigits == kTestLabelSize);

constexpr std::uint8_t kNoDigit = 0xFF;
constexpr auto kDigits = [] {
    std::array<std::uint8_t, 256> digits{};
    digits.fill(kNoDigit);
    for (std::uint8_t i = 0; i < 10; ++i) digits['0' + i] = i;
    for (std::uint8_t i = 0; i < 6; ++i) digits['a' + i] = digits['A' + i] = static_cast<std::uint8_t>(10 + i);
    return digits;
}();

std::optional<std::uint64_t> read_hex(Bytes text) {
    std::uint64_t number = 0;
    std::uint8_t all = 0;
    for (const std::uint8_t letter : text) {
        const std::uint8_t digit = kDigits[letter];
        all |= digit;
        number = number << 4U | digit;
    }
    return all < 16 ? std::optional(number) : std::nullopt;
}

bool is_allowed(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-';
}

}  // namespace

void write_hex(std::uint64_t number, std::size_t digits, std::uint8_t* to) {
    constexpr std::string_view kLower = "0123456789abcdef";
    for (std::size_t i = digits; i > 0; number >>= 4U) to[--i] = static_cast<std::uint8_t>(kLower[number & 0xFU]);
}

void write_test_label(const TestName& name, std::uint8_t* to) {
    to[0] = name.has_aaaa ? 'b' : 'a';
    write_hex(name.run, kRunDigits, to + kRunAt);
    write_hex(name.trial, kTrialDigits, to + kTrialAt);
    write_hex(name.number, kNumberDigits, to + kNumberAt);
}

std::optional<TestName> read_test_label(Bytes label) {
    if (label.size() != kTestLabelSize) return std::nullopt;
    const unsigned kind = label[0] | 0x20U;
    const auto mark = read_hex(label.subspan(kRunAt, kRunDigits + kTrialDigits));
    const auto number = read_hex(label.subspan(kNumberAt));
    if ((kind != 'a' && kind != 'b') || !mark || !number) return std::nullopt;
    return TestName{.has_aaaa = kind == 'b',
                    .run = static_cast<std::uint16_t>(*mark >> (4 * kTrialDigits)),
                    .trial = static_cast<std::uint16_t>(*mark),
                    .number = *number};
}

std::optional<std::size_t> Zone::place_in(Bytes name) const {
    if (name.size() < size) return std::nullopt;
    const std::size_t place = name.size() - size;
    std::size_t at = 0;
    while (at < place) at += 1U + name[at];
    return at == place && are_equal_names(name.subspan(place), this->name()) ? std::optional(place) : std::nullopt;
}

void write_address_label(const Ipv4& address, std::uint8_t* to) {
    for (std::size_t i = 0; i < address.size(); ++i) {
        if (i != 0) *to++ = '-';
        for (const unsigned unit : {100U, 10U, 1U}) *to++ = static_cast<std::uint8_t>('0' + address[i] / unit % 10);
    }
}

std::optional<Zone> parse_zone(std::string_view text) {
    if (text.empty() || text.size() > Zone::kMaxText) return std::nullopt;
    Zone zone;
    std::size_t labels = 0;
    for (std::size_t at = 0; at <= text.size(); ++labels) {
        const std::string_view label = text.substr(at, text.find('.', at) - at);
        if (label.empty() || label.size() > kMaxLabelSize || !std::ranges::all_of(label, is_allowed))
            return std::nullopt;
        zone.bytes[at] = static_cast<std::uint8_t>(label.size());
        std::ranges::copy(label, &zone.bytes[at + 1]);
        at += label.size() + 1;
    }
    zone.size = text.size() + 2;
    return labels <= Zone::kMaxLabels ? std::optional(zone) : std::nullopt;
}

}  // namespace dutperf::dns
