// SPDX-License-Identifier: Apache-2.0
// Delays of groups of frames: their number, minimum, mean and maximum. Half a cache line for each group, so that those
// of a thousand groups stay in the core's nearest cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace dutperf {

struct GroupDelay {
    std::uint64_t count = 0, sum = 0, min = std::numeric_limits<std::uint64_t>::max(), max = 0;  // ticks

    void record(std::uint64_t delay) {
        ++count;
        sum += delay;
        min = std::min(min, delay);
        max = std::max(max, delay);
    }
    void add(const GroupDelay& other) {
        count += other.count;
        sum += other.sum;
        min = std::min(min, other.min);
        max = std::max(max, other.max);
    }
    [[nodiscard]] double mean() const { return static_cast<double>(sum) / static_cast<double>(count); }
};

using GroupDelays = std::vector<GroupDelay>;

}  // namespace dutperf
