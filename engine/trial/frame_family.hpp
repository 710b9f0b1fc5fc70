// SPDX-License-Identifier: Apache-2.0
// Kinds of described frames that share buffers, because they differ in few bytes: the sizes of a mix differ in their
// lengths, checksums and the tag's kind. A buffer of a family holds the longest frame. What follows from kind and flow
// alone is computed before the trial: a row of bytes, which the sender copies, and the base of each checksum.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "flow/described_frame.hpp"
#include "flow/varying_lanes.hpp"
#include "trial/frame_source.hpp"

namespace dutperf {

// What varies from frame to frame, other than with the flow. Frames of one family have the same form.
struct FrameForm {
    // A field and its pieces; `word` of a piece is a number in words_at.
    struct Field {
        VaryingBits bits;
        std::optional<VaryingLanes> lanes;  // follows from `bits`
        std::vector<DescribedTemplate::Piece> pieces;

        bool operator==(const Field& other) const { return bits == other.bits && pieces == other.pieces; }
    };
    // A checksum that covers words, the tag, or checksums before it that do: see DescribedTemplate::Sum.
    struct Sum {
        std::uint16_t at = 0;
        bool zero_as_ones = false;
        std::vector<std::uint64_t> words;
        std::uint64_t tag_high = 0, tag_low = 0;
        std::vector<std::size_t> sums;

        bool operator==(const Sum&) const = default;
    };

    std::uint16_t tag_at = 0;
    std::vector<std::uint16_t> words_at;  // with fields
    std::vector<Field> fields;
    std::vector<Sum> sums;

    bool operator==(const FrameForm&) const = default;
};

// A kind of frame, ready to be made.
class DescribedKind {
public:
    DescribedKind(const DescribedTemplate& frame, std::uint32_t generation);

    [[nodiscard]] std::uint32_t generation() const { return generation_; }
    [[nodiscard]] std::uint16_t length() const { return frame_.length(); }
    [[nodiscard]] const FrameForm& form() const { return form_; }
    [[nodiscard]] const FlowChoice& flows() const { return flows_; }
    [[nodiscard]] std::uint64_t seed_of(std::size_t field) const { return seeds_[field]; }
    // The bytes that differ between its flows.
    [[nodiscard]] std::vector<Range> by_flow() const;

    // The frames of a flow: their first `reach` bytes but for what varies from frame to frame, and of each checksum of
    // the form the sum of what does not. Nothing behind `reach` differs between flows.
    struct Contents {
        std::vector<std::uint8_t> bytes;
        std::vector<std::uint64_t> bases;
    };
    [[nodiscard]] Contents of_flow(std::uint32_t flow, std::size_t reach) const;

private:
    void find_form();
    [[nodiscard]] bool is_in_form(std::size_t sum) const { return place_of_sum_[sum] != kConstant; }

    static constexpr std::size_t kConstant = ~std::size_t{0};

    DescribedTemplate frame_;
    std::uint32_t generation_;
    FlowChoice flows_;
    FrameForm form_;
    std::vector<std::uint64_t> seeds_;  // of the form's fields
    std::vector<bool> word_by_frame_;
    std::vector<std::size_t> place_of_sum_;  // in the form, or kConstant: it follows from the flow
};

class FrameFamily {
public:
    // Splits kinds into families, of which each kind is in one.
    static std::vector<FrameFamily> split(std::span<const DescribedKind> kinds);

    [[nodiscard]] const FrameForm& form() const { return form_; }
    [[nodiscard]] FrameImage image() const;
    [[nodiscard]] const std::vector<std::size_t>& kinds() const { return numbers_; }  // among all kinds

    // Adjacent bytes that a row replaces.
    struct Stretch {
        std::size_t at, words;
    };
    [[nodiscard]] const std::vector<Stretch>& stretches() const { return stretches_; }
    // Where a row has its parts: the stretches are first.
    [[nodiscard]] std::size_t words_in_row() const { return words_in_row_; }
    [[nodiscard]] std::size_t sums_in_row() const { return words_in_row_ + form_.words_at.size(); }
    [[nodiscard]] std::size_t lengths_in_row() const { return sums_in_row() + form_.sums.size(); }
    [[nodiscard]] bool has_lengths() const { return has_lengths_; }
    [[nodiscard]] bool has_one_row() const { return rows_.size() == row_size_; }
    [[nodiscard]] std::size_t row_size() const { return row_size_; }
    // The row of a flow. `place`: of its kind in kinds().
    [[nodiscard]] const std::uint64_t* row(std::size_t place, std::uint32_t flow) const {
        return rows_.data() + (first_[place] + flow) * row_size_;
    }

    // The lengths of a row, as a descriptor holds them.
    static void write_lengths(rte_mbuf* buffer, std::uint64_t lengths) {
        std::memcpy(reinterpret_cast<std::uint8_t*>(buffer) + offsetof(rte_mbuf, pkt_len), &lengths, sizeof lengths);
    }

private:
    FrameFamily() = default;
    static bool fit(const DescribedKind& one, const DescribedKind& other);
    // False: they differ in too many bytes.
    bool make(std::span<const DescribedKind> kinds, std::vector<std::size_t> numbers);
    void cut_stretches(const std::vector<bool>& differs);
    void add_row(const DescribedKind& kind, std::uint32_t flow);

    FrameForm form_;
    std::vector<std::size_t> numbers_, first_;
    std::vector<std::uint8_t> bytes_;  // whole cache lines; nothing behind the frame is sent
    std::uint16_t length_ = 0;
    std::uint32_t generation_ = 0;
    bool has_lengths_ = false;
    std::vector<Stretch> stretches_;
    std::size_t words_in_row_ = 0, row_size_ = 0, reach_ = 0;  // reach_: the end of what rows have
    std::vector<std::uint64_t> rows_;
};

}  // namespace dutperf
