// SPDX-License-Identifier: Apache-2.0
#include "frame/mixed_match.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "frame/checksum.hpp"
#include "frame/vlan_tags.hpp"

namespace dutperf {

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::uint8_t kKindBits = 0xFFU << kStreamKindShift & 0xFFU;

// All ones in the lanes that are 0.
Lanes is_zero(Lanes lanes) { return reinterpret_cast<Lanes>(lanes == Lanes{}); }

bool is_odd(std::size_t number) { return number % 2 != 0; }

// The places of a burst.
constexpr std::array kAll = [] {
    std::array<std::uint8_t, MixedMatch::kMaxFrames> all{};
    std::iota(all.begin(), all.end(), std::uint8_t{0});
    return all;
}();

}  // namespace

// `bits`: of each byte.
void MixedMatch::Reference::mask(Words& words, const Range& range, std::uint8_t bits) const {
    for (std::size_t at = range.from; at < range.to; ++at)
        words[(at - begin) / kWord] |= std::uint64_t{bits} << (8 * ((at - begin) % kWord));
}

// The types and the number of the tags are the same in all frames that match anyway.
void MixedMatch::Reference::take_vlans(const std::uint8_t* frame) {
    constexpr std::uint8_t kUpper = VlanTag::kVlanMask >> 8U;
    for (std::size_t type = ethernet::kType, end = network_of(frame, length).at; type + 2 < end;
         type += ethernet::kVlanTagSize) {
        mask(same_mask, {type + 2, type + 3}, kUpper);
        mask(same_mask, {type + 3, type + 4});
    }
}

void MixedMatch::Reference::take_address(const AlsoSame::Address& address) {
    const auto& [at, but] = address;
    for (std::size_t byte = at.from; byte < at.to && at.from >= begin; ++byte)
        mask(same_mask, {byte, byte + 1}, static_cast<std::uint8_t>(~but.bytes[byte - at.from]));
}

bool MixedMatch::Reference::take_same(const std::vector<Range>& ranges) {
    for (const Range& range : ranges) {
        if (range.size() == 0) continue;
        if (range.from < begin || range.to > tag_at + kTagSize) return false;
        mask(same_mask, range);
    }
    return true;
}

// Whether the bytes of the range are those of the reference in all frames that match.
bool MixedMatch::Reference::is_same(const Range& range) const {
    if (range.from < begin || range.to > tag_at + kTagSize) return false;
    Words wanted{};
    mask(wanted, range);
    return std::ranges::equal(wanted, same_mask, [](auto want, auto has) { return (want & ~has) == 0; });
}

// Only one tail is summed.
bool MixedMatch::Reference::take_tail(const Range& range) {
    const std::size_t tag_end = tag_at + kTagSize, size = range.to - tag_end;
    if (range.from > tag_end || (tail != 0 && tail != size)) return false;
    tail = size;
    return true;
}

bool MixedMatch::Reference::take_sum(const Reading::Sum& read, const std::uint8_t* frame) {
    const std::size_t tag_end = tag_at + kTagSize;
    Words covered{};
    Sum sum;
    sum.plus = read.plus;
    for (std::size_t i = 0; i < read.ranges.size(); ++i) {
        const Range& range = read.ranges[i];
        const bool twice =
            std::any_of(read.ranges.begin(), read.ranges.begin() + static_cast<std::ptrdiff_t>(i),
                        [&](const Range& other) { return range.from < other.to && other.from < range.to; });
        if (is_same(range)) {  // at any offset, such as the last address of a source route
            sum.plus += checksum_add(frame + range.from, range.size());
            continue;
        }
        if (is_odd(range.from) || range.from < begin || twice) return false;
        mask(covered, {range.from, std::min(range.to, tag_end)});
        if (range.to <= tag_end) continue;
        if (sum.tail || !take_tail(range)) return false;
        sum.tail = true;
    }
    for (std::size_t word = 0; word < count; ++word) {
        if (covered[word] != 0) sum.parts.push_back({word, covered[word]});
    }
    if (read.not_zero_at != 0) {
        const std::size_t at = read.not_zero_at - begin;
        sum.not_zero = {at / kWord, std::uint64_t{0xFFFF} << (8 * (at % kWord))};
    }
    sums.push_back(std::move(sum));
    return true;
}

