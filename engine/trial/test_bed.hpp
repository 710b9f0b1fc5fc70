// SPDX-License-Identifier: Apache-2.0
// The test bed: ports, pools, cores and clocks that trials use.
#pragma once

#include <rte_mempool.h>
#include <rte_ring.h>

#include <array>
#include <cstdint>
#include <memory>

#include "flow/state_table.hpp"
#include "port/neighbour_responder.hpp"
#include "port/offloads.hpp"
#include "trial/nic_clock.hpp"
#include "trial/role_cores.hpp"
#include "trial/trial.hpp"

namespace dutperf {

inline std::size_t sending_port(Direction direction) { return direction == Direction::forward ? 0 : 1; }
inline std::size_t receiving_port(Direction direction) { return 1 - sending_port(direction); }

// Resources that stay open between trials. Index 0 is left, 1 is right.
struct TestBed {
    std::array<Port*, 2> ports;
    std::array<NeighbourResponder*, 2> responders;
    std::array<rte_mempool*, 4> frame_pools;   // forward foreground and background, reverse foreground and background
    std::array<rte_mempool*, 2> filler_pools;  // of the ports; nullptr for one that is no card
    rte_mempool* control_pool;
    std::array<rte_ring*, 2> control_rings;  // ARP and NDP replies for the port's senders
    std::uint16_t queues;  // of each port, each way; also the number of senders and receivers of a direction
    RoleCores cores;
    OtherCores other_cores;
    std::uint64_t clock_hz;
    Offloads offloads;                     // in use on the ports
    std::array<FollowedClock*, 2> clocks;  // of the ports; nullptr where no offload needs one
    std::unique_ptr<StateTable>* state;    // the Responder's, of the last connections that were opened
};

}  // namespace dutperf
