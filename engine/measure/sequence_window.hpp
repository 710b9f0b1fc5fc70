// SPDX-License-Identifier: Apache-2.0
// Tells new frames from duplicates, and frames in order from reordered ones (RFC 4737: a frame is reordered when one
// with a higher number arrived before it), and records the missing ones. A trial of up to 67 million frames (8 MiB) has
// a bitmap of all frames. A longer trial has a window of that size that slides upwards: a frame that is missing when
// the window passes it stays missing. Windows of receivers that share a direction are merged after the trial, so they
// hold the whole trial at any length.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "frame/lanes.hpp"
#include "measure/missing_frames.hpp"
#include "platform/zeros.hpp"

namespace dutperf {

class SequenceWindow {
public:
    // See MissingFrames::on_missing. To be called before the first insert.
    void on_missing(std::function<void(std::uint64_t, std::uint64_t)> visit) { missing_.on_missing(std::move(visit)); }

    enum class Arrival : std::uint8_t { in_order, reordered, duplicate };

    // `largest`: the most frames that the window holds; for a longer trial it slides.
    explicit SequenceWindow(std::uint64_t frames, const MissingFrames::Bounds& bounds = {},
                            std::uint64_t largest = std::uint64_t{1} << 26U)
        : words_(std::bit_ceil(std::max<std::uint64_t>(1, (std::min(frames, largest) + 63) / 64))),
          slides_(frames > words_.size() * 64),
          missing_(bounds) {}

    // See Zeros::touch.
    void touch() { words_.touch(); }

    Arrival insert(std::uint64_t number) {
        if (number == end_ && number % 64 != 0) [[likely]] {
            // mark() sets the bits of a run together: set one by one, each would wait for the one before
            end_ = number + 1;
            return Arrival::in_order;
        }
        mark();
        if (number >= end_) {
            if (slides_) slide_to(number);
            end_ = marked_ = number + 1;
            word_of(number) |= bit_of(number);
            return Arrival::in_order;
        }
        // a frame from before the window may be a duplicate: never count it twice
        if (end_ - number > words_.size() * 64 - 64 && slides_) return Arrival::duplicate;
        std::uint64_t& word = word_of(number);
        if ((word & bit_of(number)) != 0) return Arrival::duplicate;
        word |= bit_of(number);
        return Arrival::reordered;
    }

    // Inserts increasing numbers, all in order, if they are above all numbers seen so far. Otherwise does nothing and
    // returns false.
    bool extend(std::span<const std::uint64_t> numbers) {
        const std::uint64_t first = numbers.front(), end = numbers.back() + 1;
        if (first == end_ && end - first == numbers.size()) [[likely]] {
            extend_without_gap(end);
            return true;
        }
        if (first < end_ || (slides_ && (end - 1) / 64 - first / 64 >= words_.size()))
            return false;  // the window cannot hold them all
        mark();
        if (slides_) slide_to(end - 1);
        insert_in_order(numbers);
        end_ = marked_ = end;
        return true;
    }

    // Merges the window of another receiver of the same direction; neither may slide. Calls `on_both(number)` in order
    // for each frame that both received. After the last insert.
    template <class OnBoth>
    void merge(SequenceWindow& other, const OnBoth& on_both) {
        mark();
        other.mark();
        for (std::size_t i = 0; i < words_.size(); ++i) {
            for (std::uint64_t both = words_[i] & other.words_[i]; both != 0; both &= both - 1)
                on_both(i * 64 + static_cast<unsigned>(std::countr_zero(both)));
            words_[i] |= other.words_[i];
        }
        end_ = marked_ = std::max(end_, other.end_);
    }

    // The missing frames below `sent`. To be called once, after the last insert.
    const MissingFrames& missing_of(std::uint64_t sent) {
        mark();
        settle_up_to(std::min(sent, entered() * 64));
        if (settled_ < sent) missing_.add(settled_, sent - settled_);
        return missing_;
    }

private:
    static constexpr std::size_t kTogether = 32;

    [[nodiscard]] std::uint64_t& word_of(std::uint64_t number) { return words_[(number / 64) & (words_.size() - 1)]; }
    static std::uint64_t bit_of(std::uint64_t number) { return std::uint64_t{1} << (number % 64); }

