// SPDX-License-Identifier: Apache-2.0
#include "refdut/nat.hpp"

#include <algorithm>
#include <span>

namespace dutperf {

namespace {

// Why a packet cannot be translated; nothing if it is a whole UDP packet.
std::optional<Loss> loss_of(const Packet& packet) {
    const std::uint8_t* ip = packet.ip();
    const bool six = packet.is_ipv6();
    if (!six && !is_whole_ipv4(ip)) return Loss::unsupported;
    if (ip[six ? ipv6::kNextHeader : ipv4::kProtocol] != kProtocolUdp) return Loss::unsupported;
    const std::size_t header = six ? ipv6::kSize : ipv4::kSize, size = packet.length - kEthernetPayloadAt - header;
    if (!is_whole_udp(ip + header, size)) return Loss::malformed;
    // RFC 8200 8.1: IPv6 requires a checksum
    return six && load<std::uint16_t>(ip + header + udp::kChecksum) == 0 ? std::optional(Loss::malformed)
                                                                         : std::nullopt;
}

std::uint8_t* udp_of(const Packet& packet) { return packet.ip() + (packet.is_ipv6() ? ipv6::kSize : ipv4::kSize); }

Endpoint endpoint_at(const Packet& packet, std::size_t address_at_offset, std::size_t port_at) {
    return {address_at<Ipv4>(packet.ip() + address_at_offset), load_be16(udp_of(packet) + port_at)};
}

// The number of the softwire is in the first four bytes.
InsideEndpoint inside_of(const Endpoint& endpoint, Softwire softwire) {
    InsideEndpoint inside{.address = {}, .port = endpoint.port};
    store_be32(inside.address.data(), softwire);
    std::ranges::copy(endpoint.address, inside.address.end() - sizeof(Ipv4));
    return inside;
}

Endpoint ipv4_of(const InsideEndpoint& inside) {
    Endpoint endpoint{.address = {}, .port = inside.port};
    std::ranges::copy(std::span(inside.address).last(sizeof(Ipv4)), endpoint.address.begin());
    return endpoint;
}

Softwire softwire_of(const InsideEndpoint& inside) { return load_be32(inside.address.data()); }

// Replaces bytes that the UDP checksum covers. A missing checksum stays missing (RFC 768).
void replace(std::uint8_t* udp, std::uint8_t* at, const std::uint8_t* by, std::size_t size) {
    const std::uint16_t field = load<std::uint16_t>(udp + udp::kChecksum);
    const std::uint64_t sum = checksum_update(field, checksum_add(at, size), checksum_add(by, size));
    if (field != 0) store(udp + udp::kChecksum, checksum_finish_udp(sum));
    std::memcpy(at, by, size);
}

void replace_port(std::uint8_t* udp, std::size_t at, std::uint16_t port) {
    const std::uint16_t by = swap16(port);
    replace(udp, udp + at, reinterpret_cast<const std::uint8_t*>(&by), sizeof by);
}

// NAT44: an address of the IPv4 header and a port.
void replace_endpoint(const Packet& packet, std::size_t address_at_offset, std::size_t port_at, const Endpoint& by) {
    std::uint8_t *ip = packet.ip(), *udp = udp_of(packet), *at = ip + address_at_offset;
    const std::uint16_t field = load<std::uint16_t>(ip + ipv4::kChecksum);
    const std::uint64_t sum =
        checksum_update(field, checksum_add(at, sizeof(Ipv4)), checksum_add(by.address.data(), sizeof(Ipv4)));
    store(ip + ipv4::kChecksum, checksum_finish(sum));
    replace(udp, at, by.address.data(), sizeof(Ipv4));
    replace_port(udp, port_at, by.port);
}

}  // namespace

std::optional<Ipv4> Nat::remote_of(const Packet& packet) const {
    if (!packet.is_ipv6()) return address_at<Ipv4>(packet.ip() + ipv4::kDestination);
    return translator_ ? translator_->map().to_ipv4(address_at<Ipv6>(packet.ip() + ipv6::kDestination)) : std::nullopt;
}

std::optional<Loss> Nat::outward(Packet& packet, Ticks now, Softwire softwire) {
    if (const auto loss = loss_of(packet)) return loss;
    const auto remote_address = remote_of(packet);
    if (!remote_address) return Loss::not_routable;
    const Endpoint remote{*remote_address, load_be16(udp_of(packet) + udp::kDestinationPort)};
    const std::uint16_t port = load_be16(udp_of(packet) + udp::kSourcePort);
    const InsideEndpoint inside = translator_
                                      ? InsideEndpoint{address_at<Ipv6>(packet.ip() + ipv6::kSource), port}
                                      : inside_of({address_at<Ipv4>(packet.ip() + ipv4::kSource), port}, softwire);
    const auto found = table_.outward(inside, remote, now);
    if (const Loss* loss = std::get_if<Loss>(&found)) return *loss;
    const Endpoint& outside = std::get<Endpoint>(found);
    if (!translator_) {
        replace_endpoint(packet, ipv4::kSource, udp::kSourcePort, outside);
        return std::nullopt;
    }
    replace_port(udp_of(packet), udp::kSourcePort, outside.port);
    return translator_->to_ipv4(packet, {outside.address, remote.address});
}

std::variant<Softwire, Loss> Nat::inward(Packet& packet, Ticks now) {
    constexpr Softwire kNone = 0;
    if (const auto loss = loss_of(packet)) return *loss;
    const Endpoint remote = endpoint_at(packet, ipv4::kSource, udp::kSourcePort);
    const auto inside = table_.inward(endpoint_at(packet, ipv4::kDestination, udp::kDestinationPort), remote, now);
    if (!inside) return Loss::no_connection;
    if (!translator_) {
        replace_endpoint(packet, ipv4::kDestination, udp::kDestinationPort, ipv4_of(*inside));
        return softwire_of(*inside);
    }
    const auto address = translator_->map().to_ipv6(remote.address);
    if (!address) return Loss::not_routable;
    replace_port(udp_of(packet), udp::kDestinationPort, inside->port);
    if (const auto loss = translator_->to_ipv6(packet, {*address, inside->address})) return *loss;
    return kNone;
}

}  // namespace dutperf
