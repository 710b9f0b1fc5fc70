// SPDX-License-Identifier: Apache-2.0
// Sizes of a port's rings and pools: how many frames they hold and how long each may be.
#pragma once

#include <cstdint>
#include <string>

#include "port/port_options.hpp"

namespace dutperf {

// Bytes that a received frame may need; the slots of af_packet have a power of two.
std::uint32_t receive_buffer_size(std::uint16_t max_frame_size);
// The same, limited to what the driver supports.
std::uint32_t receive_frame_room(const PortOptions& options, const std::string& driver);

// The requested size of a receive ring, which the driver may adjust, and the frames in the pool of each receive queue.
// A card's ring holds buffers, and one driver (vmxnet3) fills two rings; a driver that copies holds none.
std::uint16_t max_receive_descriptors(const PortOptions& options);
unsigned receive_pool_frames(const PortOptions& options);

// The requested size of each transmit ring, which the driver may adjust. `speeds`: the link speeds that the device
// supports (RTE_ETH_LINK_SPEED_*).
std::uint16_t transmit_ring_size(const PortOptions& options, std::uint32_t speeds);

// The distance between the driver's queues that the port uses. The ring driver keeps 24 bytes for each queue: its frame
// counters and the pointer to its ring. With neighbouring queues, two cores would write to the same cache line with
// every burst and wait for each other.
std::uint16_t queues_apart(const PortOptions& options);

}  // namespace dutperf
