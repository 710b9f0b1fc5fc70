// SPDX-License-Identifier: Apache-2.0
#include "trial/frame_family.hpp"

#include <algorithm>
#include <bit>

#include "frame/checksum.hpp"

namespace dutperf {

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t), kLine = 64, kWhole = ~std::size_t{0};
// Rows of kinds that share buffers. Copying longer ones costs more than sorting buffers by kinds.
constexpr std::size_t kMostWordsOfMix = 24;

std::size_t whole_lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// The bytes of a checksum in a word, if it is there.
std::uint64_t place_in_word(std::size_t sum_at, std::size_t word_at) {
    return sum_at >= word_at && sum_at < word_at + kWord ? std::uint64_t{0xFFFF} << (8 * (sum_at - word_at)) : 0;
}

void mark(std::vector<bool>& bytes, const Range& range) {
    for (std::size_t at = range.from; at < range.to; ++at) bytes[at] = true;
}

}  // namespace

DescribedKind::DescribedKind(const DescribedTemplate& frame, std::uint32_t generation)
    : frame_(frame),
      generation_(generation),
      flows_(frame_.flow_choice()),
      word_by_frame_(frame_.words().size()),
      place_of_sum_(frame_.sums().size(), kConstant) {
    find_form();
}

void DescribedKind::find_form() {
    form_.tag_at = frame_.frame().tag_at;
    for (const auto& piece : frame_.pieces()) {
        if (!frame_.frame().fields[piece.field].by_flow) word_by_frame_[piece.word] = true;
    }
    std::vector<std::size_t> place_of_word(word_by_frame_.size());
    for (std::size_t word = 0; word < word_by_frame_.size(); ++word) {
        if (!word_by_frame_[word]) continue;
        place_of_word[word] = form_.words_at.size();
        form_.words_at.push_back(frame_.words_at()[word]);
    }
    for (std::size_t number = 0; number < frame_.frame().fields.size(); ++number) {
        const VaryingBits& bits = frame_.frame().fields[number];
        if (bits.by_flow) continue;
        FrameForm::Field field{.bits = bits, .lanes = VaryingLanes::of(bits), .pieces = {}};
        for (DescribedTemplate::Piece piece : frame_.pieces()) {
            if (piece.field != number) continue;
            piece.field = form_.fields.size();
            piece.word = place_of_word[piece.word];
            field.pieces.push_back(piece);
        }
        form_.fields.push_back(std::move(field));
        seeds_.push_back(frame_.seed_of(number));
    }
    for (std::size_t number = 0; number < frame_.sums().size(); ++number) {
        const DescribedTemplate::Sum& described = frame_.sums()[number];
        FrameForm::Sum sum{.at = described.at,
                           .zero_as_ones = described.zero_as_ones,
                           .words = {},
                           .tag_high = described.tag_high,
                           .tag_low = described.tag_low,
                           .sums = {}};
        for (std::size_t word = 0; word < word_by_frame_.size(); ++word) {
            if (word_by_frame_[word]) sum.words.push_back(described.words[word]);
        }
        for (const std::size_t inner : described.sums) {
            if (is_in_form(inner)) {
                sum.sums.push_back(place_of_sum_[inner]);
                continue;
            }
            // a checksum that follows from the flow is in the base: not again as a part of a word
            for (std::size_t word = 0; word < sum.words.size(); ++word)
                sum.words[word] &= ~place_in_word(frame_.sums()[inner].at, form_.words_at[word]);
        }
        const bool words = std::ranges::any_of(sum.words, [](std::uint64_t mask) { return mask != 0; });
        if (!words && sum.tag_high == 0 && sum.tag_low == 0 && sum.sums.empty()) continue;
        place_of_sum_[number] = form_.sums.size();
        form_.sums.push_back(std::move(sum));
    }
}

std::vector<Range> DescribedKind::by_flow() const {
    std::vector<Range> ranges;
    if (flows_.flows == 1) return ranges;
    for (const VaryingBits& field : frame_.frame().fields) {
        if (field.by_flow) ranges.push_back({field.bit / 8, (field.end() + 7) / 8});
    }
    for (std::size_t number = 0; number < frame_.sums().size(); ++number) {
        const std::size_t at = frame_.sums()[number].at;
        if (!is_in_form(number)) ranges.push_back({at, at + 2});
    }
    return ranges;
}

DescribedKind::Contents DescribedKind::of_flow(std::uint32_t flow, std::size_t reach) const {
    const std::size_t size = std::min<std::size_t>(reach, (frame_.length() + kWord - 1) / kWord * kWord);
    Contents made{.bytes = {frame_.data(), frame_.data() + size}, .bases = {}};
    std::vector<std::uint64_t> words = frame_.words();
    for (const DescribedTemplate::Piece& piece : frame_.pieces()) {
        const VaryingBits& field = frame_.frame().fields[piece.field];
        if (field.by_flow)
            words[piece.word] |= DescribedTemplate::piece_of(piece, field.value(flow, frame_.seed_of(piece.field)));
    }
    for (std::size_t w = 0; w < words.size(); ++w) {
        if (const std::size_t at = frame_.words_at()[w]; at + kWord <= size) store(&made.bytes[at], words[w]);
    }
    for (std::size_t number = 0; number < frame_.sums().size(); ++number) {
        const DescribedTemplate::Sum& sum = frame_.sums()[number];
        std::uint64_t total = sum.base;
        for (std::size_t w = 0; w < words.size(); ++w) {
            if (!word_by_frame_[w]) total = checksum_add64(total, words[w] & sum.words[w]);
        }
        for (const std::size_t inner : sum.sums) {
            if (!is_in_form(inner)) total += load<std::uint16_t>(&made.bytes[frame_.sums()[inner].at]);
        }
        if (is_in_form(number))
            made.bases.push_back(checksum_fold(total));
        else
            store(&made.bytes[sum.at], sum.zero_as_ones ? checksum_finish_udp(total) : checksum_finish(total));
    }
    return made;
}

