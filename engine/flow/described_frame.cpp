// SPDX-License-Identifier: Apache-2.0
#include "flow/described_frame.hpp"

#include <algorithm>
#include <array>

#include "frame/checksum.hpp"

namespace dutperf {

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t), kBitsOfWord = 8 * kWord, kSumSize = 2;
constexpr std::size_t kVaryingTagSize = kTagSize - tag::kHighAt;

bool overlap(const Range& one, const Range& other) { return one.from < other.to && other.from < one.to; }
bool covers(const DescribedChecksum& sum, std::size_t at) {
    return std::ranges::any_of(sum.covers, [at](const Range& range) { return range.from <= at && at < range.to; });
}
Range place_of(const DescribedChecksum& sum) { return {sum.at, sum.at + kSumSize}; }
Range bytes_of(const VaryingBits& field) { return {field.bit / 8, (field.end() + 7) / 8}; }

Range varying_tag(const DescribedFrame& frame) { return {frame.tag_at + tag::kHighAt, frame.tag_at + kTagSize}; }

bool varies_in(const DescribedFrame& frame, const Range& range) {
    return overlap(range, varying_tag(frame)) ||
           std::ranges::any_of(frame.fields, [&](const auto& field) { return overlap(range, bytes_of(field)); }) ||
           std::ranges::any_of(frame.checksums, [&](const auto& sum) { return overlap(range, place_of(sum)); });
}

std::string contradiction_of(const DescribedFrame& frame, const DescribedChecksum& sum) {
    const Range tag{frame.tag_at, frame.tag_at + kTagSize};
    if (sum.at % 2 != 0 || sum.at + kSumSize > frame.length()) return "must be at an even offset within the frame";
    if (overlap(place_of(sum), tag)) return "must not be in the tag";
    for (const Range& range : sum.covers) {
        if (range.from >= range.to || range.to > frame.length()) return "must cover ranges within the frame";
        if (range.from % 2 != 0 && varies_in(frame, range)) return "covers what varies from an odd offset on";
        if (overlap(range, varying_tag(frame)) && frame.tag_at % 2 != 0) return "covers a tag at an odd offset";
    }
    return {};
}

std::string contradiction_of(const DescribedFrame& frame, const VaryingBits& field) {
    if (field.end() > 8 * frame.length()) return "ends behind the frame";
    if (overlap(bytes_of(field), {frame.tag_at, frame.tag_at + kTagSize})) return "overlaps the tag";
    if (std::ranges::any_of(frame.checksums, [&](const auto& sum) { return overlap(bytes_of(field), place_of(sum)); }))
        return "overlaps a checksum";
    const auto same = [&](const VaryingBits& other) {
        return &other != &field && overlap({field.bit, field.end()}, {other.bit, other.end()});
    };
    return std::ranges::any_of(frame.fields, same) ? "overlaps another one" : "";
}

}  // namespace

bool DescribedFrame::is_connected() const {
    return std::ranges::any_of(fields, [](const auto& field) { return field.source != FieldSource::number; });
}

std::string DescribedFrame::contradiction() const {
    if (tag_at + kTagSize > length()) return "tag_at leaves no room for the tag";
    if (head.size() < ethernet::kSize || head.size() > length())
        return "bytes must have 14 bytes or more, and no more than the frame without its FCS";
    for (std::size_t i = 0; i < checksums.size(); ++i) {
        const std::string name = "checksums." + std::to_string(i) + " ";
        if (const std::string wrong = contradiction_of(*this, checksums[i]); !wrong.empty()) return name + wrong;
        for (std::size_t later = i + 1; later < checksums.size(); ++later) {
            if (covers(checksums[i], checksums[later].at)) return name + "covers a later one";
        }
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (const std::string wrong = contradiction_of(*this, fields[i]); !wrong.empty())
            return "fields." + std::to_string(i) + " " + wrong;
    }
    return {};
}

DescribedTemplate::DescribedTemplate(const DescribedFrame& frame, const Addressing& of)
    : frame_(frame), seed_(of.seed), flow_seed_(of.flow_seed), bytes_((frame.length() + kWord - 1) / kWord * kWord) {
    std::ranges::copy(frame.head, bytes_.begin());
    for (std::size_t i = frame.head.size(); i < frame.length(); ++i)
        bytes_[i] = static_cast<std::uint8_t>(i - frame.head.size());  // RFC 2544 C.2.6.4
    if (frame.destination != NextHop::given) std::ranges::copy(of.destination, bytes_.begin() + ethernet::kDestination);
    if (frame.source_mac_of_port) std::ranges::copy(of.source, bytes_.begin() + ethernet::kSource);
    write_tag(&bytes_[frame.tag_at], of.trial, of.stream, of.pair);
    for (const DescribedChecksum& sum : frame.checksums) store<std::uint16_t>(&bytes_[sum.at], 0);
    cut_fields();
    prepare_sums();
}

