// SPDX-License-Identifier: Apache-2.0
#include "refdut/forwarder.hpp"

namespace dutperf {

namespace {

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
    if (hop_limit(packet) <= 1) return Loss::hop_limit;
    if (*exit == from) return Loss::not_routable;
    const bool changes_version = *exit == kTranslatorExit || (*exit == kNatExit && !nat_->is_nat44());
    return Routed{.flow = flow_of(packet), .exit = *exit, .ipv6 = packet.is_ipv6() != changes_version};
}

std::variant<Forwarded, Loss> Forwarder::change(Packet& packet, std::size_t from, const Routed& routed, Ticks now) {
    const bool is_translated = routed.exit == kTranslatorExit || concerns_nat(packet, routed.exit);
    const bool was_ipv6 = packet.is_ipv6();
    if (is_translated) {
        if (const auto loss = translate(packet, from, routed.exit, now)) return *loss;
        if (exit_of(packet) != 1 - from) return Loss::not_routable;
    }
    if (packet.is_ipv6() == was_ipv6) decrement_hop_limit(packet);
    if (packet.length > kEthernetPayloadAt + mtu_) return Loss::too_long;
    return Forwarded{.flow = routed.flow, .ipv6 = packet.is_ipv6(), .translated = is_translated};
}

bool Forwarder::concerns_nat(const Packet& packet, std::size_t exit) const {
    return nat_ && (exit == kNatExit || (nat_->is_nat44() && !packet.is_ipv6()));
}

std::optional<Loss> Forwarder::translate(Packet& packet, std::size_t from, std::size_t exit, Ticks now) {
    constexpr std::size_t kInside = 0, kOutside = 1;
    if (exit == kTranslatorExit) return translator_->translate(packet);
    if (from != kInside) return nat_->inward(packet, now);
    // before there is a connection; no hairpinning
    const auto remote = nat_->remote_of(packet);
    return remote && exit_to(*remote) == kOutside ? nat_->outward(packet, now) : std::optional(Loss::not_routable);
}

std::optional<std::size_t> Forwarder::exit_of(const Packet& packet) const {
    const std::uint8_t* ip = packet.ip();
    if (!packet.is_ipv6()) return exit_to(address_at<Ipv4>(ip + ipv4::kDestination));
    const std::size_t* exit = routes_.ipv6.find(address_at<Ipv6>(ip + ipv6::kDestination));
    return exit != nullptr ? std::optional(*exit) : std::nullopt;
}

std::optional<std::size_t> Forwarder::exit_to(const Ipv4& address) const {
    const std::size_t* exit = routes_.ipv4.find(address);
    return exit != nullptr ? std::optional(*exit) : std::nullopt;
}

}  // namespace dutperf
