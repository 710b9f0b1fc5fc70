// SPDX-License-Identifier: Apache-2.0
// The tag: 18 bytes after the UDP header by which the receiver recognises a test frame. protocol/README.md documents
// the layout. The tag survives translation and is where RFC 8219 7.2 requires it. A 64-byte IPv4 frame leaves room for
// eighteen bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "frame/bytes.hpp"

namespace dutperf {

inline constexpr std::size_t kTagSize = 18;
inline constexpr std::uint32_t kSignature = 0xD75450;
// Byte 7 of the first two paths; it grows by one with every two paths, and begins again with every half of a bank.
inline constexpr std::uint8_t kTagVersion = 1;
inline constexpr std::size_t kHalfOfPaths = 2 * (256 - kTagVersion), kBankOfPaths = 2 * kHalfOfPaths;
inline constexpr std::size_t kMostPaths = 8 * kBankOfPaths;
inline constexpr std::uint64_t kMask40 = (std::uint64_t{1} << 40U) - 1;
// A difference of two 40-bit stamps above this is negative: half the range each way, 110 s at 5 GHz.
inline constexpr std::uint64_t kLongestDelay = kMask40 >> 1U;

// Bits of the tag's stream byte. kStreamReverse: the lowest bit of the path's number; kStreamUpper: it is one of the
// upper half of its bank.
inline constexpr std::uint8_t kStreamReverse = 1, kStreamBackground = 2, kStreamUpper = 4;
inline constexpr std::uint8_t kStreamPath = kStreamReverse | kStreamUpper;
inline constexpr unsigned kStreamKindShift = 3;  // the bits above: the number of the kind, if frames are described

namespace tag {
inline constexpr std::size_t kSignatureAt = 0, kStreamAt = 6, kPairAt = 7, kHighAt = 8, kLowAt = 16;
}

// The run and the trial of a frame: 13 bits that a run draws at random, three that have the path's bank in a frame and
// are 0 here, and 8 bits of the trial's number.
using TrialMark = std::uint32_t;
inline constexpr unsigned kRunShift = 11, kBankShift = 8;
inline constexpr TrialMark kMask24 = 0xFFFFFF, kBankMask = TrialMark{7} << kBankShift;
inline constexpr TrialMark mark_of_trial(std::uint16_t run, std::uint16_t number) {
    return (TrialMark{run} << kRunShift & kMask24) | (number & 0xFFU);
}
inline constexpr bool are_of_one_run(TrialMark one, TrialMark other) { return (one ^ other) >> kRunShift == 0; }

// Sequence number and time stamp, 40 bits each, as the 8 + 2 bytes written into each frame, in memory order. For one
// frame, or for lanes of them.
template <class Number>
inline Number tag_high(Number sequence, Number stamp) {
    return swap64((sequence << 24U) | ((stamp & kMask40) >> 16U));
}
inline std::uint16_t tag_low(std::uint64_t stamp) { return swap16(static_cast<std::uint16_t>(stamp)); }
inline Lanes tag_low(Lanes stamp) { return swap16(stamp & 0xFFFFU); }

// The inverse, from both words in the machine's byte order.
template <class Number>
inline Number tag_sequence(Number high) {
    return high >> 24U;
}
template <class Number>
inline Number tag_stamp(Number high, Number low) {
    return ((high << 16U) & kMask40) | low;
}

struct Tag {
    TrialMark trial;
    std::uint8_t stream;
    std::uint16_t pair = kTagVersion;  // see PathMark
    std::uint64_t sequence;
    std::uint64_t stamp;

    // The number of its path among those of the ports.
    [[nodiscard]] std::size_t path() const {
        return kBankOfPaths * (pair >> 8U) + 2U * static_cast<std::size_t>((pair & 0xFFU) - kTagVersion) +
               (stream & kStreamReverse) + ((stream & kStreamUpper) != 0 ? kHalfOfPaths : 0);
    }
};

// The bits of a tag that say which path it is of. `pair`: byte 7, and above it the bank.
struct PathMark {
    std::uint8_t stream = 0;
    std::uint16_t pair = kTagVersion;
};
// Of no path (Direction::none) the mark is one that no frame has.
inline PathMark mark_of_path(std::size_t path) {
    if (path >= kMostPaths) return {.stream = 0, .pair = 0};
    return {.stream = static_cast<std::uint8_t>((path % 2 != 0 ? kStreamReverse : 0) |
                                                (path % kBankOfPaths >= kHalfOfPaths ? kStreamUpper : 0)),
            .pair = static_cast<std::uint16_t>(path / kBankOfPaths << 8U | (kTagVersion + path % kHalfOfPaths / 2))};
}

// Whether a frame is of one of these kinds, a bit each.
inline bool is_among(std::uint32_t kinds, const Tag& tag) {
    return (kinds >> (tag.stream >> kStreamKindShift) & 1U) != 0;
}

inline bool has_signature(const std::uint8_t* payload) {
    return load_be32(payload + tag::kSignatureAt) >> 8U == kSignature && payload[tag::kPairAt] >= kTagVersion;
}

// Writes the part of a tag that is the same in all frames of a stream; the rest becomes 0.
inline void write_tag(std::uint8_t* payload, TrialMark trial, std::uint8_t stream, std::uint16_t pair = kTagVersion) {
    const TrialMark mark = (trial & kMask24) | (TrialMark{pair} >> 8U << kBankShift);
    store_be64(payload + tag::kSignatureAt, std::uint64_t{kSignature} << 40U | std::uint64_t{mark} << 16U |
                                                std::uint64_t{stream} << 8U | (pair & 0xFFU));
    std::memset(payload + tag::kHighAt, 0, kTagSize - tag::kHighAt);
}

inline Tag read_tag(const std::uint8_t* payload) {
    const std::uint64_t high = load_be64(payload + tag::kHighAt);
    // Read as one word: the compiler put a byte that was read alone on the stack and read it back with its neighbours,
    // which waits for the store buffer.
    const std::uint64_t identity = load_be64(payload + tag::kSignatureAt);
    const TrialMark mark = static_cast<TrialMark>(identity >> 16U) & kMask24;
    return {.trial = mark & ~kBankMask,
            .stream = static_cast<std::uint8_t>(identity >> 8U),
            .pair = static_cast<std::uint16_t>((mark & kBankMask) | (identity & 0xFFU)),
            .sequence = tag_sequence(high),
            .stamp = tag_stamp(high, std::uint64_t{load_be16(payload + tag::kLowAt)})};
}

}  // namespace dutperf