std::vector<std::uint8_t> DescribedTemplate::first_frame() const {
    std::vector<std::uint8_t> frame = bytes_;
    std::vector<std::uint64_t> words = words_;
    for (const Piece& piece : pieces_)
        words[piece.word] |= piece_of(piece, frame_.fields[piece.field].value(0, seed_of(piece.field)));
    for (std::size_t w = 0; w < words.size(); ++w) store(&frame[words_at_[w]], words[w]);
    sum_up(frame);
    frame.resize(frame_.length());
    return frame;
}

void DescribedTemplate::sum_up(std::vector<std::uint8_t>& frame) const {
    for (const DescribedChecksum& described : frame_.checksums) {
        std::uint64_t sum = described.plus_in_memory_order();
        store<std::uint16_t>(&frame[described.at], 0);
        for (const Range& range : described.covers) sum += checksum_add(&frame[range.from], range.size());
        store(&frame[described.at], described.zero_as_ones ? checksum_finish_udp(sum) : checksum_finish(sum));
    }
}

// Cuts the fields at the borders of words.
void DescribedTemplate::cut_fields() {
    for (std::size_t i = 0; i < frame_.fields.size(); ++i) {
        const VaryingBits& field = frame_.fields[i];
        for (std::size_t at = field.bit / kBitsOfWord; at * kBitsOfWord < field.end(); ++at) {
            const auto offset = static_cast<std::uint16_t>(at * kWord);
            const auto found = std::ranges::find(words_at_, offset);
            const auto word = static_cast<std::size_t>(found - words_at_.begin());
            if (found == words_at_.end()) words_at_.push_back(offset);
            const std::uint32_t begin = static_cast<std::uint32_t>(at * kBitsOfWord), end = begin + kBitsOfWord,
                                from = std::max(begin, field.bit), to = std::min(end, field.end());
            const std::uint64_t ones = ~std::uint64_t{0} >> (kBitsOfWord - (to - from));
            pieces_.push_back({.field = i,
                               .word = word,
                               .shift_right = field.end() - to,
                               .shift_left = end - to,
                               .mask = ones << (end - to)});
        }
    }
}

// The bytes of a word, or of a part of it, that a checksum covers.
std::uint64_t DescribedTemplate::covered(const DescribedChecksum& sum, std::size_t from, std::size_t bytes) const {
    std::array<std::uint8_t, kWord> mask{};
    const auto is_in = [&](std::size_t at) {
        return std::ranges::any_of(
            sum.covers, [at](const Range& range) { return range.from % 2 == 0 && range.from <= at && at < range.to; });
    };
    for (std::size_t i = 0; i < bytes; ++i) mask[i] = is_in(from + i) ? 0xFF : 0;
    return load<std::uint64_t>(mask.data());
}

// The sum of what is covered outside the words. What is covered from an odd offset on does not vary: it is not in the
// words' sums either, whose bytes would be at the wrong places there.
std::uint64_t DescribedTemplate::still_sum(const DescribedChecksum& described) const {
    std::vector<std::uint8_t> still = bytes_;
    for (const std::uint16_t at : words_at_) store<std::uint64_t>(&still[at], 0);
    std::uint64_t sum = described.plus_in_memory_order();
    for (const Range& range : described.covers)
        sum += checksum_add(&(range.from % 2 == 0 ? still : bytes_)[range.from], range.size());
    return checksum_fold(sum);
}

// Checksums of which nothing varies are written into the template.
void DescribedTemplate::prepare_sums() {
    for (const DescribedChecksum& described : frame_.checksums) {
        Sum sum;
        sum.at = described.at;
        sum.zero_as_ones = described.zero_as_ones;
        sum.base = still_sum(described);
        bool varies = false;
        for (const std::uint16_t at : words_at_) {
            sum.words.push_back(covered(described, at, kWord));
            varies |= sum.words.back() != 0;
        }
        sum.tag_high = covered(described, frame_.tag_at + tag::kHighAt, kWord);
        sum.tag_low = covered(described, frame_.tag_at + tag::kLowAt, kVaryingTagSize - kWord);
        for (std::size_t i = 0; i < sums_.size(); ++i) {
            if (covers(described, sums_[i].at)) sum.sums.push_back(i);
        }
        if (varies || sum.tag_high != 0 || sum.tag_low != 0 || !sum.sums.empty()) {
            sums_.push_back(std::move(sum));
            continue;
        }
        store(&bytes_[sum.at], sum.zero_as_ones ? checksum_finish_udp(sum.base) : checksum_finish(sum.base));
    }
    for (const std::uint16_t at : words_at_) words_.push_back(load<std::uint64_t>(&bytes_[at]));
    for (const Piece& piece : pieces_) words_[piece.word] &= ~__builtin_bswap64(piece.mask);
}

}  // namespace dutperf
