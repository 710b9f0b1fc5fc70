// SPDX-License-Identifier: Apache-2.0
#include "port/port_hosts.hpp"

#include <algorithm>
#include <iterator>

namespace dutperf {

namespace {

// VLANs of the others that `of` is not in.
std::vector<std::uint16_t> other_vlans(const std::vector<HostRequest>& hosts, const Host& of) {
    std::vector<std::uint16_t> vlans;
    for (const HostRequest& one : hosts) {
        std::ranges::copy_if(one.host.vlans, std::back_inserter(vlans),
                             [&](std::uint16_t vlan) { return std::ranges::find(of.vlans, vlan) == of.vlans.end(); });
    }
    return vlans;
}

}  // namespace

PortHosts::PortHosts(Port& port, std::vector<HostRequest> hosts, rte_mempool* pool) {
    std::vector<NeighbourResponder*> all;
    all.reserve(hosts.size());
    for (HostRequest& one : hosts) one.host.other_vlans = other_vlans(hosts, one.host);
    for (const HostRequest& one : hosts)
        all.push_back(
            each_.emplace_back(std::make_unique<NeighbourResponder>(port, one.host, one.gateway, pool)).get());
    for (NeighbourResponder* one : all) one->share_port(all);
}

bool PortHosts::resolve(std::chrono::milliseconds timeout, const std::vector<NeighbourResponder*>& all) {
    bool all_answered = true;
    for (const auto& one : each_) all_answered = one->resolve(timeout, all) && all_answered;
    return all_answered;
}

NeighbourWatch PortHosts::watch() const {
    std::vector<WatchedHost> hosts;
    hosts.reserve(each_.size());
    for (const auto& one : each_) hosts.push_back(one->watched());
    return NeighbourWatch(std::move(hosts));
}

NeighbourEvidence PortHosts::take_conflicts() {
    NeighbourEvidence evidence;
    for (const auto& one : each_) evidence.add(one->take_conflicts());
    return evidence;
}

void PortHosts::remember(const NeighbourEvidence& evidence) {
    for (const auto& one : each_) one->remember(evidence);
}

void PortHosts::announce() {
    for (const auto& one : each_) one->announce();
}

void PortHosts::report_groups() {
    for (const auto& one : each_) one->report_groups();
}

std::uint64_t PortHosts::sent() const {
    std::uint64_t sent = 0;
    for (const auto& one : each_) sent += one->sent();
    return sent;
}

std::vector<NeighbourResponder*> first_of_each(const std::vector<PortHosts*>& ports) {
    std::vector<NeighbourResponder*> first;
    first.reserve(ports.size());
    for (const PortHosts* one : ports) first.push_back(&one->first());
    return first;
}

}  // namespace dutperf