bool MixedMatch::Reference::take_sums(const std::vector<Reading::Sum>& read, const std::uint8_t* frame) {
    return read.size() <= kMostSums && std::ranges::all_of(read, [&](const auto& sum) { return take_sum(sum, frame); });
}

bool MixedMatch::prepare(Reference& made, const std::uint8_t* frame, std::size_t length,
                         std::span<const std::uint16_t> tags_from_end, const AlsoSame& also) {
    Reading reading;
    const Dissected dissected = dissect(frame, length, tags_from_end, reading);
    if (dissected.tag == nullptr || !dissected.intact) return false;
    made.length = length;
    made.tag_at = static_cast<std::size_t>(dissected.tag - frame);
    const std::size_t tag_end = made.tag_at + kTagSize;
    made.count = (tag_end - ethernet::kType + kWord - 1) / kWord;
    if (made.count > kMostWords || made.count * kWord > tag_end || is_odd(tag_end)) return false;
    made.begin = tag_end - made.count * kWord;
    if (!made.take_same(reading.same)) return false;
    made.take_address(also.destination);
    made.take_address(also.outer_destination);
    if (!made.take_sums(reading.sums, frame)) return false;
    if (also.vlans) made.take_vlans(frame);
    for (std::size_t word = 0; word < made.count; ++word)
        made.same[word] = load<std::uint64_t>(frame + made.begin + kWord * word) & made.same_mask[word];
    made.source = dissected.source;
    made.identity = load<std::uint64_t>(dissected.tag);
    const Tag tag = read_tag(dissected.tag);
    made.rest = identity_of(tag) << kIdentityShift;
    return true;
}

std::uint64_t MixedMatch::identity_of(const Tag& tag) {
    const auto stream = static_cast<std::uint8_t>(tag.stream & ~kKindBits);
    const auto same = std::ranges::find_if(identities_, [&](const Tag& one) {
        return one.trial == tag.trial && one.stream == stream && one.pair == tag.pair;
    });
    const auto place = static_cast<std::uint64_t>(same - identities_.begin());
    if (same == identities_.end())
        identities_.push_back({.trial = tag.trial, .stream = stream, .pair = tag.pair, .sequence = 0, .stamp = 0});
    return place;
}

void MixedMatch::set_reference(const std::uint8_t* frame, std::size_t length,
                               std::span<const std::uint16_t> tags_from_end, const AlsoSame& also) {
    if (settings_ == kMostSettings || length >= kLengths) return;
    ++settings_;
    Reference made;
    if (!prepare(made, frame, length, tags_from_end, also)) return;
    const auto same = std::find_if(references_.begin() + 1, references_.end(), [&](const Reference& one) {
        return one.length == made.length && one.tag_at == made.tag_at && one.identity == made.identity;
    });
    if (same != references_.end()) {
        made.next = same->next;
        *same = std::move(made);
    } else if (references_.size() < kMostReferences) {
        made.next = std::exchange(first_of_length_[length], static_cast<std::uint8_t>(references_.size()));
        references_.push_back(std::move(made));
    }
}

void MixedMatch::match(std::size_t count) {
    const std::span of(reference_of_.data(), count);
    unsigned differ = 0;
    for (const std::uint8_t one : of) differ |= static_cast<unsigned>(one ^ of.front());  // without branches: in lanes
    if (differ == 0 && of.front() != kNone) {
        read(references_[of.front()], {kAll.data(), count});
        return match_lanes(references_[of.front()], count, sequence_, rest_);
    }
    for (std::size_t i = 0; i < count; ++i) members_[of[i]][sizes_[of[i]]++] = static_cast<std::uint8_t>(i);
    for (std::size_t i = 0; i < sizes_[kNone]; ++i) sequence_[members_[kNone][i]] = kMismatch;
    sizes_[kNone] = 0;
    for (std::size_t number = 1; number < references_.size(); ++number) {
        const std::size_t size = std::exchange(sizes_[number], std::uint8_t{0});
        if (size != 0) match_group(references_[number], {members_[number].data(), size});
    }
}

