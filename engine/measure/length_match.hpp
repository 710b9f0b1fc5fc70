// SPDX-License-Identifier: Apache-2.0
// Which frames of a known order arrived, if nothing but their lengths and their order tells them apart. It finds the
// largest number of arrivals that are frames in their order: the fewest losses that explain what arrived. An arrival
// is no frame that had not been sent by then. The rest is paired by length: such a frame left its order.
//
// The search keeps several hypotheses, which differ in how many arrivals they leave out so far. One that leaves out
// more is kept only if its next frame is an earlier one. While the best leaves out fewer than kHypotheses arrivals in
// all, the result is exact. Losses of any number cost nothing: an arrival is compared with the next frame of its
// length.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dutperf {

// The lengths of a list of frames that is sent again and again.
class LengthCycle {
public:
    explicit LengthCycle(std::vector<std::uint16_t> lengths);

    static constexpr std::uint64_t kNone = ~std::uint64_t{0};

    [[nodiscard]] std::uint64_t size() const { return lengths_.size(); }
    // The length of frame k.
    [[nodiscard]] std::uint16_t of(std::uint64_t k) const { return lengths_[k % lengths_.size()]; }
    // The first frame from `from` on that has this length, or kNone.
    [[nodiscard]] std::uint64_t next(std::uint64_t from, std::uint16_t length) const;
    // How many of the first `frames` frames have each length.
    [[nodiscard]] std::vector<std::uint64_t> histogram(std::uint64_t frames) const;

private:
    std::vector<std::uint16_t> lengths_;
    std::vector<std::uint32_t> places_;  // of all frames, sorted by length, then by place
    std::vector<std::uint32_t> begins_;  // of each length in `places_`, and the end of the last one
};

// Arrivals in their order.
struct LengthArrivals {
    std::span<const std::uint16_t> lengths;
    std::span<const std::uint64_t> sent;  // how many frames may have been sent when it arrived
};

struct LengthMatch {
    std::uint64_t in_order = 0, reordered = 0;  // arrivals that are frames
    std::uint64_t extra = 0;                    // arrivals that are none
    std::uint32_t left_out = 0;                 // arrivals out of order: with fewer than kHypotheses the match is exact
};

inline constexpr std::size_t kHypotheses = 16;
// A frame counts as reordered if it arrived at most so many frames from its place.
inline constexpr std::uint64_t kReorderedWithin = 1000;

// `sent`: how many frames of the cycle were sent. Neither count reaches 2^32.
LengthMatch match_lengths(const LengthCycle& cycle, std::uint64_t sent, const LengthArrivals& arrived);

// The constant number of bytes by which the lengths of arrivals differ from those of the frames, if that explains more
// than half of them, and more than `matched`; otherwise 0.
int fitting_change(const LengthCycle& cycle, std::uint64_t sent, std::span<const std::uint16_t> arrived,
                   std::uint64_t matched);

}  // namespace dutperf
