// SPDX-License-Identifier: Apache-2.0
// Frames to and from a driver: the two calls of the hot loops. Ownership of a transmitted frame passes to the driver.
#pragma once

#include <rte_ethdev.h>

#include <cstdint>

namespace dutperf {

inline std::uint16_t transmit_burst(std::uint16_t port, rte_mbuf** frames, std::uint16_t count) { return rte_eth_tx_burst(port, 0, frames, count); }
inline std::uint16_t receive_burst(std::uint16_t port, rte_mbuf** frames, std::uint16_t count) { return rte_eth_rx_burst(port, 0, frames, count); }

}  // namespace dutperf
