// SPDX-License-Identifier: Apache-2.0
#include "measure/histogram.hpp"

#include <cmath>

namespace dutperf {

std::uint64_t Histogram::largest_in(std::size_t index) {
    constexpr std::size_t kExact = std::size_t{2} << kPrecisionBits;
    if (index < kExact) return index;
    const std::size_t shift = (index >> kPrecisionBits) - 1;
    const std::uint64_t lead = index - (shift << kPrecisionBits);
    return ((lead + 1) << shift) - 1;
}

std::uint64_t Histogram::quantile(double share) const {
    if (total_ == 0) return 0;
    const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(total_))), 1, total_);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        seen += counts_[i];
        if (seen >= rank) return std::clamp(largest_in(i), min_, max_);
    }
    return max_;
}

}  // namespace dutperf
