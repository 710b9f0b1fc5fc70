// SPDX-License-Identifier: Apache-2.0
// What a trial sends: its senders, and where their frames come from.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "trial/collect.hpp"
#include "trial/trial_connections.hpp"
#include "trial/trial_dns.hpp"

namespace dutperf {

// The trial, if the ports can send it. Throws Error "bad_request": they cannot.
TrialSpec possible(const TestBed& bed, TrialSpec spec);

class TrialSenders {
public:
    TrialSenders(const TestBed& bed, const TrialSpec& spec, TrialParts& parts, const TrialConnections& connections,
                 TrialDns& dns)
        : bed_(bed), spec_(spec), parts_(parts), connections_(connections), dns_(dns), described_(bed.paths.size()) {}

    // Those of an active path, in the order of their queues. Throws Error.
    [[nodiscard]] std::vector<std::unique_ptr<Sender>> make(Direction direction);
    // With limits, a sender catches up after a stall a little above the rate, not in a burst.
    void limit_rates();

private:
    FramePool* make_pool_of(Direction direction, const FrameSpec& frame, bool foreground, bool ports_of_stream);
    FrameSourceParts frame_parts(Direction direction);
    DescribedParts described_parts(Direction direction);
    ReplayParts replay_parts(Direction direction);
    ResponderParts responder_parts(Direction direction);
    [[nodiscard]] NicSending nic_sending(Direction direction) const;
    [[nodiscard]] std::optional<PtpMessage> ptp_message(Direction direction) const;
    // `clock_hz`: of the clock by which the frames are due.
    [[nodiscard]] std::unique_ptr<AdditionalSender> make_additional(Direction direction, const Share& share,
                                                                    std::uint64_t clock_hz) const;
    [[nodiscard]] std::unique_ptr<LineFiller> make_line_filler(Direction direction, AdditionalSender* additional) const;

    const TestBed& bed_;
    const TrialSpec& spec_;
    TrialParts& parts_;
    const TrialConnections& connections_;
    TrialDns& dns_;
    std::vector<std::unique_ptr<FramePool>> frame_pools_;
    PerDirection<std::unique_ptr<DescribedFrames>> described_;
};

}  // namespace dutperf