    // Extends up to `end`.
    void extend_without_gap(std::uint64_t end) {
        while (end_ != end) {
            insert(end_);
            end_ = std::min(end, (end_ + 63) / 64 * 64);  // the rest of this word
        }
    }

    // Writes a word once for many numbers; otherwise each bit would wait for the one before.
    void insert_in_order(std::span<const std::uint64_t> numbers) {
        for (; numbers.size() >= kTogether; numbers = numbers.subspan(kTogether)) {
            const auto some = numbers.first<kTogether>();
            if (some.back() / 64 - some.front() / 64 <= 1) {
                insert_in_two_words(some);
            } else {
                insert_word_by_word(some);
            }
        }
        if (!numbers.empty()) insert_word_by_word(numbers);
    }

    void insert_word_by_word(std::span<const std::uint64_t> numbers) {
        std::uint64_t at = numbers.front() / 64, bits = 0;
        for (const std::uint64_t number : numbers) {
            if (number / 64 != at) {
                word_of(at * 64) |= bits;
                at = number / 64;
                bits = 0;
            }
            bits |= bit_of(number);
        }
        word_of(at * 64) |= bits;
    }

    // For a receiver that shares a direction: it gets every second number, for example.
    void insert_in_two_words(std::span<const std::uint64_t, kTogether> numbers) {
        const std::uint64_t first = numbers.front() / 64;
        Lanes in_first{}, in_second{};
        for (std::size_t i = 0; i < kTogether; i += kLanes) {
            const Lanes some = load_lanes(&numbers[i]), bits = std::uint64_t{1} << (some % 64);
            const auto is_first = reinterpret_cast<Lanes>(some / 64 == first);
            in_first |= bits & is_first;
            in_second |= bits & ~is_first;
        }
        word_of(first * 64) |= any_of(in_first);
        word_of(first * 64 + 64) |= any_of(in_second);  // adds no bits if no number is in the second word
    }

    // Sets the bits of the run that are not set yet; the run is within one word.
    void mark() {
        if (marked_ == end_) return;
        word_of(marked_) |= (~std::uint64_t{0} >> (64 - (end_ - marked_))) << (marked_ % 64);
        marked_ = end_;
    }

    // Words that hold numbers up to the highest seen.
    [[nodiscard]] std::uint64_t entered() const { return (end_ + 63) / 64; }

    // Slides the window up to `number`: settles the words that leave it, then clears the words that enter it.
    void slide_to(std::uint64_t number) {
        const std::uint64_t last = number / 64, first = entered();
        if (last < first) return;
        if (last >= words_.size()) leave(std::min(first, last + 1 - words_.size()), last + 1 - words_.size());
        const std::uint64_t count = std::min<std::uint64_t>(last - first + 1, words_.size());
        for (std::uint64_t i = 0; i < count; ++i) words_[(last - i) & (words_.size() - 1)] = 0;
    }

    // Words leave the window. Those below `seen` are settled by their bits; from there to `end` every frame is missing.
    void leave(std::uint64_t seen, std::uint64_t end) {
        settle_up_to(seen * 64);
        if (end <= seen) return;
        missing_.add(settled_, end * 64 - settled_);
        settled_ = end * 64;
    }

    void settle_up_to(std::uint64_t end) {
        while (settled_ < end) {
            const std::uint64_t size = std::min<std::uint64_t>(64, end - settled_);
            const std::uint64_t within = size == 64 ? ~std::uint64_t{0} : bit_of(size) - 1;
            settle(~word_of(settled_) & within);
            settled_ += size;
        }
    }

    // `absent`: a bit for each missing frame of the word at settled_.
    void settle(std::uint64_t absent) {
        while (absent != 0) [[unlikely]] {
                const int from = std::countr_zero(absent), count = std::countr_one(absent >> from);
                missing_.add(settled_ + static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(count));
                absent &= count == 64 ? 0 : ~(((std::uint64_t{1} << count) - 1) << from);
            }
    }

    Zeros<std::uint64_t> words_;
    bool slides_;
    MissingFrames missing_;
    std::uint64_t end_ = 0;      // highest number seen + 1
    std::uint64_t marked_ = 0;   // every number from here to end_ was received but its bit is not set yet
    std::uint64_t settled_ = 0;  // every number below was received or is in missing_
};

}  // namespace dutperf
