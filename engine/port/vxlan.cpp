// SPDX-License-Identifier: Apache-2.0
#include "port/vxlan.hpp"

#include <algorithm>

#include "frame/checksum.hpp"
#include "frame/dissect.hpp"
#include "frame/headers.hpp"

namespace dutperf {

namespace {

constexpr std::size_t ip_size(bool ipv6) { return ipv6 ? ipv6::kSize : ipv4::kSize; }

}  // namespace

std::size_t tunnelled_at(const std::uint8_t* frame, std::size_t length) {
    const Network network = network_of(frame, length);
    const bool is_ipv6 = network.type == ethernet::kTypeIpv6;
    const std::size_t udp = network.at + ip_size(is_ipv6), inner = udp + udp::kSize + vxlan::kSize;
    if ((!is_ipv6 && network.type != ethernet::kTypeIpv4) || length < inner) return 0;
    const std::uint8_t* const ip = frame + network.at;
    const bool is_plain = is_ipv6 ? ip[ipv6::kNextHeader] == kProtocolUdp
                                  : ip[0] == ipv4::kFirstByte && ip[ipv4::kProtocol] == kProtocolUdp &&
                                        (load_be16(ip + ipv4::kFragment) & ipv4::kFragmentMask) == 0;
    return is_plain && load_be16(frame + udp + udp::kDestinationPort) == udp::kVxlan ? inner : 0;
}

bool ends_tunnel(const Host& host, const std::uint8_t* frame, std::size_t length) {
    const Network network = network_of(frame, length);
    const std::uint8_t* const ip = frame + network.at;
    return answers_for(host, network.type == ethernet::kTypeIpv6 ? ip_of(read_address<Ipv6>(ip + ipv6::kDestination))
                                                                 : ip_of(read_address<Ipv4>(ip + ipv4::kDestination)));
}

FrameBytes in_tunnel_of(const Host& host, const std::uint8_t* frame, std::size_t length, const FrameBytes& inner) {
    const Network network = network_of(frame, length);
    const bool is_ipv6 = network.type == ethernet::kTypeIpv6;
    const std::size_t source = is_ipv6 ? ipv6::kSource : ipv4::kSource,
                      destination = is_ipv6 ? ipv6::kDestination : ipv4::kDestination, size = destination - source,
                      udp_at = network.at + ip_size(is_ipv6), inner_at = udp_at + udp::kSize + vxlan::kSize;
    FrameBytes made(frame, frame + inner_at);
    made.insert(made.end(), inner.begin(), inner.end());
    std::copy_n(frame + sizeof(Mac), sizeof(Mac), made.begin());
    std::ranges::copy(host.mac, made.begin() + sizeof(Mac));
    std::uint8_t *const ip = &made[network.at], *const udp = &made[udp_at];
    std::copy_n(frame + network.at + destination, size, ip + source);
    std::copy_n(frame + network.at + source, size, ip + destination);
    const auto udp_length = static_cast<std::uint16_t>(made.size() - udp_at);
    store_be16(udp + udp::kLength, udp_length);
    store_be16(udp + udp::kChecksum, 0);
    if (is_ipv6) {
        store_be16(ip + ipv6::kPayloadLength, udp_length);
        const std::uint64_t sum = pseudo_header_sum(ip + source, 2 * size, udp_length, kProtocolUdp);
        store(udp + udp::kChecksum, checksum_finish_udp(sum + checksum_add(udp, udp_length)));
    } else {
        store_be16(ip + ipv4::kLength, static_cast<std::uint16_t>(udp_length + ipv4::kSize));
        store_be16(ip + ipv4::kChecksum, 0);
        store(ip + ipv4::kChecksum, checksum_finish(checksum_add(ip, ipv4::kSize)));
    }
    return made;
}

}  // namespace dutperf
