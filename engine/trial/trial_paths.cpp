// SPDX-License-Identifier: Apache-2.0
#include "trial/trial_paths.hpp"

#include <algorithm>
#include <iterator>

namespace dutperf {

namespace {

template <class Wanted>
std::vector<Direction> active_paths(const TrialSpec& spec, const Wanted& wanted) {
    std::vector<Direction> paths;
    std::ranges::copy_if(spec.active(), std::back_inserter(paths), wanted);
    return paths;
}

// The port on the other side of the DUT, or at the other end of the cable.
std::size_t far_port(const TestBed& bed, const TrialSpec& spec, Direction direction) {
    return spec.streams[index_of(direction)]->questions ? 1 - bed.sending_port(direction)
                                                        : bed.receiving_port(direction);
}

}  // namespace

std::vector<Direction> paths_into(const TestBed& bed, const TrialSpec& spec, std::size_t port) {
    return active_paths(spec, [&](Direction path) { return bed.path(path).ends_at(port); });
}

std::vector<Direction> paths_from(const TestBed& bed, const TrialSpec& spec, std::size_t port) {
    return active_paths(spec, [&](Direction path) { return bed.sending_port(path) == port; });
}

bool shares_port(const TestBed& bed, const TrialSpec& spec, Direction direction) {
    return paths_from(bed, spec, bed.sending_port(direction)).size() > 1 ||
           std::ranges::any_of(bed.receiving_ports(direction),
                               [&](std::size_t port) { return paths_into(bed, spec, port).size() > 1; });
}

Mac dut_mac(const TestBed& bed, const TrialSpec& spec, Direction direction, bool ipv6, std::uint16_t vlan,
            std::size_t host) {
    const Mac& direct = bed.ports[far_port(bed, spec, direction)]->mac();
    return (*bed.hosts[bed.sending_port(direction)])[host].dut_mac(ipv6, direct, vlan);
}

TrialMark mark_of(const TestBed& bed, const TrialSpec& spec) { return mark_of_trial(bed.run, spec.number); }

}  // namespace dutperf
