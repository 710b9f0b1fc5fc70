// SPDX-License-Identifier: Apache-2.0
// Parses the JSON of requests (protocol/request.schema.json) into validated values.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "platform/eal.hpp"
#include "port/port_hosts.hpp"
#include "server/reader.hpp"
#include "trial/trial.hpp"

namespace dutperf {

struct SideRequest {
    PortOptions port;
    std::string port_text;
    // In place of a MAC address of zeros they have the port's, which is known when the port is open.
    HostRequest host;
    std::vector<HostRequest> further_hosts{};
};

struct OpenRequest {
    std::vector<SideRequest> sides;  // the ports
    std::vector<Path> paths;         // then other streams
    std::optional<std::vector<unsigned>> cores;
    std::vector<unsigned> dut_cores;
    MemoryChoice memory = MemoryChoice::automatic;
    std::uint16_t max_frame_size = 1522, queues = 1;
    Offloads offloads;
    std::chrono::milliseconds link_timeout{10'000}, resolve_timeout{3000};
};

// Whether a device or only the processor reads the frames of the ports.
Reach reach_of(std::span<const SideRequest> sides);

// All throw Error "bad_request".
SideRequest read_side(Reader side,
                      const std::string& name);  // leaves the members of `port` unset that the ports share
MemoryChoice read_memory(Reader& params);
OpenRequest read_open(Reader params);
// `loaded`: the list of frames for replays; nullptr: there is none.
TrialSpec read_trial(Reader params, std::uint16_t max_frame_size, const std::vector<Path>& paths = left_and_right(),
                     const std::shared_ptr<const FrameList>& loaded = nullptr);

}  // namespace dutperf
