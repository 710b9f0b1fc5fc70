// SPDX-License-Identifier: Apache-2.0
// The tester's hosts before a trial: they answer for its addresses, and ask for the DUT's MAC addresses.
#pragma once

#include <vector>

#include "trial/test_bed.hpp"
#include "trial/trial_stamps.hpp"

namespace dutperf {

class TrialHosts {
public:
    // `stamps` are proven as soon as the DUT's MAC addresses are known. Throws Error: they cannot be.
    TrialHosts(const TestBed& bed, const TrialSpec& spec, TrialStamps& stamps);

    // Whether the DUT answered at a port.
    [[nodiscard]] bool answered(std::size_t port) const { return answered_[port]; }
    // What others said at a port before the trial.
    [[nodiscard]] const NeighbourEvidence& conflicts(std::size_t port) const { return conflicts_[port]; }

private:
    void answer_for_streams();
    void announce_ports();

    const TestBed& bed_;
    const TrialSpec& spec_;
    std::vector<bool> answered_;
    std::vector<NeighbourEvidence> conflicts_;
};

}  // namespace dutperf
