// SPDX-License-Identifier: Apache-2.0
// Counts failed buffer allocations of drivers that report them only as extended statistics (vmxnet3:
// rx_q0_rx_buf_alloc_failure).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace dutperf {

// Whether the extended statistic of that name (rte_eth_xstat_name) counts failed buffer allocations for received
// frames.
bool counts_failed_allocations(std::string_view name);

class FailedAllocations {
public:
    // The port must be configured: its queues have their own counters.
    explicit FailedAllocations(std::uint16_t port);

    // Since the driver started to count.
    [[nodiscard]] std::uint64_t count() const;

private:
    std::uint16_t port_;
    std::vector<std::uint64_t> ids_;  // of the counters
};

}  // namespace dutperf
