// SPDX-License-Identifier: Apache-2.0
// Late bursts: after a stall the sender sends overdue frames back to back, so the DUT gets a burst instead of the
// intended load. A late burst begins with a frame that leaves more than a millisecond after it was due. It ends before
// a frame that is less than a tenth of that late. Times are in ticks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "measure/missing_frames.hpp"

namespace dutperf {

class LateBursts {
public:
    static constexpr std::uint64_t kBurstThresholdNs = 1'000'000;

    // All frames are due from `start` to `end`. A frame that is later than `threshold` begins a burst.
    void start(std::uint64_t start, std::uint64_t end, std::uint64_t threshold) {
        start_ = start;
        duration_ = end - start;
        threshold_ = threshold;
        from_ = threshold;
        bin_end_ = end_of_bin();
    }

    // `count` frames left at `left`; the oldest was due at `due`. Due times never decrease. All frames of a call count
    // in the bin of the oldest; a call has few frames.
    void record(std::uint64_t due, std::uint64_t left, std::uint32_t count) {
        if (left - due > from_) [[unlikely]] {
            add(due, count);
        } else {
            from_ = threshold_;
            running_ = 0;
        }
    }

    // Adds what another sender of the same direction recorded. The longest bursts are summed: they may have been sent
    // at the same time.
    void add(const LateBursts& other) {
        for (std::size_t bin = 0; bin < bins_.size(); ++bin) bins_[bin] += other.bins_[bin];
        longest_ += other.longest_;
    }

    [[nodiscard]] std::uint64_t frames() const { return std::accumulate(bins_.begin(), bins_.end(), std::uint64_t{0}); }
    // Over the same parts of the sending time as losses.
    [[nodiscard]] const MissingFrames::Bins& bins() const { return bins_; }
    // Whether the frames that were recorded last left in a burst.
    [[nodiscard]] bool in_burst() const { return running_ != 0; }
    // Frames in the longest burst.
    [[nodiscard]] std::uint64_t longest() const { return longest_; }

private:
    static constexpr std::uint64_t kEndShare = 10;

    void add(std::uint64_t due, std::uint32_t count) {
        from_ = threshold_ / kEndShare;
        while (due >= bin_end_ && bin_ < bins_.size() - 1) {
            ++bin_;
            bin_end_ = end_of_bin();
        }
        bins_[bin_] += count;
        running_ += count;
        longest_ = std::max(longest_, running_);
    }
    [[nodiscard]] std::uint64_t end_of_bin() const { return start_ + duration_ * (bin_ + 1) / bins_.size(); }

    std::uint64_t start_ = 0, duration_ = 0, threshold_ = 0;
    std::uint64_t from_ = 0;  // a frame later than this belongs to a burst
    std::size_t bin_ = 0;
    std::uint64_t bin_end_ = 0;
    MissingFrames::Bins bins_{};
    std::uint64_t running_ = 0, longest_ = 0;  // frames in the current burst, and in the longest
};

}  // namespace dutperf
