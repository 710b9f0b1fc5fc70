// SPDX-License-Identifier: Apache-2.0
// Maps IPv4 to IPv6 addresses and back: rules for an address and its port (map_rules.hpp), explicit mappings (RFC
// 7757), then the algorithm of RFC 6052 with one prefix.
#pragma once

#include <optional>
#include <vector>

#include "refdut/map_rules.hpp"
#include "refdut/prefix.hpp"

namespace dutperf {

// RFC 7757 3.2: the bits after the IPv4 prefix are copied after the IPv6 prefix; the remaining bits are zero.
struct ExplicitMapping {
    Prefix<Ipv4> ipv4;
    Prefix<Ipv6> ipv6;

    [[nodiscard]] bool fits() const { return kBits<Ipv4> - ipv4.length <= kBits<Ipv6> - ipv6.length; }
};

// The lengths that RFC 6052 2.2 allows.
bool is_translation_prefix(const Prefix<Ipv6>& prefix);

class AddressMap {
public:
    AddressMap(const std::vector<ExplicitMapping>& mappings, const std::optional<Prefix<Ipv6>>& prefix,
               MapRules rules = {});

    // Nothing where no mapping applies. The port matters for addresses that are shared.
    [[nodiscard]] std::optional<Ipv6> to_ipv6(const Ipv4& address, std::uint16_t port = 0) const;
    [[nodiscard]] std::optional<Ipv4> to_ipv4(const Ipv6& address) const;

    [[nodiscard]] const MapRules& rules() const { return rules_; }

private:
    MapRules rules_;
    PrefixTable<Ipv4, ExplicitMapping> by_ipv4_;
    PrefixTable<Ipv6, ExplicitMapping> by_ipv6_;
    std::optional<Prefix<Ipv6>> prefix_;
};

}  // namespace dutperf
