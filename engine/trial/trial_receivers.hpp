// SPDX-License-Identifier: Apache-2.0
// What a trial expects to receive: its receivers.
#pragma once

#include <memory>
#include <vector>

#include "trial/collect.hpp"
#include "trial/trial_capture.hpp"
#include "trial/trial_connections.hpp"
#include "trial/trial_dns.hpp"

namespace dutperf {

// What the frames of a path must have kept when they arrive at a port.
Arriving arriving(const TestBed& bed, const TrialSpec& spec, Direction direction, std::size_t at);

class TrialReceivers {
public:
    TrialReceivers(const TestBed& bed, const TrialSpec& spec, TrialParts& parts, const TrialConnections& connections,
                   const TrialDns& dns, TrialCapture& capture)
        : bed_(bed),
          spec_(spec),
          parts_(parts),
          connections_(connections),
          dns_(dns),
          capture_(capture),
          lost_(bed.paths.size()) {}

    // Prepares what all receivers of an active path share, which has its senders. Throws Error.
    void prepare(Direction direction);
    // Those of a port, in the order of their queues. All paths into it are prepared.
    [[nodiscard]] std::vector<std::unique_ptr<Receiver>> make(std::size_t port);

private:
    [[nodiscard]] Expected expected(Direction direction, std::size_t at, std::uint16_t queue) const;
    [[nodiscard]] bool has_several(Direction direction) const;
    [[nodiscard]] std::vector<Marks> marks(std::size_t port) const;
    void note_lengths(Direction direction);

    const TestBed& bed_;
    const TrialSpec& spec_;
    TrialParts& parts_;
    const TrialConnections& connections_;
    const TrialDns& dns_;
    TrialCapture& capture_;
    PerDirection<LostNumbers*> lost_;
};

}  // namespace dutperf
