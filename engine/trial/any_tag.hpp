// SPDX-License-Identifier: Apache-2.0
// Finds the tag of a frame with any headers, and tells whether the frame counts as intact. Receivers and the log of the
// kernel's time stamps share it: a frame that counts in one and not in the other would have no delay.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "frame/arrival.hpp"
#include "frame/dissect.hpp"
#include "frame/tag.hpp"

namespace dutperf {

// What is wrong with a frame that is not intact.
enum class Corruption : std::uint8_t {
    other,   // a checksum, lengths that do not fit together, or its number
    length,  // it is not as long as it was sent
    no_sum,  // a UDP checksum over IPv6 is absent, which hosts discard (RFC 8200 8.1)
    count
};

using CorruptedBy = std::array<std::uint64_t, static_cast<std::size_t>(Corruption::count)>;  // frames

struct AnyTag {
    const std::uint8_t* tag = nullptr;  // nullptr: no test frame
    bool intact = false;
    bool unfinished = false;  // intact, but for unfinished checksums (frame/dissect.hpp), which are accepted
    bool zero = false;        // intact, but for a UDP checksum of 0 over IPv6 (frame/dissect.hpp), which is accepted
    Corruption corruption = Corruption::other;  // if it is not intact
    bool plain = false;                         // UDP directly over IP, directly over Ethernet
    Range source{}, destination{};              // see Dissected
    std::size_t payload = 0;
    Range outer_destination{};

    [[nodiscard]] bool encapsulated() const { return outer_destination.size() != 0; }
};

struct TagSearch {
    std::span<const std::uint16_t> from_end;  // places of tags behind no known header, in bytes before the end
    bool accepts_unfinished;                  // checksums
};

// `is_unchecked` of a tag: its frame counts as intact whatever its lengths and checksums are.
template <class IsUnchecked>
AnyTag find_tag_behind_headers(const std::uint8_t* frame, std::size_t length, const TagSearch& search,
                               const IsUnchecked& is_unchecked) {
    const Dissected dissected = dissect(frame, length, search.from_end);
    if (dissected.tag == nullptr) return {};
    const bool unfinished = dissected.unfinished && search.accepts_unfinished;
    const bool zero = dissected.zero && unfinished == dissected.unfinished;
    const bool unchecked = is_unchecked(read_tag(dissected.tag));
    return {.tag = dissected.tag,
            .intact = dissected.intact || unfinished || zero || unchecked,
            .unfinished = unfinished,
            .zero = zero && !unchecked,
            .corruption = dissected.unsummed ? Corruption::no_sum : Corruption::other,
            .source = dissected.source,
            .destination = dissected.destination,
            .payload = dissected.payload,
            .outer_destination = dissected.outer_destination};
}

// The tag of an intact plain frame.
inline AnyTag find_plain_tag(const std::uint8_t* frame, std::size_t length) {
    const std::uint8_t* tag = find_tag(frame, length);
    if (tag == nullptr || !is_intact(frame, length)) return {};
    const Layout& at = type_of(frame) == kIpv6Layout.type() ? kIpv6Layout : kIpv4Layout;
    return {.tag = tag,
            .intact = true,
            .plain = true,
            .source = at.source(),
            .destination = at.destination(),
            .payload = std::size_t{load_be16(frame + at.transport_at() + udp::kLength)} - udp::kSize};
}

// The same as find_tag_behind_headers(), faster if the frame is a plain one.
template <class IsUnchecked>
AnyTag find_any_tag(const std::uint8_t* frame, std::size_t length, const TagSearch& search,
                    const IsUnchecked& is_unchecked) {
    if (const AnyTag plain = find_plain_tag(frame, length); plain.tag != nullptr) return plain;
    return find_tag_behind_headers(frame, length, search, is_unchecked);
}

}  // namespace dutperf
