// SPDX-License-Identifier: Apache-2.0
// Missing frames, added in the order of their numbers: their total, the first and the last, the longest run of
// consecutive numbers, and the count in each of 250 equal parts of the sending time. Nothing shows when a frame was
// lost, but the schedule says when it was due, so losses have times.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace dutperf {

class MissingFrames {
public:
    static constexpr std::size_t kBins = 250;
    using Bins = std::array<std::uint64_t, kBins>;
    using Bounds = std::array<std::uint64_t, kBins>;  // for each bin, the first number after it; never decreasing

    explicit MissingFrames(const Bounds& bounds) : bounds_(bounds) {}

    // Calls `visit(number, count)` for all that are added from now on.
    void on_missing(std::function<void(std::uint64_t, std::uint64_t)> visit) { visit_ = std::move(visit); }

    // Adds `count` (> 0) frames from `number` on; all must be above those added before.
    void add(std::uint64_t number, std::uint64_t count) {
        if (total_ == 0) first_ = number;
        run_ = total_ != 0 && number == last_ + 1 ? run_ + count : count;
        longest_run_ = std::max(longest_run_, run_);
        total_ += count;
        last_ = number + count - 1;
        for (std::uint64_t at = number; at <= last_;) at = fill(at);
        if (visit_) visit_(number, count);
    }

    [[nodiscard]] std::uint64_t total() const { return total_; }
    [[nodiscard]] std::uint64_t first() const { return first_; }  // valid if total() != 0; the same holds below
    [[nodiscard]] std::uint64_t last() const { return last_; }
    [[nodiscard]] std::uint64_t longest_run() const { return longest_run_; }
    [[nodiscard]] const Bins& bins() const { return bins_; }

private:
    // Counts the missing frames from `at` on that are in the same bin; returns the number after them. Numbers beyond
    // all bounds belong to the last bin.
    std::uint64_t fill(std::uint64_t at) {
        while (bin_ < kBins - 1 && at >= bounds_[bin_]) ++bin_;
        const std::uint64_t end = bin_ < kBins - 1 ? std::min(last_ + 1, bounds_[bin_]) : last_ + 1;
        bins_[bin_] += end - at;
        return end;
    }

    Bounds bounds_;
    std::function<void(std::uint64_t, std::uint64_t)> visit_;
    Bins bins_{};
    std::size_t bin_ = 0;
    std::uint64_t total_ = 0, first_ = 0, last_ = 0, run_ = 0, longest_run_ = 0;
};

}  // namespace dutperf
