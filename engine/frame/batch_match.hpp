// SPDX-License-Identifier: Apache-2.0
// Checks several received frames at once against a reference frame that was found intact. Most frames of a stream
// differ only in fields that a checksum covers: the other bytes are compared with the reference, and the bytes that may
// differ are summed. This does the work of find_tag() and is_intact() and accepts nothing that they would reject.
// Mismatches are left to those two.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>

#include "frame/address.hpp"
#include "frame/lanes.hpp"
#include "frame/layout.hpp"

namespace dutperf {

// The bytes of a layout that find_tag() and is_intact() read, as 64-bit words that end where the tag ends. Masks select
// the bytes that must equal the reference and those that the checksums cover.
template <Layout L>
struct MatchedWords {
    static constexpr std::size_t kIp = L.ip_at(), kUdp = L.transport_at(), kTag = L.tag_at(), kEnd = L.tag_end();
    static constexpr std::size_t kCount = (kEnd - L.types().from + 7) / 8, kBegin = kEnd - 8 * kCount;

    using Words = std::array<std::uint64_t, kCount>;

    static constexpr Words mask(std::initializer_list<Range> ranges) {
        Words words{};
        for (const Range& range : ranges) {
            for (std::size_t at = range.from; at < range.to; ++at)
                words[(at - kBegin) / 8] |= std::uint64_t{0xFF} << (8 * ((at - kBegin) % 8));
        }
        return words;
    }
    static constexpr Range field(std::size_t at, std::size_t size) { return {at, at + size}; }

    static constexpr Range kVersion = field(kIp, 1), kUdpLength = field(kUdp + udp::kLength, 2),
                           kIdentity{kTag + tag::kSignatureAt, kTag + tag::kHighAt};
    static constexpr Words kSame =
        L.ipv6 ? mask({L.types(), kVersion, field(kIp + ipv6::kPayloadLength, 2), field(kIp + ipv6::kNextHeader, 1),
                       L.extensions(), kUdpLength, kIdentity})
               : mask({L.types(), kVersion, field(kIp + ipv4::kLength, 2), field(kIp + ipv4::kFragment, 2),
                       field(L.protocol_at(), 1), kUdpLength, kIdentity});
    static constexpr Words kIpSum = mask({L.ip_covered()});
    static constexpr Words kUdpSum = mask({L.addresses(), {kUdp, kEnd}});
    static constexpr Words kDestination = mask({L.destination()});
    static_assert(kSame[0] != 0);  // BatchMatch::read() marks a mismatch there

    // Of the UDP checksum.
    static constexpr std::size_t kChecksumWord = (kUdp + udp::kChecksum - kBegin) / 8,
                                 kChecksumShift = 8 * ((kUdp + udp::kChecksum - kBegin) % 8);
    static_assert(kChecksumShift <= 48);
};

template <Layout L>
class BatchMatch {
public:
    static constexpr std::size_t kMaxFrames = 64;  // frames of a burst
    static constexpr Layout kLayout = L;

    // Later frames are compared with this one, which find_tag() and is_intact() must have accepted. They
    // must have its destination address, but for the bits of `destination_but`; nothing: it may differ. Not to be
    // called between read() and tag().
    void set_reference(const std::uint8_t* frame, std::size_t length,
                       const std::optional<IpAddress>& destination_but = {}) {
        const std::uint16_t udp_length = load_be16(frame + W::kUdp + udp::kLength);
        length_ = length;
        tail_ = udp_length - udp::kSize - kTagSize;
        pseudo_header_ = std::uint64_t{swap16(udp_length)} + swap16(kProtocolUdp);
        mask_ = W::kSame;
        for (std::size_t at = L.destination().from; destination_but && at < L.destination().to; ++at) {
            const auto fixed = static_cast<std::uint8_t>(~destination_but->bytes[at - L.destination().from]);
            mask_[(at - W::kBegin) / 8] |= std::uint64_t{fixed} << (8 * ((at - W::kBegin) % 8));
        }
        for (std::size_t w = 0; w < W::kCount; ++w)
            same_[w] = load<std::uint64_t>(frame + W::kBegin + 8 * w) & mask_[w];
        identity_ = read_tag(frame + W::kTag);
        tails_.fill(0);
    }

