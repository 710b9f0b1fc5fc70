// SPDX-License-Identifier: Apache-2.0
#include "frame/own_frame.hpp"

#include <algorithm>

namespace dutperf {

namespace {

constexpr std::uint8_t kHopLimit = 64;

void write_ipv4(std::uint8_t* ip, const Endpoints& between, std::uint8_t protocol, std::size_t length) {
    std::fill_n(ip, ipv4::kSize, std::uint8_t{0});
    ip[0] = ipv4::kFirstByte;
    store_be16(ip + ipv4::kLength, static_cast<std::uint16_t>(ipv4::kSize + length));
    store_be16(ip + ipv4::kFragment, ipv4::kDontFragment);
    ip[ipv4::kTtl] = kHopLimit;
    ip[ipv4::kProtocol] = protocol;
    std::ranges::copy(between.source.ipv4(), ip + ipv4::kSource);
    std::ranges::copy(between.destination.ipv4(), ip + ipv4::kDestination);
    store(ip + ipv4::kChecksum, checksum_finish(checksum_add(ip, ipv4::kSize)));
}

void write_ipv6(std::uint8_t* ip, const Endpoints& between, std::uint8_t protocol, std::size_t length) {
    store_be32(ip, std::uint32_t{ipv6::kFirstByte} << 24U);
    store_be16(ip + ipv6::kPayloadLength, static_cast<std::uint16_t>(length));
    ip[ipv6::kNextHeader] = protocol;
    ip[ipv6::kHopLimit] = kHopLimit;
    std::ranges::copy(between.source.bytes, ip + ipv6::kSource);
    std::ranges::copy(between.destination.bytes, ip + ipv6::kDestination);
}

// Each writer knows its layout, so that all offsets are constants.
template <Layout L>
void write_network(std::uint8_t* frame, const MacPair& macs, const Endpoints& between, std::uint8_t protocol,
                   std::size_t length) {
    std::ranges::copy(macs.destination, frame + ethernet::kDestination);
    std::ranges::copy(macs.source, frame + ethernet::kSource);
    store_be16(frame + ethernet::kType, L.type());
    if constexpr (L.ipv6)
        write_ipv6(frame + L.ip_at(), between, protocol, length);
    else
        write_ipv4(frame + L.ip_at(), between, protocol, length);
}

template <Layout L>
std::size_t write_datagram_at(std::uint8_t* frame, const MacPair& macs, const Endpoints& between, std::size_t size) {
    const auto length = static_cast<std::uint16_t>(udp::kSize + size);
    write_network<L>(frame, macs, between, kProtocolUdp, length);
    std::uint8_t* udp = frame + L.transport_at();
    store_be16(udp + udp::kSourcePort, between.source_port);
    store_be16(udp + udp::kDestinationPort, between.destination_port);
    store_be16(udp + udp::kLength, length);
    store<std::uint16_t>(udp + udp::kChecksum, 0);
    store(udp + udp::kChecksum, checksum_finish_udp(udp_sum(L, frame, length)));
    return L.transport_at() + length;
}

template <Layout L>
std::size_t write_segment_at(std::uint8_t* frame, const MacPair& macs, const Endpoints& between,
                             const SegmentHeader& header, std::size_t size) {
    const std::size_t length = header.size() + size;
    write_network<L>(frame, macs, between, kProtocolTcp, length);
    std::uint8_t* tcp = frame + L.transport_at();
    std::fill_n(tcp, header.size(), std::uint8_t{0});
    store_be16(tcp + tcp::kSourcePort, between.source_port);
    store_be16(tcp + tcp::kDestinationPort, between.destination_port);
    store_be32(tcp + tcp::kSequence, header.sequence);
    store_be32(tcp + tcp::kAcknowledgement, header.acknowledgement);
    tcp[tcp::kDataOffset] = static_cast<std::uint8_t>(header.size() / 4 << 4U);
    tcp[tcp::kFlags] = header.flags;
    store_be16(tcp + tcp::kWindow, header.window);
    if (header.mss) {
        tcp[tcp::kSize] = tcp::kOptionMss;
        tcp[tcp::kSize + 1] = tcp::kMssSize;
        store_be16(tcp + tcp::kSize + 2, *header.mss);
    }
    const std::uint64_t pseudo = pseudo_header_sum(frame + L.addresses().from, L.addresses().size(),
                                                   static_cast<std::uint16_t>(length), kProtocolTcp);
    store(tcp + tcp::kChecksum, checksum_finish(pseudo + checksum_add(tcp, length)));
    return L.transport_at() + length;
}

}  // namespace

std::size_t write_datagram(std::uint8_t* frame, const MacPair& macs, const Endpoints& between, std::size_t size) {
    return between.source.is_ipv6 ? write_datagram_at<kIpv6Layout>(frame, macs, between, size)
                                  : write_datagram_at<kIpv4Layout>(frame, macs, between, size);
}

std::size_t write_segment(std::uint8_t* frame, const MacPair& macs, const Endpoints& between,
                          const SegmentHeader& header, std::size_t size) {
    return between.source.is_ipv6 ? write_segment_at<kIpv6Layout>(frame, macs, between, header, size)
                                  : write_segment_at<kIpv4Layout>(frame, macs, between, header, size);
}

}  // namespace dutperf
