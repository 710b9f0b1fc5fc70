// SPDX-License-Identifier: Apache-2.0
// What the test frames of a path must have kept when they arrive (RFC 2544 section 10): their length, the address that
// they are sent to, VLAN tags, and whether they are in a tunnel. A DUT may translate, encapsulate and decapsulate them:
// the length is that of what the innermost IP packet carries, and a translator delivers to an address of the port.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "frame/address_range.hpp"
#include "frame/vlan_tags.hpp"
#include "trial/any_tag.hpp"

namespace dutperf {

inline IpAddress address_in(const std::uint8_t* frame, const Range& at) {
    return at.size() == sizeof(Ipv6) ? ip_of(read_address<Ipv6>(frame + at.from))
                                     : ip_of(read_address<Ipv4>(frame + at.from));
}

// Of one kind of frames.
struct ArrivingKind {
    ArrivingTags vlan_tags{};
    // See Dissected: of the frames, and of messages that leave in their place; empty: not compared.
    std::vector<std::size_t> payloads{};
    AddressRanges sent_to{};   // of the innermost IP packet; empty: its destination is not compared
    AddressRanges outer_to{};  // of the outermost one, if that is another: the same of frames that still have both
    std::optional<bool> encapsulated{};  // whether there must be another one; none: not compared

    // Whether a frame may be so long; 0: it has no IP packet.
    [[nodiscard]] bool fits(std::size_t payload) const {
        return payload == 0 || payloads.empty() || std::ranges::find(payloads, payload) != payloads.end();
    }
    // Whether it may be encapsulated as it is.
    [[nodiscard]] bool fits(const AnyTag& found) const {
        return encapsulated.value_or(found.encapsulated()) == found.encapsulated();
    }
};

struct Arriving {
    // Of described frames each kind; of plain ones foreground and background. Kinds that are left out are not compared.
    std::vector<ArrivingKind> kinds;
    AddressRanges of_port{};  // addresses of the port to which a DUT may translate

    // nullptr: not compared.
    [[nodiscard]] const ArrivingKind* kind_of(const Tag& tag) const {
        const std::size_t kind =
            (tag.stream >> kStreamKindShift) + ((tag.stream & kStreamBackground) != 0 ? std::size_t{1} : 0);
        return kind < kinds.size() ? &kinds[kind] : nullptr;
    }

    // Of the address of a frame `at` a place: the bits in which other frames may differ; nothing: the frame may not go
    // there. All bits where there is no address, or it is not compared.
    [[nodiscard]] std::optional<IpAddress> may_differ(const AddressRanges& sent_to, const std::uint8_t* frame,
                                                      const Range& at) const {
        if (at.size() == 0 || sent_to.empty()) return kAllBits;
        const IpAddress address = address_in(frame, at);
        const auto bits = sent_to.free_bits(address);
        return bits ? bits : of_port.free_bits(address);
    }

private:
    static constexpr IpAddress kAllBits = [] {
        IpAddress all;
        all.bytes.fill(0xFF);
        return all;
    }();
};

}  // namespace dutperf
