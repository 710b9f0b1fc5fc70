// SPDX-License-Identifier: Apache-2.0
// Checks several received frames at once, like frame/batch_match.hpp, of any headers and of several kinds and sizes:
// each frame is matched against the reference that has its length and the same constant part of the tag. What must be
// equal and what checksums cover is what dissect() read of the reference (Reading), so this accepts nothing that
// dissect() would reject. Mismatches are left to it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "frame/address.hpp"
#include "frame/dissect.hpp"
#include "frame/lanes.hpp"
#include "frame/tag.hpp"

namespace dutperf {

// What must be equal beside what dissect() reads.
struct AlsoSame {
    // An address, but for some bits.
    struct Address {
        Range at{};  // empty: none
        IpAddress but{};
    };

    bool vlans = false;
    Address destination{}, outer_destination{};
};

class MixedMatch {
public:
    static constexpr std::size_t kMaxFrames = 64;       // of a burst
    static constexpr std::size_t kMostReferences = 48;  // all kinds of a stream, and some that a DUT changes on its way
    // How often a reference may be set: where frames differ in what must be equal, none helps.
    static constexpr std::size_t kMostSettings = 4 * kMostReferences;

    // Later frames are compared with this one too, if dissect() accepts it and its form is supported. Replaces a
    // reference for frames of the same kind. Not to be called between read() and tag().
    void set_reference(const std::uint8_t* frame, std::size_t length, std::span<const std::uint16_t> tags_from_end,
                       const AlsoSame& also = {});

    // Reads the i-th frame of a burst, its first argument, which stays where it is until match() returns. Most frames
    // have the reference of the frame before.
    [[nodiscard]] auto reader() { return Reader(*this); }

    // Matches the frames that were read.
    void match(std::size_t count);

    // See BatchMatch. A run may have frames of several kinds.
    [[nodiscard]] std::span<const std::uint64_t> run_from(std::size_t i, std::size_t count) const {
        if ((sequence_[i] & kMismatch) != 0) [[unlikely]]
            return {};
        const auto number = [this](std::size_t at) {
            return static_cast<std::int64_t>(sequence_[at]);
        };  // mismatches are negative: below every number
        std::size_t end = i + 1;
        while (end < count && number(end) > number(end - 1) && rest_[end] == rest_[i]) ++end;
        return {&sequence_[i], end - i};
    }

    // The tag of the i-th frame, which must match, without its kind.
    [[nodiscard]] Tag tag(std::size_t i) const {
        const Tag& of = identities_[rest_[i] >> kIdentityShift];
        return {.trial = of.trial,
                .stream = of.stream,
                .pair = of.pair,
                .sequence = sequence_[i],
                .stamp = rest_[i] & kMask40};
    }

    // Adjacent frames of one kind, which must match, from the i-th on.
    struct Alike {
        std::span<const std::uint8_t* const> frames;
        // In each: the tag, and the source of the innermost IP packet.
        std::size_t tag_at;
        Range source;
    };
    [[nodiscard]] Alike alike_from(std::size_t i, std::size_t count) const {
        const Reference& reference = references_[reference_of_[i]];
        std::size_t end = i + 1;
        while (end < count && reference_of_[end] == reference_of_[i]) ++end;
        return {{&frames_[i], end - i}, reference.tag_at, reference.source};
    }

private:
    static constexpr std::uint64_t kMismatch = std::uint64_t{1} << 63U;
    static constexpr std::size_t kMostWords = 24, kMostSums = 6, kLengths = 16384;
    static constexpr unsigned kIdentityShift = 40;
    static constexpr std::size_t kGroups = 4;  // lanes that are matched together
    static_assert(kMaxFrames % (kGroups * kLanes) == 0);
    using Column = std::array<std::uint64_t, kMaxFrames>;
    using Words = std::array<std::uint64_t, kMostWords>;

    // A sum over masked words, the tail, and a constant.
    struct Sum {
        struct Part {
            std::size_t word;
            std::uint64_t mask;
        };
        std::vector<Part> parts;
        std::uint64_t plus = 0;
        bool tail = false;
        Part not_zero{0, 0};  // no such field: a mask of 0
    };

