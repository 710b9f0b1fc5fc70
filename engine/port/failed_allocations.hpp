// SPDX-License-Identifier: Apache-2.0
// Counts failed buffer allocations of drivers that report them only as extended statistics (vmxnet3:
// rx_q0_rx_buf_alloc_failure).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace dutperf {

// Whether the extended statistic of that name (rte_eth_xstat_name) counts failed buffer allocations for received
// frames.
bool counts_failed_allocations(std::string_view name);

class FailedAllocations {
public:
    // The port must be configured: its queues have their own counters.
    explicit FailedAllocations(std::uint16_t port);

    // Reads that many counters; false: the driver did not report them.
    using Read = std::function<bool(std::span<std::uint64_t>)>;
    FailedAllocations(std::size_t counters, Read read) : values_(counters), read_(std::move(read)) {}

    // Since the driver started to count. The last value if it does not report one: a counter that seems to restart at 0
    // would count twice (MonotonicCounter).
    std::uint64_t count();

private:
    std::vector<std::uint64_t> values_;
    Read read_;
    std::uint64_t last_ = 0;
};

}  // namespace dutperf
