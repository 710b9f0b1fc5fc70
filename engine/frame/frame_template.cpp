// SPDX-License-Identifier: Apache-2.0
#include "frame/frame_template.hpp"

#include <algorithm>

namespace dutperf {

namespace {

// RFC 8219 and siitperf vary bits 16-23 of an IPv4 and bits 56-63 of an IPv6 destination: the third and the eighth
// byte.
constexpr std::uint8_t kNetworkOffset4 = 2, kNetworkOffset6 = 6;

}  // namespace

FrameTemplate::FrameTemplate(const FrameSpec& spec, const Mac& source, const Mac& destination,
                             const FrameIdentity& identity, const AddressVariations& vary)
    : bytes_(spec.size - kFcsSize), layout_(spec.layout()) {
    write_ethernet(source, destination);
    write_ip(spec.addresses);
    write_udp(identity);
    write_payload(identity);
    source_ = slot(vary.source, layout_.source_at(), vary.source_offset);
    destination_ = slot(vary.destination, layout_.destination_at(), vary.destination_offset);
    sum_up();
}

void FrameTemplate::write_ethernet(const Mac& source, const Mac& destination) {
    std::ranges::copy(destination, bytes_.begin() + ethernet::kDestination);
    std::ranges::copy(source, bytes_.begin() + ethernet::kSource);
    store_be16(&bytes_[layout_.type_at()], layout_.type());
}

void FrameTemplate::write_ip(const IpPair& addresses) {
    std::uint8_t* ip = &bytes_[layout_.ip_at()];
    if (layout_.ipv6) {
        ip[0] = ipv6::kFirstByte;
        store_be16(ip + ipv6::kPayloadLength, static_cast<std::uint16_t>(layout_.ip_length(udp_length())));
        ip[ipv6::kNextHeader] = kProtocolUdp;
        ip[ipv6::kHopLimit] = kTestTtl;
        std::ranges::copy(std::get<Ipv6>(addresses.source), ip + ipv6::kSource);
        std::ranges::copy(std::get<Ipv6>(addresses.destination), ip + ipv6::kDestination);
        return;
    }
    ip[0] = ipv4::kFirstByte;
    store_be16(ip + ipv4::kLength, static_cast<std::uint16_t>(layout_.ip_length(udp_length())));
    // "Don't fragment" keeps a translator from adding a fragment header (RFC 7915 4): the IPv6 frame is then exactly 20
    // bytes longer.
    store_be16(ip + ipv4::kFragment, ipv4::kDontFragment);
    ip[ipv4::kTtl] = kTestTtl;
    ip[ipv4::kProtocol] = kProtocolUdp;
    std::ranges::copy(std::get<Ipv4>(addresses.source), ip + ipv4::kSource);
    std::ranges::copy(std::get<Ipv4>(addresses.destination), ip + ipv4::kDestination);
}

void FrameTemplate::write_udp(const FrameIdentity& identity) {
    std::uint8_t* udp = &bytes_[layout_.transport_at()];
    store_be16(udp + udp::kSourcePort, identity.source_port);
    store_be16(udp + udp::kDestinationPort, identity.destination_port);
    store_be16(udp + udp::kLength, udp_length());
}

void FrameTemplate::write_payload(const FrameIdentity& identity) {
    for (std::size_t i = layout_.tag_at(); i < bytes_.size(); ++i)
        bytes_[i] = static_cast<std::uint8_t>(i - layout_.tag_at());  // RFC 2544 C.2.6.4
    write_tag(&bytes_[layout_.tag_at()], identity.trial, identity.stream, identity.pair);
}

AddressSlot FrameTemplate::slot(AddressVariation vary, std::size_t address_at, std::uint8_t offset) const {
    if (vary == AddressVariation::network) offset = layout_.ipv6 ? kNetworkOffset6 : kNetworkOffset4;
    const auto at = static_cast<std::uint16_t>(address_at + offset);
    const std::uint16_t now = load_be16(&bytes_[at]);
    switch (vary) {
        case AddressVariation::none: return {.at = at, .fixed = now, .mask = 0, .shift = 0};
        case AddressVariation::word: return {.at = at, .fixed = 0, .mask = 0xFFFF, .shift = 0};
        case AddressVariation::network:
            // the third byte of four is the upper half of its word, the eighth of sixteen the lower half
            if (layout_.ipv6)
                return {.at = at, .fixed = static_cast<std::uint16_t>(now & 0xFF00U), .mask = 0xFF, .shift = 0};
            return {.at = at, .fixed = static_cast<std::uint16_t>(now & 0x00FFU), .mask = 0xFF, .shift = 8};
    }
    return {};
}

void FrameTemplate::sum_up() {
    std::vector<std::uint8_t> fixed = bytes_;
    for (const AddressSlot& slot : {source_, destination_}) {
        slots_sum_ += checksum_word(load<std::uint16_t>(&fixed[slot.at]), slot.at_odd_offset());
        store<std::uint16_t>(&fixed[slot.at], 0);
    }
    store<std::uint32_t>(&fixed[layout_.transport_at()], 0);  // the ports
    udp_sum_ = checksum_fold(dutperf::udp_sum(layout_, fixed.data(), udp_length()));
    if (layout_.ipv6) return;
    ip_sum_ = checksum_fold(dutperf::ip_sum(layout_, fixed.data()));
    // if no address varies, the IPv4 checksum is constant and comes from the template
    store(&bytes_[layout_.ip_at() + ipv4::kChecksum], checksum_finish(dutperf::ip_sum(layout_, bytes_.data())));
}

}  // namespace dutperf
