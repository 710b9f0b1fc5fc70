// SPDX-License-Identifier: Apache-2.0
// From the JSON of a request (protocol/request.schema.json) to values that need no further check.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "platform/eal.hpp"
#include "port/neighbour_responder.hpp"
#include "server/reader.hpp"
#include "trial/trial.hpp"

namespace dutperf {

struct SideRequest {
    PortOptions port;
    std::string port_text;
    Host host;  // its MAC is the port's, known once that is open
    Gateway gateway;
};

struct OpenRequest {
    std::array<SideRequest, 2> sides;  // left, right
    std::optional<std::vector<unsigned>> cores;
    std::vector<unsigned> dut_cores;
    MemoryChoice memory = MemoryChoice::automatic;
    std::uint16_t max_frame_size = 1522, queues = 1;
    Offloads offloads;
    std::chrono::milliseconds link_timeout{10'000}, resolve_timeout{3000};
};

// Who reads the frames of both ports.
Reach reach_of(const std::array<SideRequest, 2>& sides);

// All throw Error "bad_request".
SideRequest read_side(Reader side, const std::string& name);  // what concerns both ports is not set in its `port`
MemoryChoice read_memory(Reader& params);
OpenRequest read_open(Reader params);
TrialSpec read_trial(Reader params, std::uint16_t max_frame_size);

}  // namespace dutperf
