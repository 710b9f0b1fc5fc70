// SPDX-License-Identifier: Apache-2.0
#include "refdut/tunnel.hpp"

namespace dutperf {

namespace {

constexpr std::uint8_t kHopLimit = 64;  // of the outer header
constexpr std::size_t kSource = 0, kDestination = 1;

AddressPair<IpAddress> addresses_of(const Packet& packet) {
    const std::uint8_t* ip = packet.ip();
    if (packet.is_ipv6())
        return {ip_of(address_at<Ipv6>(ip + ipv6::kSource)), ip_of(address_at<Ipv6>(ip + ipv6::kDestination))};
    return {ip_of(address_at<Ipv4>(ip + ipv4::kSource)), ip_of(address_at<Ipv4>(ip + ipv4::kDestination))};
}

void set_version(Packet& packet, bool six) {
    store_be16(packet.at + ethernet::kType, six ? ethernet::kTypeIpv6 : ethernet::kTypeIpv4);
}

}  // namespace

std::optional<IpAddress> Tunnel::end_of(const IpAddress& address, std::uint16_t port) const {
    if (over_ipv6_) {
        const auto end = ends_.to_ipv6(address.ipv4(), port);
        return end ? std::optional(ip_of(*end)) : std::nullopt;
    }
    const auto end = ends_.to_ipv4(address.bytes);
    return end ? std::optional(ip_of(*end)) : std::nullopt;
}

std::optional<Loss> Tunnel::encapsulate(Packet& packet) const {
    const auto ports = ports_of(packet);
    if (!ports && ends_.rules().needs_ports()) return Loss::unsupported;
    const auto [from, to] = addresses_of(packet);
    const auto source = end_of(from, ports.value_or(Ports{}).source);
    if (!source) return Loss::wrong_source;
    const auto destination = end_of(to, ports.value_or(Ports{}).destination);
    if (!destination) return Loss::not_routable;
    wrap(packet, *source, *destination);
    return std::nullopt;
}

std::optional<Loss> Tunnel::decapsulate(Packet& packet) const {
    const auto outer = addresses_of(packet);
    if (const auto loss = take_out(packet)) return loss;
    const auto ports = ports_of(packet);
    if (!ports && ends_.rules().needs_ports()) return Loss::unsupported;
    const auto [from, to] = addresses_of(packet);
    if (end_of(from, ports.value_or(Ports{}).source) != outer[kSource]) return Loss::wrong_source;
    if (end_of(to, ports.value_or(Ports{}).destination) != outer[kDestination]) return Loss::wrong_destination;
    return std::nullopt;
}

std::optional<Loss> Tunnel::encapsulate_to(Packet& packet, Softwire softwire) const {
    const auto source = end_of(addresses_of(packet)[kSource], 0);
    if (!source) return Loss::not_routable;
    wrap(packet, *source, ip_of(b4s_[softwire - 1]));
    return std::nullopt;
}

std::variant<Softwire, Loss> Tunnel::decapsulate_from_b4(Packet& packet) {
    const Ipv6 b4 = address_at<Ipv6>(packet.ip() + ipv6::kSource);
    if (const auto loss = take_out(packet)) return *loss;
    const auto softwire = softwire_from(b4);
    if (!softwire) return Loss::table_full;
    return *softwire;
}

std::optional<Softwire> Tunnel::softwire_from(const Ipv6& b4) {
    const auto known = softwires_.find(b4);
    if (known != softwires_.end()) return known->second;
    if (b4s_.size() == kMostSoftwires) return std::nullopt;
    b4s_.push_back(b4);
    return softwires_[b4] = static_cast<Softwire>(b4s_.size());
}

// Removes the outer header, if there is a whole packet of the other version behind it.
std::optional<Loss> Tunnel::take_out(Packet& packet) const {
    const std::uint8_t* ip = packet.ip();
    if (!over_ipv6_ && !is_whole_ipv4(ip)) return Loss::unsupported;
    const bool carried = over_ipv6_ ? ip[ipv6::kNextHeader] == kProtocolIpv4 : ip[ipv4::kProtocol] == kProtocolIpv6;
    if (!carried) return Loss::unsupported;
    const std::size_t outer = over_ipv6_ ? ipv6::kSize : ipv4::kSize;
    packet.at += outer;
    packet.length -= outer;
    set_version(packet, !over_ipv6_);
    const auto length = ip_length(packet);
    if (!length) return Loss::malformed;
    packet.length = kEthernetPayloadAt + *length;
    return std::nullopt;
}

void Tunnel::wrap(Packet& packet, const IpAddress& source, const IpAddress& destination) const {
    const HeaderFields fields{.traffic_class = traffic_class_of(packet),
                              .hop_limit = kHopLimit,
                              .protocol = over_ipv6_ ? kProtocolIpv4 : kProtocolIpv6,
                              .payload = packet.length - kEthernetPayloadAt};
    const std::size_t outer = over_ipv6_ ? ipv6::kSize : ipv4::kSize;
    packet.at -= outer;
    packet.length += outer;
    set_version(packet, over_ipv6_);
    if (over_ipv6_) return write_header(packet.ip(), fields, {source.bytes, destination.bytes});
    write_header(packet.ip(), fields, {source.ipv4(), destination.ipv4()},
                 {.identification = 0, .may_fragment = false});
}

}  // namespace dutperf
