// SPDX-License-Identifier: Apache-2.0
#include "refdut/datagram.hpp"

namespace dutperf {

std::optional<Datagram> read_datagram(const Packet& packet) {
    const auto length = ip_length(packet);
    if (!length) return std::nullopt;
    const std::uint8_t* ip = packet.ip();
    const bool six = packet.is_ipv6();
    if (!six && !is_whole_ipv4(ip)) return std::nullopt;
    if (ip[six ? ipv6::kNextHeader : ipv4::kProtocol] != kProtocolUdp) return std::nullopt;
    const Layout& at = layout_of(six);
    const std::uint8_t* udp = packet.at + at.transport_at();
    const std::size_t size = *length - at.ip_size();
    if (!is_whole_udp(udp, size)) return std::nullopt;
    const auto address = [six](const std::uint8_t* from) {
        return six ? ip_of(read_address<Ipv6>(from)) : ip_of(read_address<Ipv4>(from));
    };
    return Datagram{.between = {.source = address(packet.at + at.source_at()),
                                .destination = address(packet.at + at.destination_at()),
                                .source_port = load_be16(udp + udp::kSourcePort),
                                .destination_port = load_be16(udp + udp::kDestinationPort)},
                    .payload = {udp + udp::kSize, size - udp::kSize}};
}

bool has_right_checksum(const Packet& packet) {
    const Layout& at = layout_of(packet.is_ipv6());
    const std::uint8_t* udp = packet.at + at.transport_at();
    if (load<std::uint16_t>(udp + udp::kChecksum) == 0) return !packet.is_ipv6();
    return checksum_fold(udp_sum(at, packet.at, load_be16(udp + udp::kLength))) == 0xFFFF;
}

}  // namespace dutperf
