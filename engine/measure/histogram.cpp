// SPDX-License-Identifier: Apache-2.0
#include "measure/histogram.hpp"

#include <cmath>

namespace dutperf {

std::uint64_t Histogram::middle_of(std::size_t index) {
    const std::size_t octave = index >> kPrecisionBits;
    return octave < 2 ? index : Cells<kPrecisionBits>::largest_in(index) - ((std::uint64_t{1} << (octave - 1)) >> 1U);
}

std::uint64_t rank_of(double share, std::uint64_t total) {
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(total))), 1,
                                     total);
}

void Histogram::add(const Histogram& other) {
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
    total_ += other.total_;
    other.for_each_cell([this](std::size_t i, std::uint64_t count) { counts_[i] += count; });
}

std::uint64_t Histogram::quantile(double share) const { return total_ != 0 ? ranked(rank_of(share, total_)) : 0; }

std::uint64_t Histogram::ranked(std::uint64_t rank) const {
    std::uint64_t seen = 0;
    for (std::size_t i = first(); (i = counts_.written_from(i, end())) < end(); ++i) {
        seen += counts_[i];
        if (seen >= rank) return std::clamp(middle_of(i), min_, max_);
    }
    return max_;
}

std::vector<Histogram::Bucket> Histogram::buckets() const {
    std::vector<Bucket> merged;
    for_each_cell([&merged](std::size_t i, std::uint64_t count) {
        using Buckets = Cells<kBucketBits>;  // a bucket ends where a cell ends
        const std::uint64_t largest = Buckets::largest_in(Buckets::index_of(Cells<kPrecisionBits>::largest_in(i)));
        if (merged.empty() || merged.back().largest != largest) merged.push_back({.largest = largest, .count = 0});
        merged.back().count += count;
    });
    if (!merged.empty()) merged.back().largest = max_;
    return merged;
}

std::int64_t SignedHistogram::min() const {
    return below_.total() != 0 ? -static_cast<std::int64_t>(below_.max()) : static_cast<std::int64_t>(above_.min());
}

std::int64_t SignedHistogram::max() const {
    return above_.total() != 0 ? static_cast<std::int64_t>(above_.max()) : -static_cast<std::int64_t>(below_.min());
}

std::int64_t SignedHistogram::quantile(double share) const {
    if (total() == 0) return 0;
    const std::uint64_t rank = rank_of(share, total()), below = below_.total();
    if (rank > below) return static_cast<std::int64_t>(above_.ranked(rank - below));
    // the most negative value is the largest in below_
    return -static_cast<std::int64_t>(below_.ranked(below + 1 - rank));
}

}  // namespace dutperf
