// SPDX-License-Identifier: Apache-2.0
// In ticks: frames that a sender sent while it was catching up after a standstill: what the DUT got then was a burst,
// not the intended load. A burst begins with a frame that leaves more than a millisecond after it was due, and ends
// before one that leaves less than a tenth of that late.
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
    static constexpr std::uint64_t kPunctualNs = 1'000'000;

    // Nothing was due before `start` or is after `end`.
    void start(std::uint64_t start, std::uint64_t end, std::uint64_t punctual) {
        start_ = start;
        duration_ = end - start;
        punctual_ = punctual;
        from_ = punctual;
        bin_end_ = end_of_bin();
    }

    // `count` frames, the oldest due at `due`, have left at `left`. Due times never decrease. A call has few frames:
    // all count for when the oldest was due.
    void record(std::uint64_t due, std::uint64_t left, std::uint32_t count) {
        if (left - due > from_) [[unlikely]] {
            add(due, count);
        } else {
            from_ = punctual_;
            running_ = 0;
        }
    }

    // All that another sender of the same frames has recorded. Their longest bursts may have come at once.
    void add(const LateBursts& other) {
        for (std::size_t bin = 0; bin < bins_.size(); ++bin) bins_[bin] += other.bins_[bin];
        longest_ += other.longest_;
    }

    [[nodiscard]] std::uint64_t frames() const { return std::accumulate(bins_.begin(), bins_.end(), std::uint64_t{0}); }
    // Over the same parts of the sending time as losses.
    [[nodiscard]] const MissingFrames::Bins& bins() const { return bins_; }
    // Frames of the longest burst.
    [[nodiscard]] std::uint64_t longest() const { return longest_; }

private:
    static constexpr std::uint64_t kCaughtUpShare = 10;

    void add(std::uint64_t due, std::uint32_t count) {
        from_ = punctual_ / kCaughtUpShare;
        while (due >= bin_end_ && bin_ < bins_.size() - 1) {
            ++bin_;
            bin_end_ = end_of_bin();
        }
        bins_[bin_] += count;
        running_ += count;
        longest_ = std::max(longest_, running_);
    }
    [[nodiscard]] std::uint64_t end_of_bin() const { return start_ + duration_ * (bin_ + 1) / bins_.size(); }

    std::uint64_t start_ = 0, duration_ = 0, punctual_ = 0;
    std::uint64_t from_ = 0;  // a frame that is later than this is part of a burst
    std::size_t bin_ = 0;
    std::uint64_t bin_end_ = 0;
    MissingFrames::Bins bins_{};
    std::uint64_t running_ = 0, longest_ = 0;  // frames of the burst that has not ended, and of the longest
};

}  // namespace dutperf
