// SPDX-License-Identifier: Apache-2.0
// Network address translation of UDP with a connection table (connection_table.hpp): NAT44 (RFC 3022, RFC 4787), or
// stateful NAT64 (RFC 6146) on top of the header translation of translator.hpp. The inside is on the left, or with a
// tunnel (tunnel.hpp) behind B4s, each with addresses of its own (RFC 6333 8.2). Other transports, fragments and IPv4
// options are lost as unsupported; there is no hairpinning.
#pragma once

#include <optional>

#include "refdut/connection_table.hpp"
#include "refdut/packet.hpp"
#include "refdut/translator.hpp"
#include "refdut/tunnel.hpp"

namespace dutperf {

struct NatRequest {
    OutsidePool pool;
    // NAT64: how the inside addresses IPv4 hosts; its map has a prefix only. Nothing: NAT44.
    std::optional<Translator> translator;
};

class Nat {
public:
    Nat(NatRequest request, const ConnectionProperties& properties, std::uint64_t clock_hz)
        : table_(std::move(request.pool), properties, clock_hz), translator_(std::move(request.translator)) {}

    [[nodiscard]] bool is_nat44() const { return !translator_; }

    // The IPv4 address to which a packet from the inside will go; nothing if it has none.
    [[nodiscard]] std::optional<Ipv4> remote_of(const Packet& packet) const;

    // Translates a packet from the inside or to the outside pool, as Translator::translate does. NAT44 leaves the TTL
    // to the caller. A packet that is lost creates no connection. Without a NAT64 an inside host may be behind a
    // softwire, by which `inward` tells where the packet goes.
    std::optional<Loss> outward(Packet& packet, Ticks now, Softwire softwire = 0);
    std::variant<Softwire, Loss> inward(Packet& packet, Ticks now);

    [[nodiscard]] ConnectionTable& table() { return table_; }
    [[nodiscard]] const ConnectionTable& table() const { return table_; }
    [[nodiscard]] std::uint64_t checksums_computed() const {
        return translator_ ? translator_->checksums_computed() : 0;
    }

private:
    ConnectionTable table_;
    std::optional<Translator> translator_;
};

}  // namespace dutperf
