// SPDX-License-Identifier: Apache-2.0
// Delays by the part of the sending time in which a frame was due. A frame's number says its part, so a frame that
// comes late or out of order counts where it belongs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "measure/histogram.hpp"
#include "measure/tester_time.hpp"

namespace dutperf {

class PartDelays {
public:
    // `ends`: for each part, the first number after it; never decreasing.
    explicit PartDelays(std::vector<std::uint64_t> ends)
        : ends_(std::move(ends)), delays_(ends_.size()), tester_(ends_.size()) {}

    // See Blocks::take_whole.
    void take_whole() {
        for (Histogram& part : delays_) part.take_whole();
    }

    // `frames` frames from this number on have up to `ticks` of the tester's time in their delays.
    void record_tester(std::uint64_t number, std::uint64_t ticks, std::uint64_t frames) {
        if (number < begin_ || number >= ends_[part_]) [[unlikely]]
            find(number);
        tester_[part_].record(ticks, frames);
    }

    // Records the delay of the frame with this number, which is below the last end.
    void record(std::uint64_t number, std::uint64_t delay) {
        if (number < begin_ || number >= ends_[part_]) [[unlikely]]
            find(number);
        delays_[part_].record(delay);
    }

    [[nodiscard]] const std::vector<Histogram>& delays() const { return delays_; }
    // The receiver's time in them.
    [[nodiscard]] const std::vector<TesterTime>& tester() const { return tester_; }

private:
    void find(std::uint64_t number) {
        const auto end = std::ranges::upper_bound(ends_, number);
        part_ = std::min(static_cast<std::size_t>(end - ends_.begin()), ends_.size() - 1);
        begin_ = part_ == 0 ? 0 : ends_[part_ - 1];
    }

    std::vector<std::uint64_t> ends_;
    std::vector<Histogram> delays_;
    std::vector<TesterTime> tester_;
    std::size_t part_ = 0;
    std::uint64_t begin_ = 0;  // of the part of the last frame
};

}  // namespace dutperf
