// SPDX-License-Identifier: Apache-2.0
// Tells new frames from duplicates and frames in order from those that were overtaken (RFC 4737: a frame is reordered when one with a higher
// number arrived before it). A bitmap of the whole trial where that fits into 8 MiB (67 million frames), a window of that size that slides above it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace dutperf {

class SequenceWindow {
public:
    enum class Arrival : std::uint8_t { in_order, overtaken, duplicate };

    explicit SequenceWindow(std::uint64_t frames, std::uint64_t largest = std::uint64_t{1} << 26U)
        : words_(std::bit_ceil(std::max<std::uint64_t>(1, (std::min(frames, largest) + 63) / 64))), slides_(frames > words_.size() * 64) {}

    Arrival insert(std::uint64_t number) {
        if (number >= end_) {
            if (slides_) forget_up_to(number);
            end_ = number + 1;
            word_of(number) |= bit_of(number);
            return Arrival::in_order;
        }
        // a frame from before the window can no longer be told from a duplicate, and is not counted a second time
        if (end_ - number > words_.size() * 64 - 64 && slides_) return Arrival::duplicate;
        std::uint64_t& word = word_of(number);
        if ((word & bit_of(number)) != 0) return Arrival::duplicate;
        word |= bit_of(number);
        return Arrival::overtaken;
    }

private:
    [[nodiscard]] std::uint64_t& word_of(std::uint64_t number) { return words_[(number / 64) & (words_.size() - 1)]; }
    static std::uint64_t bit_of(std::uint64_t number) { return std::uint64_t{1} << (number % 64); }

    // Clears the words that the window enters when it comes to reach up to `number`.
    void forget_up_to(std::uint64_t number) {
        const std::uint64_t last = number / 64, first = end_ == 0 ? 0 : (end_ - 1) / 64 + 1;
        if (last < first) return;
        const std::uint64_t count = std::min<std::uint64_t>(last - first + 1, words_.size());
        for (std::uint64_t i = 0; i < count; ++i) words_[(last - i) & (words_.size() - 1)] = 0;
    }

    std::vector<std::uint64_t> words_;
    bool slides_;
    std::uint64_t end_ = 0;  // one above the highest number seen
};

}  // namespace dutperf
