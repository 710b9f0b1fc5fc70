// SPDX-License-Identifier: Apache-2.0
// One end of tunnels that carry IPv4 in IPv6 or IPv6 in IPv4 (RFC 2473, RFC 4213): B4 and AFTR of DS-Lite (RFC 6333),
// CE and BR of MAP-E (RFC 7597) and of 6rd (RFC 5969), lwB4 and lwAFTR (RFC 7596). Its map tells the end of each inner
// address and port: where packets to it go, and where those from it must come from. No fragments, no extension headers,
// no ICMP errors.
#pragma once

#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "refdut/address_map.hpp"
#include "refdut/ip_header.hpp"
#include "refdut/loss.hpp"
#include "refdut/packet.hpp"

namespace dutperf {

// Number of a softwire to a B4 (RFC 6333), from 1 on; 0: none.
using Softwire = std::uint32_t;

class Tunnel {
public:
    static constexpr std::size_t kMostSoftwires = 1U << 20U;

    Tunnel(AddressMap ends, bool over_ipv6) : ends_(std::move(ends)), over_ipv6_(over_ipv6) {}

    // Whether the packet is of the version that goes into the tunnel.
    [[nodiscard]] bool carries(const Packet& packet) const { return packet.is_ipv6() != over_ipv6_; }

    // Between the ends of both inner addresses. Requires valid lengths. Changes no hop limit.
    std::optional<Loss> encapsulate(Packet& packet) const;
    // Takes the packet out if it comes from and to the ends of its inner addresses.
    std::optional<Loss> decapsulate(Packet& packet) const;

    // The same as an AFTR, which knows a packet's B4 by its NAT: the inner addresses are private ones.
    std::optional<Loss> encapsulate_to(Packet& packet, Softwire softwire) const;
    std::variant<Softwire, Loss> decapsulate_from_b4(Packet& packet);

private:
    [[nodiscard]] std::optional<Loss> take_out(Packet& packet) const;
    [[nodiscard]] std::optional<IpAddress> end_of(const IpAddress& address, std::uint16_t port) const;
    void wrap(Packet& packet, const IpAddress& source, const IpAddress& destination) const;
    std::optional<Softwire> softwire_from(const Ipv6& b4);

    AddressMap ends_;
    bool over_ipv6_;
    std::unordered_map<Ipv6, Softwire, AddressHash<Ipv6>> softwires_;
    std::vector<Ipv6> b4s_;  // by number - 1
};

}  // namespace dutperf
