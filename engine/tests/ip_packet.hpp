// SPDX-License-Identifier: Apache-2.0
// IP packets as hexadecimal text, and their checksums by definition, for tests of the reference DUT.
#pragma once

#include <string>
#include <vector>

#include "refdut/packet.hpp"

namespace dutperf {

using Bytes = std::vector<std::uint8_t>;

inline Bytes bytes(const std::string& hex) {
    Bytes out;
    std::string digits;
    for (const char c : hex) {
        if (c != ' ') digits += c;
    }
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
        out.push_back(static_cast<std::uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
    return out;
}

// A frame with room before it.
struct Framed {
    Bytes buffer;
    Packet packet{};

    explicit Framed(const std::string& ip_packet) : buffer(64) {
        const Bytes ip = bytes(ip_packet);
        buffer.resize(64 + ethernet::kSize);
        store_be16(&buffer[64 + ethernet::kType], ip[0] >> 4U == 6 ? ethernet::kTypeIpv6 : ethernet::kTypeIpv4);
        buffer.insert(buffer.end(), ip.begin(), ip.end());
        packet = {&buffer[64], buffer.size() - 64};
    }
    [[nodiscard]] Bytes ip() const { return {packet.ip(), packet.at + packet.length}; }
};

inline std::uint16_t transport_sum(const Bytes& ip, std::uint8_t protocol) {
    const bool six = ip[0] >> 4U == 6;
    const std::size_t header = six ? ipv6::kSize : ipv4::kSize;
    const auto size = static_cast<std::uint16_t>(ip.size() - header);
    const std::uint64_t sum = checksum_add(&ip[header], size);
    if (!six && protocol == kProtocolIcmp) return checksum_fold(sum);
    return checksum_fold(sum + (six ? pseudo_header_sum(&ip[ipv6::kSource], 32, size, protocol)
                                    : pseudo_header_sum(&ip[ipv4::kSource], 8, size, protocol)));
}

// Fills the transport checksum and, for IPv4, the header checksum, by definition and not by updating.
inline void fill_checksums(Bytes& ip, std::size_t checksum_at, std::uint8_t protocol) {
    const std::size_t header = ip[0] >> 4U == 6 ? ipv6::kSize : ipv4::kSize;
    store<std::uint16_t>(&ip[header + checksum_at], 0);
    store(&ip[header + checksum_at], static_cast<std::uint16_t>(~transport_sum(ip, protocol)));
    if (header == ipv6::kSize) return;
    store<std::uint16_t>(&ip[ipv4::kChecksum], 0);
    store(&ip[ipv4::kChecksum], checksum_finish(checksum_add(ip.data(), ipv4::kSize)));
}

}  // namespace dutperf
