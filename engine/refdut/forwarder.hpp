// SPDX-License-Identifier: Apache-2.0
// Forwards one frame as a router and translator (RFC 1812 5.2, RFC 8200, RFC 7915): checks it, looks up the longest
// prefix, decrements the hop limit, and translates, encapsulates or decapsulates it if the route leads through the
// translator, a NAT or a tunnel. With a NAT and a tunnel it is the AFTR of DS-Lite (RFC 6333). No ports, no clock.
#pragma once

#include <array>
#include <optional>
#include <variant>
#include <vector>

#include "refdut/loss.hpp"
#include "refdut/nat.hpp"
#include "refdut/packet.hpp"
#include "refdut/translator.hpp"
#include "refdut/tunnel.hpp"

namespace dutperf {

// Exits of routes besides 0 (left) and 1 (right). What a NAT44 translates has a route to a side.
inline constexpr std::size_t kTranslatorExit = 2, kNatExit = 3, kTunnelExit = 4;

struct Routes {
    PrefixTable<Ipv4, std::size_t> ipv4;  // to an exit
    PrefixTable<Ipv6, std::size_t> ipv6;
};

struct Routed {
    std::uint64_t flow;  // hash of the received addresses and ports
    std::size_t exit;
    bool ipv6;  // after forwarding
};

struct Forwarded {
    std::uint64_t flow;  // hash of the received addresses and ports
    bool ipv6;           // after forwarding
    bool translated, tunnelled;
};

class Forwarder {
public:
    // `mtu`: of both links, in bytes.
    Forwarder(Routes routes, std::optional<Translator> translator, std::size_t mtu,
              std::optional<Tunnel> tunnel = std::nullopt)
        : routes_(std::move(routes)), translator_(std::move(translator)), tunnel_(std::move(tunnel)), mtu_(mtu) {}

    // Makes it a NAT, with an empty table.
    void set_nat(const NatRequest& request, const ConnectionProperties& properties, std::uint64_t clock_hz);
    // nullptr: it is none.
    [[nodiscard]] Nat* nat() { return nat_ ? &*nat_ : nullptr; }

    // Checks an IP frame and removes its padding.
    [[nodiscard]] std::variant<Routed, Loss> route(Packet& packet, std::size_t from) const;
    // Changes a routed frame for the other side. The caller sets the MAC addresses.
    std::variant<Forwarded, Loss> change(Packet& packet, std::size_t from, const Routed& routed, Ticks now);
    // Both.
    std::variant<Forwarded, Loss> forward(Packet& packet, std::size_t from, Ticks now = 0);

    [[nodiscard]] std::uint64_t checksums_computed() const {
        return (translator_ ? translator_->checksums_computed() : 0) + (nat_ ? nat_->checksums_computed() : 0);
    }

private:
    [[nodiscard]] std::optional<std::size_t> exit_of(const Packet& packet) const;
    [[nodiscard]] std::optional<std::size_t> exit_to(const Ipv4& address) const;
    [[nodiscard]] std::optional<std::size_t> exit_to(const Ipv6& address) const;
    [[nodiscard]] bool is_aftr() const { return nat_ && tunnel_; }
    [[nodiscard]] bool leaves_tunnel(const Packet& packet, std::size_t exit) const;
    [[nodiscard]] bool concerns_nat(const Packet& packet, std::size_t exit) const;
    [[nodiscard]] bool comes_from(const Packet& packet, std::size_t exit) const;
    std::optional<Loss> convert(Packet& packet, std::size_t from, std::size_t exit, Ticks now);
    std::optional<Loss> translate(Packet& packet);
    std::optional<Loss> translate_as_nat(Packet& packet, std::size_t from, Ticks now);
    std::optional<Loss> translate_outward(Packet& packet, Ticks now, Softwire softwire);
    std::optional<Loss> encapsulate(Packet& packet);
    std::optional<Loss> decapsulate(Packet& packet, std::size_t from, Ticks now);

    Routes routes_;
    std::optional<Translator> translator_;
    std::optional<Tunnel> tunnel_;
    std::optional<Nat> nat_;
    std::size_t mtu_;
};

}  // namespace dutperf
