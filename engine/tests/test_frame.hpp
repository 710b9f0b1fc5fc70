// SPDX-License-Identifier: Apache-2.0
// Complete test frames, as the transmitter would send them.
#pragma once

#include <cstdint>
#include <vector>

#include "frame/frame_template.hpp"

namespace dutperf {

using Bytes = std::vector<std::uint8_t>;

struct TestFrame {
    bool ipv6 = false;
    std::uint16_t size = 64;  // bytes incl. FCS
    TrialMark trial = 9;
    std::uint8_t stream = 0;
    std::uint64_t sequence = 0x123456789AU, stamp = 0xFEDCBA9876U;
    std::uint32_t ports = 0x02000100;  // as they stand in the frame
    std::uint16_t pair = kTagVersion;
};

inline Bytes test_frame(const TestFrame& wanted) {
    const IpPair v4{*parse_ipv4("198.18.0.2"), *parse_ipv4("198.19.0.2")},
        v6{*parse_ipv6("2001:2::2"), *parse_ipv6("2001:2:0:1000::2")};
    const FrameTemplate frame(
        {.size = wanted.size, .addresses = wanted.ipv6 ? v6 : v4}, Mac{}, Mac{},
        {.trial = wanted.trial, .stream = wanted.stream, .source_port = 1, .destination_port = 2, .pair = wanted.pair},
        {});
    Bytes bytes(frame.data(), frame.data() + frame.length());
    std::uint8_t* const udp_at = &bytes[wanted.ipv6 ? 54 : 34];
    std::uint8_t* const tag_at = udp_at + 8;
    store(udp_at, wanted.ports);
    store(tag_at + tag::kHighAt, tag_high(wanted.sequence, wanted.stamp));
    store(tag_at + tag::kLowAt, tag_low(wanted.stamp));
    const std::uint64_t sum =
        std::uint64_t{frame.udp_sum()} + frame.slots_sum() + wanted.ports + checksum_add(tag_at + tag::kHighAt, 10);
    store(udp_at + udp::kChecksum, checksum_finish_udp(sum));
    return bytes;
}

}  // namespace dutperf
