// SPDX-License-Identifier: Apache-2.0
// Connections of a stateful trial (RFC 9693): which of them its frames belong to, and what is learned of them.
#pragma once

#include <optional>
#include <vector>

#include "trial/connection_learner.hpp"
#include "trial/described_source.hpp"
#include "trial/rx_statistics.hpp"
#include "trial/test_bed.hpp"

namespace dutperf {

class TrialConnections {
public:
    // The state table is made new for connections that are opened. Throws Error "connections": it has not those of the
    // trial.
    TrialConnections(const TestBed& bed, const TrialSpec& spec);

    [[nodiscard]] ConnectionChoice choice(Direction direction) const;
    // The state table of the Responder's frames, which come from the destinations of its connections.
    [[nodiscard]] const StateTable& table_of_replies(Direction direction) const;
    // Of described frames.
    [[nodiscard]] std::optional<ConnectionParts> parts(Direction direction) const;
    // Of receivers of a port: it learns where the Initiator's frames come from, if they end there.
    [[nodiscard]] std::optional<ConnectionLearner> learner_at(std::size_t port) const;
    // Lost frames are noted by their connections, which a later trial may ask for.
    void watch(Direction direction, Expected& expected) const;

private:
    void choose_entries(const StateTable& table);
    [[nodiscard]] std::optional<Direction> initiator_into(std::size_t port) const;
    [[nodiscard]] ConnectionChoice responder_choice(std::uint64_t seed) const;

    const TestBed& bed_;
    const TrialSpec& spec_;
    std::vector<std::uint32_t> lost_connections_;  // that lost frames in the trial before
    std::vector<std::uint32_t> entries_;           // connections of the Responder's frames; empty: all
};

}  // namespace dutperf
