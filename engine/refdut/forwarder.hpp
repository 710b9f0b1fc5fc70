// SPDX-License-Identifier: Apache-2.0
// What a router and translator does with one frame (RFC 1812 5.2, RFC 8200, RFC 7915): checks it, finds its way by the
// longest prefix, decrements the hop limit, translates it where the way leads through the translator. No ports, no
// clock.
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
    std::uint64_t flow;  // hash of the addresses and ports that the frame came with
    bool ipv6;           // now
    bool translated;
};

class Forwarder {
public:
    // `mtu` in bytes, of both links.
    Forwarder(Routes routes, std::optional<Translator> translator, std::size_t mtu)
        : routes_(std::move(routes)), translator_(std::move(translator)), mtu_(mtu) {}

    // An IP frame from one side to the other, without padding afterwards. Its MAC addresses are the caller's business.
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
