// SPDX-License-Identifier: Apache-2.0
#include "refdut/ip_header.hpp"

namespace dutperf {

std::uint8_t traffic_class_of(const Packet& packet) {
    const std::uint8_t* ip = packet.ip();
    return packet.is_ipv6() ? static_cast<std::uint8_t>(load_be16(ip) >> 4U) : ip[ipv4::kTos];
}

void write_header(std::uint8_t* at, const HeaderFields& fields, const AddressPair<Ipv6>& addresses) {
    store_be32(at, 0x60000000U | std::uint32_t{fields.traffic_class} << 20U);
    store_be16(at + ipv6::kPayloadLength, static_cast<std::uint16_t>(fields.payload));
    at[ipv6::kNextHeader] = fields.protocol;
    at[ipv6::kHopLimit] = fields.hop_limit;
    std::memcpy(at + ipv6::kSource, addresses.data(), sizeof addresses);
}

void write_header(std::uint8_t* at, const HeaderFields& fields, const AddressPair<Ipv4>& addresses,
                  const Fragmentation& fragmentation) {
    at[0] = ipv4::kFirstByte;
    at[ipv4::kTos] = fields.traffic_class;
    store_be16(at + ipv4::kLength, static_cast<std::uint16_t>(fields.payload + ipv4::kSize));
    store_be16(at + ipv4::kIdentification, fragmentation.identification);
    store_be16(at + ipv4::kFragment, fragmentation.may_fragment ? std::uint16_t{0} : ipv4::kDontFragment);
    at[ipv4::kTtl] = fields.hop_limit;
    at[ipv4::kProtocol] = fields.protocol;
    store(at + ipv4::kChecksum, std::uint16_t{0});
    std::memcpy(at + ipv4::kSource, addresses.data(), sizeof addresses);
    store(at + ipv4::kChecksum, checksum_finish(checksum_add(at, ipv4::kSize)));
}

}  // namespace dutperf
