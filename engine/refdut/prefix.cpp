// SPDX-License-Identifier: Apache-2.0
#include "refdut/prefix.hpp"

#include <charconv>

namespace dutperf {

namespace {

template <class Address>
std::optional<Prefix<Address>> parse_prefix(const std::string& text,
                                            std::optional<Address> (*parse)(const std::string&)) {
    const std::size_t slash = std::min(text.find('/'), text.size());
    const auto address = parse(text.substr(0, slash));
    if (!address) return std::nullopt;
    if (slash == text.size()) return Prefix<Address>{*address, static_cast<std::uint8_t>(kBits<Address>)};
    unsigned length = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data() + slash + 1, end, length);
    if (error != std::errc{} || stopped != end || length > kBits<Address>) return std::nullopt;
    return Prefix<Address>{*address, static_cast<std::uint8_t>(length)};
}

}  // namespace

std::optional<Prefix<Ipv4>> parse_prefix4(const std::string& text) { return parse_prefix<Ipv4>(text, parse_ipv4); }
std::optional<Prefix<Ipv6>> parse_prefix6(const std::string& text) { return parse_prefix<Ipv6>(text, parse_ipv6); }

}  // namespace dutperf
