// SPDX-License-Identifier: Apache-2.0
// Mapping of address and port (RFC 7597 5): rules by which an IPv4 address and a port have an IPv6 address, that of a
// customer's edge (CE). Without embedded address bits and with a PSID of its own, a rule is an entry of the binding
// table of lw4o6 (RFC 7596 6).
#pragma once

#include <optional>
#include <unordered_map>

#include "refdut/prefix.hpp"

namespace dutperf {

// The ports of a shared address that belong to each PSID (RFC 7597 5.1). Ports whose first `offset` bits are 0 belong
// to none, unless that is 0.
struct PortSharing {
    std::uint8_t offset = 0;       // a: bits before the PSID
    std::uint8_t psid_length = 0;  // k; 0: the address is not shared, and all ports are its own

    bool operator==(const PortSharing&) const = default;
    [[nodiscard]] std::optional<std::uint16_t> psid_of(std::uint16_t port) const;
};

struct MapRule {
    Prefix<Ipv4> ipv4;
    Prefix<Ipv6> ipv6;
    std::uint8_t ea_length = 0;  // embedded address bits: the rest of the IPv4 address, then the PSID
    PortSharing sharing;
    std::optional<std::uint16_t> psid;  // the rule is for this one alone; nothing: for all

    // Bits of the IPv4 address that are the CE's: fewer than 32 if it has a whole prefix.
    [[nodiscard]] std::size_t address_bits() const {
        return ipv4.length + std::min<std::size_t>(ea_length, kBits<Ipv4> - ipv4.length);
    }
    // The CE's address (RFC 7597 6).
    [[nodiscard]] Ipv6 ipv6_of(const Ipv4& address, std::uint16_t its_psid) const;
    // The IPv4 address of the CE with this address.
    [[nodiscard]] Ipv4 ipv4_of(const Ipv6& address) const;
};

class MapRules {
public:
    // Returns false, and does nothing, where another rule shares the ports of the same prefix in another way.
    bool add(const MapRule& rule);
    [[nodiscard]] bool is_empty() const { return by_ipv4_.is_empty(); }
    // Whether it takes a port to tell whose an address is.
    [[nodiscard]] bool needs_ports() const { return needs_ports_; }

    // Whether there are rules for the address, whatever its port.
    [[nodiscard]] bool cover(const Ipv4& address) const { return by_ipv4_.find(address) != nullptr; }
    // Nothing where no CE has the address and port.
    [[nodiscard]] std::optional<Ipv6> ipv6_of(const Ipv4& address, std::uint16_t port) const;
    // By the address alone: whether it has the port, `ipv6_of` tells. nullptr: it is that of no CE.
    [[nodiscard]] const MapRule* rule_of(const Ipv6& address) const { return by_ipv6_.find(address); }

private:
    struct OfPrefix {
        PortSharing sharing;
        std::optional<MapRule> any;  // for all PSIDs without a rule of their own
        std::unordered_map<std::uint16_t, MapRule> by_psid;
    };

    PrefixTable<Ipv4, OfPrefix> by_ipv4_;
    PrefixTable<Ipv6, MapRule> by_ipv6_;
    bool needs_ports_ = false;
};

}  // namespace dutperf
