// SPDX-License-Identifier: Apache-2.0
#include "refdut/translator.hpp"

#include <algorithm>
#include <array>

namespace dutperf {

namespace {

constexpr std::size_t kLargestUnfragmented = 1260;  // bytes, RFC 7915 5.1: longer IPv4 packets keep "don't fragment"

// A transport header that is being translated, with both address pairs in header byte order.
struct Transport {
    std::uint8_t* at;
    std::size_t size;  // with the payload
    const std::uint8_t *addresses4, *addresses6;
    bool to_ipv6;

    [[nodiscard]] std::uint64_t sum4() const { return checksum_add(addresses4, 2 * sizeof(Ipv4)); }
    [[nodiscard]] std::uint64_t sum6() const { return checksum_add(addresses6, 2 * sizeof(Ipv6)); }
    [[nodiscard]] std::uint64_t update(std::size_t checksum_at) const {
        const std::uint16_t field = load<std::uint16_t>(at + checksum_at);
        return to_ipv6 ? checksum_update(field, sum4(), sum6()) : checksum_update(field, sum6(), sum4());
    }
};

std::optional<Loss> update_udp(const Transport& udp) {
    store(udp.at + udp::kChecksum, checksum_finish_udp(udp.update(udp::kChecksum)));
    return std::nullopt;
}

std::optional<Loss> update_tcp(const Transport& tcp) {
    if (tcp.size < tcp::kSize) return Loss::malformed;
    store(tcp.at + tcp::kChecksum, checksum_finish(tcp.update(tcp::kChecksum)));
    return std::nullopt;
}

// RFC 7915 4.2 and 5.2: the type changes, and only ICMPv6 has a pseudo-header.
std::optional<Loss> update_echo(const Transport& echo) {
    struct Types {
        std::uint8_t icmp4, icmp6;
    };
    static constexpr std::array<Types, 2> kTypes{
        {{icmp::kEchoRequest, icmp::kEchoRequest6}, {icmp::kEchoReply, icmp::kEchoReply6}}};
    if (echo.size < icmp::kSize) return Loss::malformed;
    const auto* types = std::ranges::find(kTypes, echo.at[icmp::kType],
                                          [&](const Types& one) { return echo.to_ipv6 ? one.icmp4 : one.icmp6; });
    if (types == kTypes.end()) return Loss::unsupported;
    const std::uint64_t pseudo_header =
        pseudo_header_sum(echo.addresses6, 2 * sizeof(Ipv6), static_cast<std::uint16_t>(echo.size), kProtocolIcmpv6);
    const std::uint64_t before = load<std::uint16_t>(echo.at) + (echo.to_ipv6 ? 0 : pseudo_header);
    echo.at[icmp::kType] = echo.to_ipv6 ? types->icmp6 : types->icmp4;
    const std::uint64_t after = load<std::uint16_t>(echo.at) + (echo.to_ipv6 ? pseudo_header : 0);
    store(echo.at + icmp::kChecksum,
          checksum_finish(checksum_update(load<std::uint16_t>(echo.at + icmp::kChecksum), before, after)));
    return std::nullopt;
}

std::optional<Loss> update(const Transport& transport, std::uint8_t protocol) {
    switch (protocol) {
        case kProtocolUdp: return update_udp(transport);
        case kProtocolTcp: return update_tcp(transport);
        case kProtocolIcmp:
        case kProtocolIcmpv6: return update_echo(transport);
        default: return Loss::unsupported;
    }
}

template <class Address>
const std::uint8_t* bytes_of(const AddressPair<Address>& pair) {
    return pair[0].data();
}

void write_type(Packet& packet, std::uint16_t type) { store_be16(packet.at + ethernet::kType, type); }

}  // namespace

std::optional<Loss> Translator::translate(Packet& packet) {
    const auto ports = ports_of(packet);
    if (!ports && map_.rules().needs_ports()) return Loss::unsupported;
    return packet.is_ipv6() ? to_ipv4(packet, ports.value_or(Ports{})) : to_ipv6(packet, ports.value_or(Ports{}));
}

std::optional<Loss> Translator::to_ipv4(Packet& packet, const Ports& ports) {
    const std::uint8_t* ip = packet.ip();
    const AddressPair<Ipv6> old{address_at<Ipv6>(ip + ipv6::kSource), address_at<Ipv6>(ip + ipv6::kDestination)};
    const auto source = map_.to_ipv4(old[0]), destination = map_.to_ipv4(old[1]);
    if (!source || !destination) return Loss::not_routable;
    if (!map_.rules().is_empty()) {
        // RFC 7599 8.2, 8.3: an address must be the one that follows from the IPv4 address and the port
        if (map_.to_ipv6(*source, ports.source) != old[0]) return Loss::wrong_source;
        if (map_.to_ipv6(*destination, ports.destination) != old[1]) return Loss::wrong_destination;
    }
    return to_ipv4(packet, {*source, *destination});
}

std::optional<Loss> Translator::to_ipv6(Packet& packet, const Ports& ports) {
    const std::uint8_t* ip = packet.ip();
    if (!is_whole_ipv4(ip)) return Loss::unsupported;
    const auto from = address_at<Ipv4>(ip + ipv4::kSource), to = address_at<Ipv4>(ip + ipv4::kDestination);
    const auto source = map_.to_ipv6(from, ports.source), destination = map_.to_ipv6(to, ports.destination);
    if (!source && map_.rules().cover(from)) return Loss::wrong_source;
    return source && destination ? to_ipv6(packet, {*source, *destination}) : std::optional(Loss::not_routable);
}

std::optional<Loss> Translator::to_ipv6(Packet& packet, const AddressPair<Ipv6>& addresses) {
    std::uint8_t* ip = packet.ip();
    if (!is_whole_ipv4(ip)) return Loss::unsupported;
    const AddressPair<Ipv4> old{address_at<Ipv4>(ip + ipv4::kSource), address_at<Ipv4>(ip + ipv4::kDestination)};
    const Transport transport{ip + ipv4::kSize, load_be16(ip + ipv4::kLength) - ipv4::kSize, bytes_of(old),
                              bytes_of(addresses), true};
    const std::uint8_t protocol = ip[ipv4::kProtocol], tos = ip[ipv4::kTos], hop_limit = ip[ipv4::kTtl];
    if (protocol == kProtocolIcmpv6) return Loss::unsupported;
    if (protocol == kProtocolUdp && !is_whole_udp(transport.at, transport.size)) return Loss::malformed;
    if (protocol == kProtocolUdp && load<std::uint16_t>(transport.at + udp::kChecksum) == 0) {
        if (zero_checksum_ == ZeroChecksum::drop) return Loss::unsupported;
        const std::uint64_t pseudo_header = pseudo_header_sum(bytes_of(addresses), sizeof addresses,
                                                              static_cast<std::uint16_t>(transport.size), kProtocolUdp);
        store(transport.at + udp::kChecksum,
              checksum_finish_udp(pseudo_header + checksum_add(transport.at, transport.size)));
        ++checksums_computed_;
    } else if (const auto loss = update(transport, protocol)) {
        return loss;
    }
    packet.at -= kTranslationGrowth;
    packet.length += kTranslationGrowth;
    write_type(packet, ethernet::kTypeIpv6);
    write_header(packet.ip(),
                 {.traffic_class = tos,
                  .hop_limit = static_cast<std::uint8_t>(hop_limit - 1),
                  .protocol = protocol == kProtocolIcmp ? kProtocolIcmpv6 : protocol,
                  .payload = transport.size},
                 addresses);
    return std::nullopt;
}

std::optional<Loss> Translator::to_ipv4(Packet& packet, const AddressPair<Ipv4>& addresses) {
    std::uint8_t* ip = packet.ip();
    const AddressPair<Ipv6> old{address_at<Ipv6>(ip + ipv6::kSource), address_at<Ipv6>(ip + ipv6::kDestination)};
    const Transport transport{ip + ipv6::kSize, load_be16(ip + ipv6::kPayloadLength), bytes_of(addresses),
                              bytes_of(old), false};
    const std::uint8_t protocol = ip[ipv6::kNextHeader], hop_limit = ip[ipv6::kHopLimit];
    const std::uint8_t traffic_class = traffic_class_of(packet);
    if (protocol == kProtocolIcmp) return Loss::unsupported;
    const bool udp_checksum_missing = protocol == kProtocolUdp && transport.size >= udp::kSize &&
                                      load<std::uint16_t>(transport.at + udp::kChecksum) == 0;
    if (udp_checksum_missing || (protocol == kProtocolUdp && !is_whole_udp(transport.at, transport.size)))
        return Loss::malformed;
    if (const auto loss = update(transport, protocol)) return loss;
    packet.at += kTranslationGrowth;
    packet.length -= kTranslationGrowth;
    write_type(packet, ethernet::kTypeIpv4);
    // what routers may fragment needs its own identification
    const bool may_fragment = transport.size + ipv4::kSize <= kLargestUnfragmented;
    write_header(packet.ip(),
                 {.traffic_class = traffic_class,
                  .hop_limit = static_cast<std::uint8_t>(hop_limit - 1),
                  .protocol = protocol == kProtocolIcmpv6 ? kProtocolIcmp : protocol,
                  .payload = transport.size},
                 addresses,
                 {.identification = may_fragment ? identification_++ : std::uint16_t{0}, .may_fragment = may_fragment});
    return std::nullopt;
}

}  // namespace dutperf
