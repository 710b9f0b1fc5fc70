// SPDX-License-Identifier: Apache-2.0
// What a port is to be opened with.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "frame/address.hpp"
#include "port/link.hpp"
#include "port/offloads.hpp"
#include "port/pool.hpp"
#include "port/port_spec.hpp"

namespace dutperf {

struct PortOptions {
    std::string side;  // "left" or "right": the name in messages
    PortSpec spec;
    std::optional<Mac> mac;             // instead of the device's own
    std::uint32_t receive_ring = 4096;  // frames
    std::uint16_t max_frame_size = 1522;
    std::uint16_t queues = 1;        // each way
    Offloads offloads = {};          // to use; refused where the port does not offer it
    Reach reach = Reach::processor;  // of both ports' drivers: a frame that one received may be sent by the other
    FlowControl flow_control = FlowControl::off;
    std::chrono::milliseconds link_timeout{10'000};  // for another process to join the port by a socket
    unsigned buffers =
        0;  // for received frames, for each queue; 0: as many as the receiving loop needs, which keeps none
};

// Throws Error "port_unavailable" for the field "<side>.port".
[[noreturn]] void unavailable(const PortOptions& options, const std::string& message);

}  // namespace dutperf