void MixedMatch::read(const Reference& reference, Members members) {
    read_any(reference, members);
    if (reference.tail == 0) return;
    const std::size_t tag_end = reference.tag_at + kTagSize;
    for (std::size_t i = 0; i < members.size(); ++i)
        tails_[i] = checksum_add(frames_[members[i]] + tag_end, reference.tail);
}

void MixedMatch::match_group(const Reference& reference, Members members) {
    read(reference, members);
    match_lanes(reference, members.size(), group_sequence_, group_rest_);
    for (std::size_t i = 0; i < members.size(); ++i) {
        sequence_[members[i]] = group_sequence_[i];
        rest_[members[i]] = group_rest_[i];
    }
}

// The number of words is known to the compiler, so that it makes no loop of them.
template <std::size_t Count>
void MixedMatch::read_words(const Reference& reference, Members members) {
    const std::size_t begin = reference.begin;
    for (std::size_t i = 0; i < members.size(); ++i) {
        const std::uint8_t* frame = frames_[members[i]] + begin;
        [&]<std::size_t... w>(std::index_sequence<w...>) {
            ((words_[w][i] = load<std::uint64_t>(frame + kWord * w)), ...);
        }
        (std::make_index_sequence<Count>{});
    }
}

void MixedMatch::read_any(const Reference& reference, Members members) {
    using Read = void (MixedMatch::*)(const Reference&, Members);
    static constexpr auto kReads = []<std::size_t... count>(std::index_sequence<count...>) {
        return std::array<Read, sizeof...(count)>{&MixedMatch::read_words<count>...};
    }
    (std::make_index_sequence<kMostWords + 1>{});
    (this->*kReads[reference.count])(reference, members);
}

void MixedMatch::match_lanes(const Reference& reference, std::size_t count, Column& sequence, Column& rest) const {
    std::size_t i = 0;
    for (; i + 2 * kLanes < count; i += kGroups * kLanes) match_lanes<kGroups>(reference, i, sequence, rest);
    if (i >= count) return;
    if (count - i > kLanes)
        match_lanes<2>(reference, i, sequence, rest);
    else
        match_lanes<1>(reference, i, sequence, rest);
}

// Of some groups of lanes from frame i on: masks are read once for all of them.
template <std::size_t Groups>
void MixedMatch::match_lanes(const Reference& reference, std::size_t i, Column& sequence, Column& rest) const {
    std::array<Lanes, Groups> mismatch{}, total{};
    const auto each = [](const auto& of_group) {
        [&]<std::size_t... group>(std::index_sequence<group...>) { (of_group(group), ...); }
        (std::make_index_sequence<Groups>{});
    };
    const auto word = [&](std::size_t number, std::size_t group) {
        return load_lanes(&words_[number][i + group * kLanes]);
    };
    for (std::size_t number = 0; number < reference.count; ++number) {
        const std::uint64_t mask = reference.same_mask[number], same = reference.same[number];
        each([&](std::size_t group) { mismatch[group] |= (word(number, group) & mask) ^ same; });
    }
    for (const Sum& sum : reference.sums) {
        each([&](std::size_t group) {
            total[group] = sum.plus + (sum.tail ? load_lanes(&tails_[i + group * kLanes]) : Lanes{});
        });
        for (const Sum::Part& part : sum.parts)
            each([&](std::size_t group) {
                total[group] = checksum_add64(total[group], word(part.word, group) & part.mask);
            });
        each([&](std::size_t group) { mismatch[group] |= checksum_folded(total[group]) ^ 0xFFFFU; });
        if (sum.not_zero.mask == 0) continue;
        each(
            [&](std::size_t group) { mismatch[group] |= is_zero(word(sum.not_zero.word, group) & sum.not_zero.mask); });
    }
    each([&](std::size_t group) {
        const Lanes end = word(reference.count - 1, group), before = word(reference.count - 2, group);
        const Lanes high = swap64(before >> 48U | end << 16U), low = swap16(end >> 48U);
        const Lanes wrong = (mismatch[group] | -mismatch[group]) & kMismatch;
        store_lanes(&sequence[i + group * kLanes], tag_sequence(high) | wrong);
        store_lanes(&rest[i + group * kLanes], tag_stamp(high, low) | reference.rest);
    });
}

}  // namespace dutperf
