// SPDX-License-Identifier: Apache-2.0
// The tester's hosts on one port. The first one has the port's MAC address; others may have their own.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "port/neighbour_responder.hpp"

namespace dutperf {

struct HostRequest {
    Host host;
    Gateway gateway;
};

inline constexpr std::size_t kMostHosts = 256;  // of a port

class PortHosts {
public:
    // `hosts`: with their MAC addresses.
    PortHosts(Port& port, std::vector<HostRequest> hosts, rte_mempool* pool);

    [[nodiscard]] std::size_t size() const { return each_.size(); }
    [[nodiscard]] NeighbourResponder& operator[](std::size_t host) const { return *each_[host]; }
    [[nodiscard]] NeighbourResponder& first() const { return *each_.front(); }

    // The same as those of NeighbourResponder, for all hosts.
    bool resolve(std::chrono::milliseconds timeout, const std::vector<NeighbourResponder*>& all);
    [[nodiscard]] NeighbourWatch watch() const;
    NeighbourEvidence take_conflicts();
    void remember(const NeighbourEvidence& evidence);
    void announce();
    void report_groups();
    void serve() { first().serve(); }
    [[nodiscard]] std::uint64_t sent() const;

private:
    std::vector<std::unique_ptr<NeighbourResponder>> each_;
};

// Those that serve the ports.
std::vector<NeighbourResponder*> first_of_each(const std::vector<PortHosts*>& ports);

}  // namespace dutperf