bool FrameFamily::fit(const DescribedKind& one, const DescribedKind& other) { return one.form() == other.form(); }

std::vector<FrameFamily> FrameFamily::split(std::span<const DescribedKind> kinds) {
    std::vector<FrameFamily> families;
    for (std::size_t number = 0; number < kinds.size(); ++number) {
        const bool joined = std::ranges::any_of(families, [&](FrameFamily& family) {
            if (!fit(kinds[family.numbers_.front()], kinds[number])) return false;
            std::vector<std::size_t> numbers = family.numbers_;
            numbers.push_back(number);
            FrameFamily larger;
            if (!larger.make(kinds, std::move(numbers))) return false;
            family = std::move(larger);
            return true;
        });
        if (!joined) families.emplace_back(FrameFamily()).make(kinds, {number});
    }
    return families;
}

bool FrameFamily::make(std::span<const DescribedKind> kinds, std::vector<std::size_t> numbers) {
    numbers_ = std::move(numbers);
    const std::size_t longest = *std::ranges::max_element(numbers_, {}, [&](auto one) { return kinds[one].length(); });
    form_ = kinds[longest].form();
    length_ = kinds[longest].length();
    generation_ = kinds[longest].generation();
    bytes_ = kinds[longest].of_flow(0, kWhole).bytes;
    bytes_.resize(whole_lines(bytes_.size()));
    std::vector<bool> differs(bytes_.size());
    for (const std::size_t number : numbers_) {
        const std::vector<std::uint8_t> own = kinds[number].of_flow(0, kWhole).bytes;
        for (std::size_t at = 0; at < kinds[number].length(); ++at) {
            if (own[at] != bytes_[at]) differs[at] = true;
        }
        for (const Range& range : kinds[number].by_flow()) mark(differs, range);
        has_lengths_ |= kinds[number].length() != length_;
    }
    cut_stretches(differs);
    if (numbers_.size() > 1 && words_in_row_ > kMostWordsOfMix) return false;
    for (const Stretch& stretch : stretches_) reach_ = std::max(reach_, stretch.at + kWord * stretch.words);
    for (const std::uint16_t at : form_.words_at) reach_ = std::max(reach_, at + kWord);
    reach_ = (reach_ + kWord - 1) / kWord * kWord;  // no word is cut
    row_size_ = lengths_in_row() + (has_lengths_ ? 1 : 0);
    for (const std::size_t number : numbers_) {
        first_.push_back(row_size_ == 0 ? 0 : rows_.size() / row_size_);
        for (std::uint32_t flow = 0; flow < kinds[number].flows().flows; ++flow) add_row(kinds[number], flow);
    }
    return true;
}

// A stretch has a power of two of words, so that it is copied in few instructions, and does not leave the buffer.
void FrameFamily::cut_stretches(const std::vector<bool>& differs) {
    for (std::size_t at = 0; at < differs.size(); ++at) {
        if (!differs[at]) continue;
        std::size_t end = at;
        for (std::size_t next = at; next < std::min(at + kLine, differs.size()); ++next) {
            if (differs[next]) end = next + 1;
        }
        const std::size_t words = std::bit_ceil((end - at + kWord - 1) / kWord);
        stretches_.push_back({.at = std::min(at, bytes_.size() - words * kWord), .words = words});
        words_in_row_ += words;
        at = end - 1;
    }
}

void FrameFamily::add_row(const DescribedKind& kind, std::uint32_t flow) {
    const auto [own, bases] = kind.of_flow(flow, kind.flows().flows == 1 ? kWhole : reach_);
    std::vector<std::uint8_t> bytes(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(reach_));
    std::copy_n(own.begin(), std::min<std::size_t>(kind.length(), reach_), bytes.begin());
    for (const Stretch& stretch : stretches_) {
        for (std::size_t word = 0; word < stretch.words; ++word)
            rows_.push_back(load<std::uint64_t>(&bytes[stretch.at + kWord * word]));
    }
    for (const std::uint16_t at : form_.words_at) rows_.push_back(load<std::uint64_t>(&bytes[at]));
    rows_.insert(rows_.end(), bases.begin(), bases.end());
    static_assert(offsetof(rte_mbuf, data_len) == offsetof(rte_mbuf, pkt_len) + sizeof(std::uint32_t));
    if (has_lengths_) rows_.push_back(kind.length() | std::uint64_t{kind.length()} << 32U);
}

FrameImage FrameFamily::image() const {
    return {.data = bytes_.data(), .length = length_, .generation = generation_, .any_length = has_lengths_};
}

}  // namespace dutperf
