// SPDX-License-Identifier: Apache-2.0
// How many frames the rings of a port hold, how long each may be, and how many buffers that takes.
#pragma once

#include <cstdint>
#include <string>

#include "port/port_options.hpp"

namespace dutperf {

// Bytes that a received frame may need: af_packet hands over slots of a power of two.
std::uint32_t receive_buffer_size(std::uint16_t max_frame_size);
// The same, as far as the driver can do with it.
std::uint32_t receive_frame_room(const PortOptions& options, const std::string& driver);

// Frames that a receive ring may hold, before the driver has its say; and frames in the pool of each receive queue. A
// card's ring keeps its buffers, and one driver (vmxnet3) fills two rings; one that copies keeps none.
std::uint16_t most_receive_descriptors(const PortOptions& options);
unsigned receive_pool_frames(const PortOptions& options);

// Frames of each transmit ring, before the driver has its say. `speeds`: those that the device is capable of
// (RTE_ETH_LINK_SPEED_*).
std::uint16_t transmit_ring_size(const PortOptions& options, std::uint32_t speeds);

// Of the driver's queues the port uses the first of so many. The ring driver counts a queue's frames beside the pointer
// to its ring, 24 bytes for each: in neighbouring queues two cores would write to one cache line with every burst, and
// wait for each other.
std::uint16_t queues_apart(const PortOptions& options);

}  // namespace dutperf
