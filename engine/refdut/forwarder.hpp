// SPDX-License-Identifier: Apache-2.0
// Forwards one frame as a router and translator (RFC 1812 5.2, RFC 8200, RFC 7915): checks it, looks up the longest
// prefix, decrements the hop limit, and translates it if the route leads through the translator. No ports, no clock.
#pragma once

#include <array>
#include <optional>
#include <variant>
#include <vector>

#include "refdut/loss.hpp"
#include "refdut/packet.hpp"
#include "refdut/translator.hpp"

namespace dutperf {

inline constexpr std::size_t kTranslatorExit = 2;  // 0: left, 1: right

struct Routes {
    PrefixTable<Ipv4, std::size_t> ipv4;  // to a side or to kTranslatorExit
    PrefixTable<Ipv6, std::size_t> ipv6;
};

struct Forwarded {
    std::uint64_t flow;  // hash of the received addresses and ports
    bool ipv6;           // after forwarding
    bool translated;
};

class Forwarder {
public:
    // `mtu`: of both links, in bytes.
    Forwarder(Routes routes, std::optional<Translator> translator, std::size_t mtu)
        : routes_(std::move(routes)), translator_(std::move(translator)), mtu_(mtu) {}

    // Forwards an IP frame from one side to the other and removes its padding. The caller sets the MAC addresses.
    std::variant<Forwarded, Loss> forward(Packet& packet, std::size_t from);

    [[nodiscard]] std::uint64_t checksums_computed() const {
        return translator_ ? translator_->checksums_computed() : 0;
    }

private:
    [[nodiscard]] std::optional<std::size_t> exit_of(const Packet& packet) const;

    Routes routes_;
    std::optional<Translator> translator_;
    std::size_t mtu_;
};

}  // namespace dutperf
