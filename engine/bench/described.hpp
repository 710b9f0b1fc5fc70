// SPDX-License-Identifier: Apache-2.0
// Described frames of the benchmarks: the compositions of benchmarks/cases.py.
#pragma once

#include "bench/bed.hpp"
#include "trial/described_source.hpp"

namespace dutperf {

// UDP behind headers that a benchmark names: `ip_at` is where its IP header begins, `ip` how long that is, in IPv6 with
// destination options.
inline DescribedFrame udp_frame(std::uint16_t size, std::size_t ip_at, std::size_t ip, bool ipv6) {
    DescribedFrame frame;
    frame.size = size;
    constexpr std::size_t kUdp = 8;
    constexpr std::uint8_t kDestinationOptions = 60;
    const std::size_t udp_at = ip_at + ip, end = frame.length();
    frame.head.resize(udp_at + kUdp);
    if (ip_at > kEthernetPayloadAt) store_be16(&frame.head[ethernet::kType], 0x8100);
    store_be16(&frame.head[ip_at - 2], (ipv6 ? kIpv6Layout : kIpv4Layout).type());
    frame.head[ip_at] = ipv6 ? 0x60 : 0x45;
    frame.head[ip_at + (ipv6 ? 6 : 9)] = ipv6 ? kDestinationOptions : kProtocolUdp;
    if (ipv6) frame.head[ip_at + 40] = kProtocolUdp;
    const std::size_t length_at = ip_at + (ipv6 ? 4 : 2), counted_from = ipv6 ? ip_at + 40 : ip_at;
    store_be16(&frame.head[length_at], static_cast<std::uint16_t>(end - counted_from));
    store_be16(&frame.head[udp_at + 4], static_cast<std::uint16_t>(end - udp_at));
    frame.tag_at = static_cast<std::uint16_t>(udp_at + kUdp);
    const std::size_t addresses_at = ip_at + (ipv6 ? 8 : 12), addresses = ipv6 ? 32 : 8;
    if (!ipv6) frame.checksums.push_back({.at = static_cast<std::uint16_t>(ip_at + 10), .covers = {{ip_at, udp_at}}});
    frame.checksums.push_back({.at = static_cast<std::uint16_t>(udp_at + 6),
                               .covers = {{addresses_at, addresses_at + addresses}, {udp_at, end}},
                               .plus = static_cast<std::uint32_t>(17 + end - udp_at),
                               .zero_as_ones = true});
    return frame;
}

inline DescribedFrame plain(std::uint16_t size) { return udp_frame(size, kEthernetPayloadAt, 20, false); }

inline std::vector<DescribedFrame> vlan() {
    return {udp_frame(68, kEthernetPayloadAt + ethernet::kVlanTagSize, 20, false)};
}
inline std::vector<DescribedFrame> extension() { return {udp_frame(92, kEthernetPayloadAt, 48, true)}; }
inline std::vector<DescribedFrame> imix() { return {plain(64), plain(594), plain(1518)}; }

inline DescribedFrames made_of(const std::vector<DescribedFrame>& frames, const KindOrder& order) {
    std::vector<DescribedKind> kinds;
    for (const DescribedFrame& frame : frames) {
        const auto stream = static_cast<std::uint8_t>(kinds.size() << kStreamKindShift);
        kinds.emplace_back(
            DescribedTemplate(
                frame, {.source = {}, .destination = {}, .trial = 0, .stream = stream, .seed = 1, .flow_seed = 1}),
            next_generation());
    }
    return {session().bed().frame_pools[0], std::move(kinds), order};
}

inline const KindOrder& imix_in_turn() {
    static const KindOrder order(std::vector<std::uint8_t>{0, 1, 0, 1, 0, 0, 2, 0, 1, 0, 1, 0});
    return order;
}

}  // namespace dutperf
