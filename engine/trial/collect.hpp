// SPDX-License-Identifier: Apache-2.0
// Collects the counts of a finished trial's parts into its result.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "port/port.hpp"
#include "trial/answering.hpp"
#include "trial/delay_file.hpp"
#include "trial/followed_clock.hpp"
#include "trial/query_times.hpp"
#include "trial/receiver.hpp"
#include "trial/stamp_log.hpp"
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
    TrialParts(std::size_t paths, std::size_t ports)
        : senders(paths),
          delay_files(paths),
          groups(paths),
          lengths(paths),
          stamps(paths),
          clocks(paths),
          idle_senders(ports),
          receivers(ports),
          rate_limits(ports),
          before(ports),
          after(ports),
          answered_before(ports),
          answered_after(ports),
          media_mbps(ports) {}

    // of each path
    PerDirection<std::vector<std::unique_ptr<Sender>>> senders;  // in the order of their queues; none: it does not send
    PerDirection<std::unique_ptr<DelayFile>> delay_files;
    std::unique_ptr<QueryTimes> query_times;            // of the path of the queries, if they are kept
    PerDirection<std::optional<FrameGroups>> groups;    // of those with described frames
    PerDirection<std::unique_ptr<LengthLog>> lengths;   // of those with frames without a tag
    PerDirection<std::optional<StampsMatched>> stamps;  // of those whose frames the kernel or cards stamp
    PerDirection<std::optional<Clocks>> clocks;         // of the same
    // Whether messages of PTP leave in place of stamped frames.
    [[nodiscard]] bool ptp() const { return std::ranges::count(stamp_only_ptp, true) != 0; }
    // of each port
    std::vector<std::unique_ptr<StampLog>> stamp_logs;        // if the kernel or cards stamp frames
    std::vector<std::unique_ptr<FollowedClock>> card_clocks;  // if cards stamp frames
    std::vector<bool> stamp_only_ptp;                         // likewise: whether no other frames that they receive
    std::vector<std::unique_ptr<Sender>> idle_senders;        // of those where no path begins
    std::vector<std::vector<std::unique_ptr<Receiver>>> receivers;
    std::vector<std::uint32_t> rate_limits;  // Mbit/s of each queue; 0: none
    std::vector<PortCounters> before, after;
    std::vector<std::uint64_t> answered_before, answered_after;  // frames that the neighbour responders sent
    std::vector<std::uint32_t> media_mbps;                       // of the ports' links; 0: unknown, or not a card

    // of the trial's name server, if it has one
    std::unique_ptr<Answering> answering;
    std::unique_ptr<AnswerSender> answer_sender;

    std::vector<LoopStall> stalls;  // of each loop
    Ticks start = 0;                // of sending
};

// The counts of each path that sends. Call this once: it merges the receivers' statistics and closes the delay files.
// `alive` is called meanwhile where it takes long.
PerDirection<std::optional<DirectionResult>> collect(const TestBed& bed, const TrialSpec& spec, const TrialParts& parts,
                                                     const FrameGroups::Alive& alive);

// What the trial's name server did. After collect().
ServerResult collect_server(const TestBed& bed, const TrialSpec& spec, const TrialParts& parts);

// What the receivers of a port recognise: additional frames of the paths into it that the DUT forwards, then replies to
// those of the paths from it; then fillers of the paths into it, and of those from it that the DUT sent back.
struct PortMark {
    enum class Of : std::uint8_t { forwarded, reply, filler };

    Of of;
    Direction path;
    std::size_t kind;  // of additional frames; 0 of fillers

    bool operator==(const PortMark&) const = default;
};
std::vector<PortMark> marks_at(const TestBed& bed, const TrialSpec& spec, std::size_t port);

}  // namespace dutperf
