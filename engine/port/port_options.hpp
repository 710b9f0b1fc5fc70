// SPDX-License-Identifier: Apache-2.0
// The options that a port is opened with.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "frame/address.hpp"
#include "port/link.hpp"
#include "port/offloads.hpp"
#include "port/pool.hpp"
#include "port/port_spec.hpp"

namespace dutperf {

struct PortOptions {
    std::string side;              // the port's name: "left", "right" or the user's
    std::string ring_before = {};  // the port whose frames a ring port receives
    PortSpec spec;
    std::optional<Mac> mac;             // replaces the device's own
    std::uint32_t receive_ring = 4096;  // frames
    std::uint16_t max_frame_size = 1522;
    std::uint16_t queues = 1;        // each way
    bool in_vlans = false;           // the DUT has its addresses in VLANs
    Offloads offloads = {};          // offloads to use; an error if the port does not offer one
    Reach reach = Reach::processor;  // of both ports together: one may send a frame that the other received
    FlowControl flow_control = FlowControl::off;
    std::chrono::milliseconds link_timeout{10'000};  // for another process to connect by a socket
    // Notes a change of the machine before it is made (left_changes.hpp); empty: nobody does.
    std::function<void(const std::string& note)> note = {};
    unsigned buffers = 0;  // receive buffers for each queue; 0: enough for the receiving loop, which holds none back
};

// Calls `note`.
void note_change(const PortOptions& options, const std::string& note);

// Throws Error "port_unavailable" for the field "<side>.port".
[[noreturn]] void unavailable(const PortOptions& options, const std::string& message);

// The same for frames that are too long for the port, which takes up to `longest` bytes.
[[noreturn]] void frames_too_long(const PortOptions& options, const std::string& message, std::uint32_t longest);

// Throws Error "port_away" for it: what the port needs is not there now, or another process has it.
[[noreturn]] void away(const PortOptions& options, const std::string& message);

}  // namespace dutperf
