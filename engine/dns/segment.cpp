// SPDX-License-Identifier: Apache-2.0
#include "dns/segment.hpp"

namespace dutperf::dns {

namespace {

// The option in a segment with SYN (RFC 9293 3.7.1).
std::optional<std::uint16_t> mss_in(Bytes options) {
    while (options.size() >= 2 && options[0] != tcp::kOptionEnd) {
        const std::size_t size = options[0] == tcp::kOptionNothing ? 1 : options[1];
        if (size == 0 || size > options.size()) return std::nullopt;
        if (options[0] == tcp::kOptionMss && size == tcp::kMssSize) return load_be16(&options[2]);
        options = options.subspan(size);
    }
    return std::nullopt;
}

}  // namespace

std::optional<Segment> read_segment(Bytes frame) {
    const auto packet = ip_payload(frame, kProtocolTcp);
    if (!packet || packet->bytes.size() < tcp::kSize) return std::nullopt;
    const Bytes tcp = packet->bytes;
    const std::size_t header = 4 * std::size_t{static_cast<std::uint8_t>(tcp[tcp::kDataOffset] >> 4U)};
    const bool is_whole = packet->has_right_lengths && header >= tcp::kSize && header <= tcp.size();
    Segment read{.between = packet->endpoints(), .payload = {}};
    if (!is_whole) return read;
    read.checksum = packet->checksum(kProtocolTcp, tcp::kChecksum);
    read.sequence = load_be32(&tcp[tcp::kSequence]);
    read.acknowledgement = load_be32(&tcp[tcp::kAcknowledgement]);
    read.flags = tcp[tcp::kFlags];
    read.window = load_be16(&tcp[tcp::kWindow]);
    if (read.is(tcp::kSyn)) read.mss = mss_in(tcp.subspan(tcp::kSize, header - tcp::kSize));
    read.payload = tcp.subspan(header);
    return read;
}

}  // namespace dutperf::dns
