// SPDX-License-Identifier: Apache-2.0
#include "trial/role_cores.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "platform/error.hpp"

namespace dutperf {

namespace {

bool contains(const std::vector<unsigned>& cores, unsigned core) {
    return std::ranges::find(cores, core) != cores.end();
}

// `cores` without `taken`; all of them if none would be left.
std::vector<unsigned> without(const std::vector<unsigned>& taken, const std::vector<unsigned>& cores) {
    std::vector<unsigned> left;
    std::ranges::copy_if(cores, std::back_inserter(left), [&](unsigned core) { return !contains(taken, core); });
    return left.empty() ? cores : left;
}

std::vector<unsigned> choose_cores(const std::vector<unsigned>& allowed, const CoreWishes& wishes) {
    std::vector<unsigned> left = without(wishes.dut_cores, allowed);
    // the first core usually serves the system's interrupts: leave it out if enough others remain, or if all would be
    // taken
    const bool all = left.size() == allowed.size();
    if (left.size() > 4 || (all && left.size() > 1)) left.erase(std::ranges::min_element(left));
    if (wishes.kernel_ports && left.size() > wishes.queues) left.resize(wishes.queues);
    return left;
}

void check_exist(const std::vector<unsigned>& cores, const std::vector<unsigned>& allowed) {
    for (const unsigned core : cores) {
        if (!contains(allowed, core))
            throw Error("cores", "core " + std::to_string(core) + " does not exist or may not be used", "cores");
    }
}

}  // namespace

std::vector<unsigned> RoleCores::distinct() const {
    std::vector<unsigned> cores;
    for (const auto* roles : {&send, &receive}) {
        for (const std::vector<unsigned>& of_port : *roles) cores.insert(cores.end(), of_port.begin(), of_port.end());
    }
    std::ranges::sort(cores);
    cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
    return cores;
}

OtherCores other_cores(const std::vector<unsigned>& allowed, const std::vector<unsigned>& hot,
                       const std::vector<unsigned>& dut_cores) {
    return {.between_trials = without(dut_cores, allowed), .during_trials = without(dut_cores, without(hot, allowed))};
}

RoleCores place_roles(const std::vector<unsigned>& allowed, const CoreWishes& wishes) {
    if (wishes.cores) check_exist(*wishes.cores, allowed);
    const std::vector<unsigned> cores = wishes.cores ? *wishes.cores : choose_cores(allowed, wishes);
    const std::size_t queues = wishes.queues, ports = wishes.ports;
    const bool one_each = cores.size() >= 2 * ports * queues,
               one_of_all_ports = cores.size() < ports * queues && queues % cores.size() == 0;
    RoleCores placed{.send = std::vector<std::vector<unsigned>>(ports),
                     .receive = std::vector<std::vector<unsigned>>(ports)};
    for (std::size_t queue = 0; queue < queues; ++queue) {
        for (std::size_t port = 0; port < ports; ++port) {
            // too few cores: one for each queue of a port, both ways, as far as they go; or one for each queue of all
            // ports, if that is as even
            const std::size_t of_both = one_of_all_ports ? queue : ports * queue + port;
            const std::size_t sender = one_each ? 2 * (ports * queue + port) : of_both;
            // beside the sender of the port before, whose frames it receives if there are two
            const std::size_t receiver = one_each ? 2 * (ports * queue + (port + ports - 1) % ports) + 1 : of_both;
            placed.send[port].push_back(cores[sender % cores.size()]);
            placed.receive[port].push_back(cores[receiver % cores.size()]);
        }
    }
    return placed;
}

}  // namespace dutperf