    // Reads the i-th frame of a burst, its first argument. The lengths are the reader's own: to the compiler, each
    // frame that is stored could change those of the batch.
    [[nodiscard]] auto reader() {
        return [this, wanted = length_, tail = tail_](std::size_t i, const std::uint8_t* frame, std::size_t length) {
            if (length != wanted) [[unlikely]] {
                words_[0][i] = ~std::uint64_t{0};  // not the EtherType of any frame
                return;
            }
            for (std::size_t w = 0; w < W::kCount; ++w) words_[w][i] = load<std::uint64_t>(frame + W::kBegin + 8 * w);
            if (tail != 0) tails_[i] = checksum_add(frame + W::kEnd, tail);
        };
    }

    // Matches the `count` frames that were read.
    void match(std::size_t count) {
        for (std::size_t i = 0; i < count; i += kLanes) match_lanes(i);
    }

    // The run that starts at the i-th frame: the sequence numbers of matching frames with the same stamp, in increasing
    // order. Empty if the i-th frame is a mismatch.
    [[nodiscard]] std::span<const std::uint64_t> run_from(std::size_t i, std::size_t count) const {
        if ((sequence_[i] & kMismatch) != 0) [[unlikely]]
            return {};
        const auto number = [this](std::size_t at) {
            return static_cast<std::int64_t>(sequence_[at]);
        };  // mismatches are negative: below every number
        std::size_t end = i + 1;
        while (end < count && number(end) > number(end - 1) && stamp_[end] == stamp_[i]) ++end;
        return {&sequence_[i], end - i};
    }

    // The tag of the i-th frame, which must match.
    [[nodiscard]] Tag tag(std::size_t i) const {
        return {.trial = identity_.trial,
                .stream = identity_.stream,
                .pair = identity_.pair,
                .sequence = sequence_[i],
                .stamp = stamp_[i]};
    }

private:
    using W = MatchedWords<L>;
    using Column = std::array<std::uint64_t, kMaxFrames>;
    static constexpr std::uint64_t kMismatch = std::uint64_t{1} << 63U;

    template <std::size_t w>
    void compare(std::size_t i, Lanes& mismatch, Lanes& ip, Lanes& udp) const {
        const Lanes word = load_lanes(&words_[w][i]);
        if constexpr (W::kDestination[w] != 0)
            mismatch |= (word & mask_[w]) ^ same_[w];
        else if constexpr (W::kSame[w] != 0)
            mismatch |= (word & W::kSame[w]) ^ same_[w];
        if constexpr (W::kIpSum[w] != 0) ip = checksum_add64(ip, word & W::kIpSum[w]);
        if constexpr (W::kUdpSum[w] != 0) udp = checksum_add64(udp, word & W::kUdpSum[w]);
        if constexpr (L.ipv6 && w == W::kChecksumWord)
            mismatch |= (((word >> W::kChecksumShift) & 0xFFFFU) - 1) & kMismatch;  // only 0 borrows
    }

    void match_lanes(std::size_t i) {
        Lanes mismatch{}, ip{}, udp = load_lanes(&tails_[i]) + pseudo_header_;
        [&]<std::size_t... w>(std::index_sequence<w...>) { (compare<w>(i, mismatch, ip, udp), ...); }
        (std::make_index_sequence<W::kCount>{});
        mismatch |= checksum_folded(udp) ^ 0xFFFFU;
        if constexpr (!L.ipv6) mismatch |= checksum_folded(ip) ^ 0xFFFFU;
        const Lanes before = load_lanes(&words_[W::kCount - 2][i]), last = load_lanes(&words_[W::kCount - 1][i]);
        const Lanes high = swap64(before >> 48U | last << 16U), low = swap16(last >> 48U);
        store_lanes(&sequence_[i], tag_sequence(high) | ((mismatch | -mismatch) & kMismatch));
        store_lanes(&stamp_[i], tag_stamp(high, low));
    }

    std::size_t length_ = ~std::size_t{0},
                tail_ = 0;  // bytes of the reference (at first a length that no frame has), and after its tag
    std::uint64_t pseudo_header_ = 0;
    typename W::Words mask_{}, same_{};
    Tag identity_{};  // of the reference: trial, stream and path
    alignas(kLanesAlignment) std::array<Column, W::kCount> words_{};
    alignas(kLanesAlignment) Column tails_{}, sequence_{}, stamp_{};
};

}  // namespace dutperf
