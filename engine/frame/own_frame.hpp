// SPDX-License-Identifier: Apache-2.0
// Writes frames of hosts that the engine plays, around a payload that is in place already: Ethernet without VLAN tags,
// IPv4 without options or IPv6 without extension headers, and UDP (RFC 768) or TCP (RFC 9293), with all checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "frame/address.hpp"
#include "frame/layout.hpp"

namespace dutperf {

struct Endpoints {
    IpAddress source{}, destination{};  // of the same IP version
    std::uint16_t source_port = 0, destination_port = 0;

    bool operator==(const Endpoints&) const = default;
    // Of what goes back.
    [[nodiscard]] Endpoints turned() const {
        return {.source = destination,
                .destination = source,
                .source_port = destination_port,
                .destination_port = source_port};
    }
};

struct MacPair {
    Mac source{}, destination{};

    // Of the frame that goes back to where this one came from.
    static MacPair back_from(const std::uint8_t* frame) {
        return {.source = read_address<Mac>(frame + ethernet::kDestination),
                .destination = read_address<Mac>(frame + ethernet::kSource)};
    }
};

inline constexpr const Layout& layout_of(bool ipv6) { return ipv6 ? kIpv6Layout : kIpv4Layout; }

// Where the payload of a datagram is.
inline constexpr std::size_t datagram_payload_at(bool ipv6) { return layout_of(ipv6).transport_at() + udp::kSize; }

// Writes the headers before `size` bytes of payload. Returns the length of the frame.
std::size_t write_datagram(std::uint8_t* frame, const MacPair& macs, const Endpoints& between, std::size_t size);

// The TCP header but ports and checksum.
struct SegmentHeader {
    std::uint32_t sequence = 0, acknowledgement = 0;
    std::uint8_t flags = 0;
    std::uint16_t window = 0;
    std::optional<std::uint16_t> mss = {};  // an option (RFC 9293 3.7.1)

    [[nodiscard]] std::size_t size() const { return tcp::kSize + (mss ? tcp::kMssSize : 0); }
};

// Where the payload of a segment is.
inline std::size_t segment_payload_at(bool ipv6, const SegmentHeader& header) {
    return layout_of(ipv6).transport_at() + header.size();
}

std::size_t write_segment(std::uint8_t* frame, const MacPair& macs, const Endpoints& between,
                          const SegmentHeader& header, std::size_t size);

}  // namespace dutperf