    // The bytes up to the end of the tag, as words that end there; behind it `tail` bytes that checksums cover.
    struct Reference {
        std::size_t length = ~std::size_t{0};  // at first one that no frame has
        std::size_t tag_at = 0, begin = 0, count = 0, tail = 0;
        std::uint64_t identity = 0;  // the constant part of the tag
        std::uint64_t rest = 0;      // the place of its tag in identities_, where it is in rest_
        Range source{};
        Words same{}, same_mask{};
        std::vector<Sum> sums;
        std::uint8_t next = 0;  // the next reference of the same length

        [[nodiscard]] bool is_of(const std::uint8_t* frame, std::size_t size) const {
            return size == length && load<std::uint64_t>(frame + tag_at) == identity;
        }
        bool take_same(const std::vector<Range>& ranges);
        bool take_sums(const std::vector<Reading::Sum>& read, const std::uint8_t* frame);
        bool take_sum(const Reading::Sum& read, const std::uint8_t* frame);
        [[nodiscard]] bool is_same(const Range& range) const;
        bool take_tail(const Range& range);
        void take_vlans(const std::uint8_t* frame);
        void take_address(const AlsoSame::Address& address);
        void mask(Words& words, const Range& range, std::uint8_t bits = 0xFF) const;
    };
    static constexpr std::size_t kNone = 0;  // the reference that matches no frame

    [[nodiscard]] std::size_t find(const std::uint8_t* frame, std::size_t length) const {
        std::size_t number = first_of_length_[length % kLengths];
        while (number != kNone && !references_[number].is_of(frame, length)) number = references_[number].next;
        return number;
    }
    class Reader {
    public:
        explicit Reader(MixedMatch& batch) : batch_(batch), last_(&batch.references_[kNone]) {}

        [[gnu::always_inline]] void operator()(std::size_t i, const std::uint8_t* frame, std::size_t length) {
            if (!last_->is_of(frame, length)) {
                number_ = batch_.find(frame, length);
                last_ = &batch_.references_[number_];
            }
            batch_.frames_[i] = frame;
            batch_.reference_of_[i] = static_cast<std::uint8_t>(number_);
        }

    private:
        MixedMatch& batch_;
        std::size_t number_ = kNone;
        const Reference* last_;
    };

    bool prepare(Reference& made, const std::uint8_t* frame, std::size_t length,
                 std::span<const std::uint16_t> tags_from_end, const AlsoSame& also);
    using Members = std::span<const std::uint8_t>;  // places in the burst
    void match_group(const Reference& reference, Members members);
    void read(const Reference& reference, Members members);
    template <std::size_t Count>
    void read_words(const Reference& reference, Members members);
    void read_any(const Reference& reference, Members members);
    void match_lanes(const Reference& reference, std::size_t count, Column& sequence, Column& rest) const;
    template <std::size_t Groups>
    void match_lanes(const Reference& reference, std::size_t i, Column& sequence, Column& rest) const;

    std::uint64_t identity_of(const Tag& tag);

    std::vector<Reference> references_{1};
    std::vector<Tag> identities_;  // trial, stream and path of the references, without the kind
    std::size_t settings_ = 0;
    std::array<std::uint8_t, kLengths> first_of_length_{};
    std::array<std::uint8_t, kMostReferences> sizes_{};  // frames of the burst with each reference
    std::array<std::array<std::uint8_t, kMaxFrames>, kMostReferences> members_{};
    std::array<const std::uint8_t*, kMaxFrames> frames_{};
    std::array<std::uint8_t, kMaxFrames> reference_of_{};
    alignas(kLanesAlignment) std::array<Column, kMostWords> words_{};  // of a group
    alignas(kLanesAlignment) Column tails_{}, group_sequence_{}, group_rest_{};
    alignas(kLanesAlignment) Column sequence_{}, rest_{};  // of the burst
};

}  // namespace dutperf
