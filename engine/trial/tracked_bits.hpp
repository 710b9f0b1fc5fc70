// SPDX-License-Identifier: Apache-2.0
// Counts received frames by the value of some of their bits, such as a priority that the DUT writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace dutperf {

class TrackedBits {
public:
    struct Range {
        std::uint32_t bit, bits;  // from the first bit of the frame on
    };
    static constexpr std::size_t kMostBits = 64, kMostValues = 4096;

    TrackedBits() = default;
    explicit TrackedBits(std::vector<Range> ranges) : ranges_(std::move(ranges)) { counts_.reserve(kMostValues); }

    // The value of a frame is that of all ranges, one behind the other.
    void take(const std::uint8_t* frame, std::size_t length) {
        std::uint64_t value = 0;
        for (const Range& range : ranges_) {
            if (range.bit + range.bits > 8 * length) {
                ++others_;
                return;
            }
            for (std::uint32_t bit = range.bit; bit < range.bit + range.bits; ++bit)
                value = value << 1U | (frame[bit / 8] >> (7 - bit % 8) & 1U);
        }
        count(value, 1);
    }
    void add(const TrackedBits& other) {
        for (const auto& [value, frames] : other.counts_) count(value, frames);
        others_ += other.others_;
    }

    [[nodiscard]] const std::unordered_map<std::uint64_t, std::uint64_t>& counts() const { return counts_; }
    // Frames that are too short, or have other values than the first kMostValues.
    [[nodiscard]] std::uint64_t others() const { return others_; }

private:
    void count(std::uint64_t value, std::uint64_t frames) {
        if (counts_.size() >= kMostValues && !counts_.contains(value)) {
            others_ += frames;
        } else {
            counts_[value] += frames;
        }
    }

    std::vector<Range> ranges_;
    std::unordered_map<std::uint64_t, std::uint64_t> counts_;
    std::uint64_t others_ = 0;
};

}  // namespace dutperf
