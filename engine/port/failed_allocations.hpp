// SPDX-License-Identifier: Apache-2.0
// How often a driver found no buffer for a frame, where it says so only among its own counters (vmxnet3:
// rx_q0_rx_buf_alloc_failure).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace dutperf {

// Whether a driver's own counter of that name (rte_eth_xstat_name) counts buffers that it did not get for the port's
// frames.
bool counts_failed_allocations(std::string_view name);

class FailedAllocations {
public:
    // Of a port that is configured: its queues have counters of their own.
    explicit FailedAllocations(std::uint16_t port);

    // Since the driver began to count.
    [[nodiscard]] std::uint64_t count() const;

private:
    std::uint16_t port_;
    std::vector<std::uint64_t> ids_;  // of the counters
};

}  // namespace dutperf
