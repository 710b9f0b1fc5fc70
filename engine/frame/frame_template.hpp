// SPDX-License-Identifier: Apache-2.0
// A test frame that is built once, with the offsets of the fields that vary from frame to frame (RFC 2544 C.2.6.4, RFC
// 4814 4) and checksum sums of the rest. To get a frame's checksum, only the varying fields are added; there is no pass
// over the frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "frame/address.hpp"
#include "frame/checksum.hpp"
#include "frame/layout.hpp"

namespace dutperf {

inline constexpr std::uint8_t kTestTtl = 10;  // RFC 2544 C.2.6.4

struct IpPair {
    std::variant<Ipv4, Ipv6> source, destination;  // both of the same IP version
};

struct FrameSpec {
    std::uint16_t size = kMinFrameSize;  // bytes incl. FCS
    IpPair addresses;

    [[nodiscard]] bool is_ipv6() const { return std::holds_alternative<Ipv6>(addresses.source); }
    [[nodiscard]] const Layout& layout() const { return is_ipv6() ? kIpv6Layout : kIpv4Layout; }
};

// 16 bits of an address that vary. They hold `fixed | (value & mask) << shift`, which covers a single varying byte too.
struct AddressSlot {
    std::uint16_t at = 0;  // bytes from the start of the frame
    std::uint16_t fixed = 0;
    std::uint16_t mask = 0xFFFF;
    std::uint8_t shift = 0;

    [[nodiscard]] Lanes words(Lanes values) const {
        return swap16(fixed | ((values & mask) << shift));
    }  // in memory order
    [[nodiscard]] bool at_odd_offset() const { return (at & 1U) != 0; }
};

// Which part of the source and destination addresses varies. Offsets are bytes from the start of the address.
enum class AddressVariation : std::uint8_t { none, network, word };
struct AddressVariations {
    AddressVariation source = AddressVariation::none;
    AddressVariation destination = AddressVariation::none;
    std::uint8_t source_offset = 0;       // used for `word`
    std::uint8_t destination_offset = 0;  // used for `word`
};

struct FrameIdentity {
    TrialMark trial;
    std::uint8_t stream;
    std::uint16_t source_port;  // of the template; overwritten where ports vary
    std::uint16_t destination_port;
    std::uint16_t pair = kTagVersion;  // of paths: see PathMark
};

class FrameTemplate {
public:
    FrameTemplate(const FrameSpec& spec, const Mac& source, const Mac& destination, const FrameIdentity& identity,
                  const AddressVariations& vary);

    [[nodiscard]] const std::uint8_t* data() const { return bytes_.data(); }
    [[nodiscard]] std::uint16_t length() const { return static_cast<std::uint16_t>(bytes_.size()); }  // without FCS
    [[nodiscard]] const Layout& layout() const { return layout_; }
    [[nodiscard]] const AddressSlot& source_slot() const { return source_; }
    [[nodiscard]] const AddressSlot& destination_slot() const { return destination_; }

    // Sums without the fields that may vary: the ports, the last ten bytes of the tag and both address slots.
    [[nodiscard]] std::uint32_t udp_sum() const { return udp_sum_; }
    [[nodiscard]] std::uint32_t ip_sum() const { return ip_sum_; }
    // The contribution of both address slots of the template to the UDP checksum.
    [[nodiscard]] std::uint32_t slots_sum() const { return slots_sum_; }
    // Both ports of the template: the first 32 bits of the UDP header.
    [[nodiscard]] std::uint32_t ports() const { return load<std::uint32_t>(bytes_.data() + layout_.transport_at()); }

private:
    void write_ethernet(const Mac& source, const Mac& destination);
    void write_ip(const IpPair& addresses);
    void write_udp(const FrameIdentity& identity);
    void write_payload(const FrameIdentity& identity);
    [[nodiscard]] std::uint16_t udp_length() const {
        return static_cast<std::uint16_t>(bytes_.size() - layout_.transport_at());
    }
    void sum_up();
    [[nodiscard]] AddressSlot slot(AddressVariation vary, std::size_t address_at, std::uint8_t offset) const;

    std::vector<std::uint8_t> bytes_;
    Layout layout_;
    AddressSlot source_, destination_;
    std::uint32_t udp_sum_ = 0, ip_sum_ = 0, slots_sum_ = 0;
};

}  // namespace dutperf
