// SPDX-License-Identifier: Apache-2.0
// Everything that `open` opens and that stays open between trials: memory, ports, the emulated hosts, buffers, and the
// cores of the roles.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "platform/clock.hpp"
#include "platform/cores.hpp"
#include "platform/eal.hpp"
#include "port/kernel_port.hpp"
#include "port/port_hosts.hpp"
#include "port/port_locks.hpp"
#include "server/requests.hpp"
#include "trial/role_cores.hpp"
#include "trial/run_trial.hpp"

namespace dutperf {

struct RingDeleter {
    void operator()(rte_ring* ring) const { rte_ring_free(ring); }
};

class Session {
public:
    // Starts DPDK, opens the ports and finds the DUT's MAC addresses. Throws Error.
    explicit Session(const OpenRequest& request);

    [[nodiscard]] TestBed bed() const;
    [[nodiscard]] const OpenRequest& request() const { return request_; }
    [[nodiscard]] const Memory& memory() const { return memory_; }
    [[nodiscard]] std::optional<double> skew_ticks() const { return skew_ticks_; }
    [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

    // Answers ARP and NDP between trials.
    void serve();
    // Reads the link states; call this every few milliseconds.
    void watch_links();
    // Whether a trial can start without waiting for a link. The link of a kernel interface counts as up.
    [[nodiscard]] bool links_are_up() const;
    // Throws Error "port_away" if one is no longer what was opened: a card was unplugged, an interface is gone.
    void require_ports();

private:
    void open_ports();
    void await_links();
    void make_buffers();
    void find_dut();
    [[nodiscard]] std::vector<HostRequest> hosts_of(std::size_t side) const;
    void find_gateways(std::size_t side, std::size_t number, const std::vector<NeighbourResponder*>& all);
    void place();
    void follow_clocks();
    void warn();
    void warn_of_other_node(std::size_t side);

    OpenRequest request_;
    PortLocks locks_;  // taken before DPDK looks at a card
    ClockCalibration calibration_;
    RoleCores cores_;
    OtherCores other_cores_;
    Memory memory_;
    std::vector<Pool> frame_pools_;         // outlive the ports: transmit rings still hold their frames
    std::vector<rte_mempool*> path_pools_;  // of each path two of them: TestBed::frame_pools
    std::vector<Pool> filler_pools_;        // of each port; nullptr for one that is no card
    Pool control_pool_;
    std::vector<std::unique_ptr<Port>> ports_;
    std::vector<std::unique_ptr<FollowedClock>> clocks_;  // of the ports, if needed
    std::vector<std::unique_ptr<rte_ring, RingDeleter>> control_rings_;
    std::vector<std::unique_ptr<PortHosts>> hosts_;
    mutable std::unique_ptr<StateTable> state_;  // written by trials
    mutable std::unique_ptr<dns::TcpConnections> dns_connections_;
    std::optional<double> skew_ticks_;
    // Each engine draws its own: its frames are not those of another one (TrialMark).
    std::uint16_t run_ = static_cast<std::uint16_t>(std::random_device{}());
    std::uint64_t clock_hz_ = 0;
    std::vector<std::string> warnings_;
};

}  // namespace dutperf
