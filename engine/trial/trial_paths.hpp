// SPDX-License-Identifier: Apache-2.0
// The paths of a trial by their ports, and where their frames go.
#pragma once

#include <vector>

#include "trial/test_bed.hpp"

namespace dutperf {

// The active paths into a port and from it, in their order.
std::vector<Direction> paths_into(const TestBed& bed, const TrialSpec& spec, std::size_t port);
std::vector<Direction> paths_from(const TestBed& bed, const TrialSpec& spec, std::size_t port);

// Whether another path sends from the same port, or to the same one.
bool shares_port(const TestBed& bed, const TrialSpec& spec, Direction direction);

// Where a path's frames go: to the DUT, or without one to the port at the path's end.
Mac dut_mac(const TestBed& bed, const TrialSpec& spec, Direction direction, bool ipv6, std::uint16_t vlan = 0,
            std::size_t host = 0);

// In the tags of the trial's frames.
TrialMark mark_of(const TestBed& bed, const TrialSpec& spec);

}  // namespace dutperf
