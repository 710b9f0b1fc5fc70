// SPDX-License-Identifier: Apache-2.0
#include "trial/trial_hosts.hpp"

#include <algorithm>
#include <chrono>

namespace dutperf {

namespace {

constexpr std::chrono::milliseconds kAnswerTimeout{500};

}  // namespace

TrialHosts::TrialHosts(const TestBed& bed, const TrialSpec& spec, TrialStamps& stamps) : bed_(bed), spec_(spec) {
    answer_for_streams();
    for (PortHosts* hosts : bed_.hosts) answered_.push_back(hosts->resolve(kAnswerTimeout, first_of_each(bed_.hosts)));
    stamps.prove();
    if (bed_.ports.size() > 2) announce_ports();
    for (PortHosts* hosts : bed_.hosts) conflicts_.push_back(hosts->take_conflicts());
}

// A DUT asks on the link for every address that frames have there, unless it has a route by way of the port's own.
void TrialHosts::answer_for_streams() {
    std::vector<AddressRanges> ranges(bed_.ports.size());
    for (const Direction direction : spec_.active()) {
        const StreamSpec& stream = *spec_.streams[index_of(direction)];
        ranges[bed_.sending_port(direction)].add(stream.answered_from);
        ranges[bed_.receiving_port(direction)].add(stream.answered_to);
        ranges[bed_.receiving_port(direction)].add(stream.translated);
    }
    for (std::size_t port = 0; port < ranges.size(); ++port) {
        bed_.hosts[port]->first().answer_for(ranges[port]);
        bed_.hosts[port]->report_groups();
    }
}

// Learning frames (RFC 2544 section 23) for a switch with more than two ports: it floods the frames to a port that has
// never sent any. ARP and NDP did it where there are gateways.
void TrialHosts::announce_ports() {
    constexpr std::chrono::milliseconds kArrival{20};
    const auto is_direct = [](const PortHosts* hosts) {
        const Gateway& gateway = hosts->first().gateway();
        return !gateway.ipv4 && !gateway.ipv6 && !gateway.mac;
    };
    if (std::ranges::none_of(bed_.hosts, is_direct)) return;
    for (PortHosts* hosts : bed_.hosts) hosts->announce();
    const auto end = std::chrono::steady_clock::now() + kArrival;
    while (std::chrono::steady_clock::now() < end) {
        for (PortHosts* hosts : bed_.hosts) hosts->serve();
    }
}

}  // namespace dutperf
