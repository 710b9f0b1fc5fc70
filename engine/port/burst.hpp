// SPDX-License-Identifier: Apache-2.0
// Frames to and from a driver: the two calls of the hot loops. Ownership of a transmitted frame passes to the driver.
#pragma once

#include <rte_ethdev.h>

#include <cstdint>

namespace dutperf {

// One of a port's queues. It has one owner at a time: the driver's calls for a queue must not meet.
struct PortQueue {
    std::uint16_t port, index = 0;
};

inline std::uint16_t transmit_burst(PortQueue queue, rte_mbuf** frames, std::uint16_t count) {
    return rte_eth_tx_burst(queue.port, queue.index, frames, count);
}
inline std::uint16_t receive_burst(PortQueue queue, rte_mbuf** frames, std::uint16_t count) { return rte_eth_rx_burst(queue.port, queue.index, frames, count); }

}  // namespace dutperf
