// SPDX-License-Identifier: Apache-2.0
// Collects the counts of a finished trial's parts into its result.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "port/port.hpp"
#include "trial/delay_file.hpp"
#include "trial/receiver.hpp"
#include "trial/test_bed.hpp"
#include "trial/transmitter.hpp"
#include "trial/trial.hpp"

namespace dutperf {

// The longest stall of a core's loop.
struct LoopStall {
    unsigned core = 0;
    Ticks sending = 0, whole = 0;  // up to the end of sending; up to the end of the trial
};

// The parts of a trial, and the counters read before and after it.
struct TrialParts {
    PerDirection<std::vector<std::unique_ptr<Sender>>> senders;  // in the order of their queues
    PerDirection<std::vector<std::unique_ptr<Receiver>>> receivers;
    PerDirection<std::unique_ptr<DelayFile>> delay_files;
    PerDirection<std::optional<FrameGroups>> groups;   // of directions with described frames
    PerDirection<std::unique_ptr<LengthLog>> lengths;  // of directions with frames without a tag
    PerDirection<std::uint32_t> rate_limits{};         // Mbit/s of each queue; 0: none
    std::array<PortCounters, 2> before{}, after{};
    std::array<std::uint64_t, 2> answered_before{}, answered_after{};  // frames that the neighbour responders sent
    std::array<std::uint32_t, 2> media_mbps{};                         // of the ports' links; 0: unknown, or not a card
    std::vector<LoopStall> stalls;                                     // of each loop
    Ticks start = 0;                                                   // of sending
};

// Call this once for each direction that sends: it merges the receivers' statistics and closes the delay files.
DirectionResult collect(const TestBed& bed, const TrialSpec& spec, const TrialParts& parts, Direction direction);

}  // namespace dutperf
