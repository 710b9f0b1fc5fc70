// SPDX-License-Identifier: Apache-2.0
// A DPDK device, found or made from a port spec.
#pragma once

#include <cstdint>
#include <string>

#include "port/port_options.hpp"

namespace dutperf {

// Bytes that a received frame may need: af_packet hands over slots of a power of two.
std::uint32_t receive_buffer_size(std::uint16_t max_frame_size);

// Frames that a receive ring may hold, before the driver has its say; and frames in the pool of each receive queue. A card's ring keeps its buffers, and one
// driver (vmxnet3) fills two rings; one that copies keeps none.
std::uint16_t most_receive_descriptors(const PortOptions& options);
unsigned receive_pool_frames(const PortOptions& options);

// Of the driver's queues the port uses the first of so many. The ring driver counts a queue's frames beside the pointer to its ring, 24 bytes for each: in
// neighbouring queues two cores would write to one cache line with every burst, and wait for each other.
std::uint16_t queues_apart(const PortOptions& options);

// A DPDK device: made for the purpose, or a card that is taken and given back.
class Device {
public:
    // Throws Error "port_unavailable".
    explicit Device(const PortOptions& options);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    [[nodiscard]] std::uint16_t id() const { return id_; }

private:
    std::uint16_t id_ = 0;
    std::string bus_, made_;  // its name on it
};

}  // namespace dutperf
