// SPDX-License-Identifier: Apache-2.0
// The test bed: ports, pools, cores and clocks that trials use.
#pragma once

#include <rte_mempool.h>
#include <rte_ring.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dns/tcp_connections.hpp"
#include "flow/state_table.hpp"
#include "port/offloads.hpp"
#include "port/port_hosts.hpp"
#include "trial/followed_clock.hpp"
#include "trial/frame_source.hpp"
#include "trial/role_cores.hpp"
#include "trial/trial.hpp"

namespace dutperf {

// Resources that stay open between trials: of each port, or of each path from one port to another. Of two ports, 0 is
// left and 1 is right.
struct TestBed {
    std::vector<Path> paths;
    std::vector<Port*> ports;
    std::vector<PortHosts*> hosts;
    std::vector<rte_mempool*> frame_pools;   // of each path: foreground, background; the same one: many paths share it
    std::vector<rte_mempool*> filler_pools;  // of the ports; nullptr for one that is no card
    rte_mempool* control_pool;
    std::vector<rte_ring*> control_rings;  // ARP and NDP replies for the port's senders
    std::uint16_t queues;  // of each port, each way; also the number of senders of a path and of receivers of a port
    RoleCores cores;
    OtherCores other_cores;
    std::uint64_t clock_hz;
    double skew_ticks = 0;               // by which the counters of the loops' cores differ at most
    std::uint16_t run = 0;               // tells this run's frames from those of others: see TrialMark
    Offloads offloads;                   // in use on the ports
    std::vector<FollowedClock*> clocks;  // of the ports; nullptr where no offload needs one
    std::unique_ptr<StateTable>* state;  // the Responder's, of the last connections that were opened
    std::unique_ptr<dns::TcpConnections>* dns_connections;  // to the name server

    [[nodiscard]] const Path& path(Direction direction) const { return paths[index_of(direction)]; }
    [[nodiscard]] std::size_t sending_port(Direction direction) const { return path(direction).from; }
    [[nodiscard]] std::size_t receiving_port(Direction direction) const { return path(direction).to; }
    [[nodiscard]] std::vector<std::size_t> receiving_ports(Direction direction) const {
        std::vector<std::size_t> all = path(direction).also_to;
        all.insert(all.begin(), path(direction).to);
        return all;
    }
    [[nodiscard]] PathPool pool_of(Direction direction, bool foreground = true) const {
        const std::size_t first = 2 * index_of(direction);
        return {frame_pools[first + (foreground ? 0 : 1)], frame_pools[first] == frame_pools[first + 1]};
    }
    [[nodiscard]] const std::string& name_of(Direction direction) const { return path(direction).name; }
    // The path's member of a request, for errors.
    [[nodiscard]] std::string field_of(Direction direction) const { return "params." + path(direction).member(); }
};

}  // namespace dutperf
