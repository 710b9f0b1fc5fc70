// SPDX-License-Identifier: Apache-2.0
#include "refdut/forwarder.hpp"

namespace dutperf {

namespace {

constexpr std::size_t kInside = 0, kOutside = 1;  // of a NAT

std::uint8_t& hop_limit(const Packet& packet) { return packet.ip()[packet.is_ipv6() ? ipv6::kHopLimit : ipv4::kTtl]; }

void decrement_hop_limit(const Packet& packet) {
    std::uint8_t* ip = packet.ip();
    const std::uint16_t before = load<std::uint16_t>(ip + ipv4::kTtl);
    --hop_limit(packet);
    if (packet.is_ipv6()) return;
    const std::uint16_t field = load<std::uint16_t>(ip + ipv4::kChecksum);
    store(ip + ipv4::kChecksum, checksum_finish(checksum_update(field, before, load<std::uint16_t>(ip + ipv4::kTtl))));
}

}  // namespace

void Forwarder::set_nat(const NatRequest& request, const ConnectionProperties& properties, std::uint64_t clock_hz) {
    nat_.reset();  // its memory first
    nat_.emplace(request, properties, clock_hz);
}

std::variant<Forwarded, Loss> Forwarder::forward(Packet& packet, std::size_t from, Ticks now) {
    const auto routed = route(packet, from);
    if (const Loss* loss = std::get_if<Loss>(&routed)) return *loss;
    return change(packet, from, std::get<Routed>(routed), now);
}

std::variant<Routed, Loss> Forwarder::route(Packet& packet, std::size_t from) const {
    const auto length = ip_length(packet);
    if (!length) return Loss::malformed;
    packet.length = kEthernetPayloadAt + *length;
    const auto exit = exit_of(packet);
    if (!exit) return Loss::not_routable;
    // RFC 8200 3: the hop limit of a packet at its destination does not matter
    if (hop_limit(packet) <= 1 && !leaves_tunnel(packet, *exit)) return Loss::hop_limit;
    if (*exit == from) return Loss::not_routable;
    const bool changes_version =
        *exit == kTranslatorExit || *exit == kTunnelExit || (*exit == kNatExit && (!nat_->is_nat44() || tunnel_));
    return Routed{.flow = flow_of(packet), .exit = *exit, .ipv6 = packet.is_ipv6() != changes_version};
}

std::variant<Forwarded, Loss> Forwarder::change(Packet& packet, std::size_t from, const Routed& routed, Ticks now) {
    const bool by_nat = concerns_nat(packet, routed.exit), to_tunnel = routed.exit == kTunnelExit;
    const Forwarded done{.flow = routed.flow,
                         .ipv6 = routed.ipv6,
                         .translated = routed.exit == kTranslatorExit || by_nat || (to_tunnel && is_aftr()),
                         .tunnelled = to_tunnel || (by_nat && is_aftr())};
    const bool was_ipv6 = packet.is_ipv6();
    if (done.translated || done.tunnelled) {
        if (const auto loss = convert(packet, from, routed.exit, now)) return *loss;
        if (exit_of(packet) != 1 - from) return Loss::not_routable;
    }
    if (packet.is_ipv6() == was_ipv6) decrement_hop_limit(packet);
    if (packet.length > kEthernetPayloadAt + mtu_) return Loss::too_long;
    return done;
}

bool Forwarder::leaves_tunnel(const Packet& packet, std::size_t exit) const {
    return exit == kTunnelExit && !tunnel_->carries(packet);
}

bool Forwarder::concerns_nat(const Packet& packet, std::size_t exit) const {
    return nat_ && exit != kTunnelExit && (exit == kNatExit || (nat_->is_nat44() && !packet.is_ipv6()));
}

// Whether packets to the source of this one would go to that exit.
bool Forwarder::comes_from(const Packet& packet, std::size_t exit) const {
    const std::uint8_t* ip = packet.ip();
    return exit == (packet.is_ipv6() ? exit_to(address_at<Ipv6>(ip + ipv6::kSource))
                                     : exit_to(address_at<Ipv4>(ip + ipv4::kSource)));
}

std::optional<Loss> Forwarder::convert(Packet& packet, std::size_t from, std::size_t exit, Ticks now) {
    if (exit == kTranslatorExit) return translate(packet);
    if (exit != kTunnelExit) return translate_as_nat(packet, from, now);
    return leaves_tunnel(packet, exit) ? decapsulate(packet, from, now) : encapsulate(packet);
}

std::optional<Loss> Forwarder::translate(Packet& packet) {
    const bool was_ipv6 = packet.is_ipv6();
    if (const auto loss = translator_->translate(packet)) return loss;
    // a CE translates what has its own address and ports only
    const bool by_rules = !was_ipv6 && !translator_->map().rules().is_empty();
    return by_rules && !comes_from(packet, kTranslatorExit) ? std::optional(Loss::wrong_source) : std::nullopt;
}

std::optional<Loss> Forwarder::translate_as_nat(Packet& packet, std::size_t from, Ticks now) {
    if (from == kInside)  // that of an AFTR is in the tunnel
        return is_aftr() ? std::optional(Loss::unsupported) : translate_outward(packet, now, 0);
    const auto softwire = nat_->inward(packet, now);
    if (const Loss* loss = std::get_if<Loss>(&softwire)) return *loss;
    if (!is_aftr()) return std::nullopt;
    decrement_hop_limit(packet);
    return tunnel_->encapsulate_to(packet, std::get<Softwire>(softwire));
}

std::optional<Loss> Forwarder::translate_outward(Packet& packet, Ticks now, Softwire softwire) {
    // before there is a connection; no hairpinning
    const auto remote = nat_->remote_of(packet);
    return remote && exit_to(*remote) == kOutside ? nat_->outward(packet, now, softwire)
                                                  : std::optional(Loss::not_routable);
}

std::optional<Loss> Forwarder::encapsulate(Packet& packet) {
    decrement_hop_limit(packet);
    if (const auto loss = tunnel_->encapsulate(packet)) return loss;
    return comes_from(packet, kTunnelExit) ? std::nullopt : std::optional(Loss::wrong_source);
}

std::optional<Loss> Forwarder::decapsulate(Packet& packet, std::size_t from, Ticks now) {
    Softwire softwire = 0;
    if (is_aftr()) {
        const auto taken = tunnel_->decapsulate_from_b4(packet);
        if (const Loss* loss = std::get_if<Loss>(&taken)) return *loss;
        softwire = std::get<Softwire>(taken);
    } else if (const auto loss = tunnel_->decapsulate(packet)) {
        return loss;
    }
    if (hop_limit(packet) <= 1) return Loss::hop_limit;
    decrement_hop_limit(packet);
    if (!is_aftr()) return std::nullopt;
    return from == kInside ? translate_outward(packet, now, softwire) : std::optional(Loss::not_routable);
}

std::optional<std::size_t> Forwarder::exit_of(const Packet& packet) const {
    const std::uint8_t* ip = packet.ip();
    return packet.is_ipv6() ? exit_to(address_at<Ipv6>(ip + ipv6::kDestination))
                            : exit_to(address_at<Ipv4>(ip + ipv4::kDestination));
}

std::optional<std::size_t> Forwarder::exit_to(const Ipv4& address) const {
    const std::size_t* exit = routes_.ipv4.find(address);
    return exit != nullptr ? std::optional(*exit) : std::nullopt;
}

std::optional<std::size_t> Forwarder::exit_to(const Ipv6& address) const {
    const std::size_t* exit = routes_.ipv6.find(address);
    return exit != nullptr ? std::optional(*exit) : std::nullopt;
}

}  // namespace dutperf
