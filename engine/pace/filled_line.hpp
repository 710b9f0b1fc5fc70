// SPDX-License-Identifier: Apache-2.0
// Pacing by the wire, after MoonGen (Emmerich et al., IMC 2015, section 8): the sender fills the line without a gap, so
// the place of a frame among the bytes is its time. A filler takes the byte times between a frame and the next one.
// Places and lengths are in byte times of the medium. They include the FCS, the preamble, and the gap between frames.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "frame/layout.hpp"

namespace dutperf {

// Byte times of a buffer of `length` bytes, which has no FCS.
constexpr std::uint32_t on_line(std::uint32_t length) {
    return length + static_cast<std::uint32_t>(kFcsSize + kPreambleAndGap);
}

inline constexpr std::uint32_t kShortestOnLine = on_line(kMinEthernetLength);

// Byte times per second of a medium.
constexpr std::uint64_t line_hz(std::uint32_t mbps) { return mbps * std::uint64_t{125'000}; }

// What comes next on the line. No frame leaves before its place. As no filler is shorter than kShortestOnLine, a frame
// leaves up to kShortestOnLine - 1 byte times after it; the next gap is shorter by that, so that errors do not add up.
class LinePlan {
public:
    // `longest`: of a filler.
    explicit LinePlan(std::uint32_t longest) : longest_(std::max(longest, kShortestOnLine)) {}

    [[nodiscard]] std::uint64_t place() const { return place_; }

    // The length of the filler that comes next, before a frame due at `due`; 0: the frame itself comes next.
    [[nodiscard]] std::uint32_t filler_before(std::uint64_t due) const {
        if (due <= place_) return 0;
        const std::uint64_t gap = due - place_;
        if (gap <= longest_) return std::max(kShortestOnLine, static_cast<std::uint32_t>(gap));
        if (gap >= longest_ + kShortestOnLine) return longest_;
        return std::max(kShortestOnLine, static_cast<std::uint32_t>(gap) - kShortestOnLine);
    }

    void add(std::uint32_t length) { place_ += length; }

private:
    std::uint32_t longest_;
    std::uint64_t place_ = 0;
};

// Whether the line may have been idle. A driver that accepts no more frames holds at least half a ring of them, and
// they leave at the medium's rate. The other half is for frames that have left and that the driver has not noticed yet.
// It never holds more than the ring, so it is also known when a frame has left at the latest. Times are in ticks after
// the start.
class LineWatch {
public:
    // `byte_ticks`: time of a byte. The card's clock may differ by the share `clock_difference`.
    LineWatch(std::uint32_t ring, double byte_ticks, double clock_difference)
        : ring_(ring),
          held_(std::max(1U, ring / 2)),
          mask_(std::bit_ceil(std::uint64_t{ring} + 1) - 1),
          shortest_byte_(byte_ticks / (1 + clock_difference)),
          longest_byte_(byte_ticks * (1 + clock_difference)),
          ends_(mask_ + 1) {}

    // A call of the driver began and ended, and took frames. `watched`: an idle line before them matters.
    void begin_call(double began, double ended, bool watched) {
        if (watched && ended > busy_until_) {
            ++times_idle_;
            longest_idle_ = std::max(longest_idle_, ended - busy_until_);
        }
        busy_until_ = std::max(busy_until_, began);
    }

    // The call took a frame of this length. Returns the earliest time at which the frame can have left.
    double add(std::uint32_t length) {
        const double earliest = busy_until_;
        busy_until_ += length * shortest_byte_;
        const std::uint64_t end = ends_[count_ & mask_] + length;
        ends_[++count_ & mask_] = end;
        return earliest;
    }

    // A call that began then found the ring full.
    void ring_was_full(double began) {
        if (count_ >= held_) busy_until_ = std::max(busy_until_, began + length_of_last(held_) * shortest_byte_);
    }

    // When the frame that was taken last has left at the latest, if its call ended then.
    [[nodiscard]] double latest(double ended) const {
        return ended + length_of_last(std::min(ring_, count_)) * longest_byte_;
    }

    [[nodiscard]] std::uint64_t times_idle() const { return times_idle_; }
    [[nodiscard]] double longest_idle() const { return longest_idle_; }

private:
    [[nodiscard]] double length_of_last(std::uint64_t frames) const {
        return static_cast<double>(ends_[count_ & mask_] - ends_[(count_ - frames) & mask_]);
    }

    std::uint64_t ring_, held_, mask_;
    double shortest_byte_, longest_byte_;
    std::vector<std::uint64_t> ends_;  // of the frame n at n & mask_
    std::uint64_t count_ = 0;
    double busy_until_ = std::numeric_limits<double>::lowest();  // at least
    std::uint64_t times_idle_ = 0;
    double longest_idle_ = 0;
};

}  // namespace dutperf
