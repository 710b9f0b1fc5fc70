// SPDX-License-Identifier: Apache-2.0
// Late bursts: after a stall the sender sends overdue frames back to back, so the DUT gets a burst instead of the
// intended load. A late burst begins with a frame that leaves more than a millisecond after it was due. It ends before
// a frame that is less than a tenth of that late.
//
// Stalls too short for that fill a short queue of the DUT all the same, so all late frames are counted too: from one
// later than 0.2 ms, or than half the time between two frames, until one less than half as late. Times are in ticks.
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
    // From so long after it was due a frame is late, in ns.
    static constexpr std::uint64_t late_ns(std::uint64_t rate_fps) {
        constexpr std::uint64_t kShortestNs = 200'000, kHalfSecondNs = 500'000'000;
        return std::clamp(kHalfSecondNs / std::max<std::uint64_t>(1, rate_fps), kShortestNs, kBurstThresholdNs);
    }

    // All frames are due from `start` to `end`. A frame that is later than `threshold` begins a burst; those
    // from one later than `late`, which is no more, are late frames.
    void start(std::uint64_t start, std::uint64_t end, std::uint64_t threshold, std::uint64_t late) {
        start_ = start;
        duration_ = end - start;
        threshold_ = threshold;
        late_ = late;
        be_punctual();
        bin_end_ = end_of_bin();
    }

    // `count` frames left at `left`; the oldest was due at `due`. Due times never decrease. All frames of a call count
    // in the bin of the oldest; a call has few frames.
    void record(std::uint64_t due, std::uint64_t left, std::uint32_t count) {
        if (left - due > noted_from_) [[unlikely]] {
            add(due, left - due, count);
        } else {
            be_punctual();
        }
    }

    // Adds what another sender of the same direction recorded. The longest bursts are summed: they may have been sent
    // at the same time.
    void add(const LateBursts& other) {
        for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
            bins_[bin] += other.bins_[bin];
            late_bins_[bin] += other.late_bins_[bin];
        }
        longest_ += other.longest_;
    }

    [[nodiscard]] std::uint64_t frames() const { return std::accumulate(bins_.begin(), bins_.end(), std::uint64_t{0}); }
    // Over the same parts of the sending time as losses.
    [[nodiscard]] const MissingFrames::Bins& bins() const { return bins_; }
    // Of all late frames, whether or not they left in a late burst.
    [[nodiscard]] const MissingFrames::Bins& late_bins() const { return late_bins_; }
    [[nodiscard]] std::uint64_t late_frames() const {
        return std::accumulate(late_bins_.begin(), late_bins_.end(), std::uint64_t{0});
    }
    // Whether the frames that were recorded last left in a burst.
    [[nodiscard]] bool in_burst() const { return running_ != 0; }
    // Frames in the longest burst.
    [[nodiscard]] std::uint64_t longest() const { return longest_; }

private:
    static constexpr std::uint64_t kEndShare = 10;

    void be_punctual() {
        running_ = 0;
        burst_from_ = threshold_;
        late_from_ = noted_from_ = late_;
    }
    void add(std::uint64_t due, std::uint64_t lateness, std::uint32_t count) {
        while (due >= bin_end_ && bin_ < bins_.size() - 1) {
            ++bin_;
            bin_end_ = end_of_bin();
        }
        const bool late = lateness > late_from_, burst = lateness > burst_from_;
        late_from_ = late ? late_ / 2 : late_;
        burst_from_ = burst ? threshold_ / kEndShare : threshold_;
        noted_from_ = std::min(late_from_, burst_from_);
        late_bins_[bin_] += late ? count : 0;
        bins_[bin_] += burst ? count : 0;
        running_ = burst ? running_ + count : 0;
        longest_ = std::max(longest_, running_);
    }
    [[nodiscard]] std::uint64_t end_of_bin() const { return start_ + duration_ * (bin_ + 1) / bins_.size(); }

    std::uint64_t start_ = 0, duration_ = 0, threshold_ = 0, late_ = 0;
    std::uint64_t burst_from_ = 0;  // a frame later than this belongs to a burst
    std::uint64_t late_from_ = 0;   // ... than this is a late frame
    std::uint64_t noted_from_ = 0;  // the lower of both
    std::size_t bin_ = 0;
    std::uint64_t bin_end_ = 0;
    MissingFrames::Bins bins_{}, late_bins_{};
    std::uint64_t running_ = 0, longest_ = 0;  // frames in the current burst, and in the longest
};

}  // namespace dutperf
