// SPDX-License-Identifier: Apache-2.0
#include "trial/trial_connections.hpp"

#include <algorithm>

#include "platform/error.hpp"
#include "trial/trial_paths.hpp"

namespace dutperf {

TrialConnections::TrialConnections(const TestBed& bed, const TrialSpec& spec) : bed_(bed), spec_(spec) {
    if (!spec_.connections) return;
    const ConnectionSpec& wanted = *spec_.connections;
    const auto& initiator = spec_.streams[index_of(wanted.initiator)];
    std::unique_ptr<StateTable>& table = *bed_.state;
    if (wanted.use == ConnectionUse::open) {
        table.reset();  // before the memory of another one is needed
        table = std::make_unique<StateTable>(wanted.space(*initiator), wanted.count, wanted.ipv6);
        return;
    }
    const auto differs = [&] { return initiator && wanted.space(*initiator) != table->space(); };
    if (!table || table->connections() != wanted.count || differs())
        throw Error("connections", "these connections were not opened before", "params.connections");
    choose_entries(*table);
    lost_connections_ = table->take_lost();
    if (wanted.use == ConnectionUse::lost && lost_connections_.empty())
        throw Error("connections", "no connection lost a frame in the trial before", "params.connections.use");
}

// All connections must be in the table, or with `entries` one that the Responder can reply in.
void TrialConnections::choose_entries(const StateTable& table) {
    const ConnectionSpec& wanted = *spec_.connections;
    const std::uint32_t learned = table.learned();
    const bool replies = spec_.sends(wanted.replying);
    if (wanted.entries == 0 ? learned < wanted.count : replies && learned == 0) {
        throw Error("connections",
                    "the Responder learned " + std::to_string(learned) + " of " + std::to_string(wanted.count) +
                        " connections: the others have no addresses to reply to",
                    "params.connections");
    }
    if (wanted.entries != 0 && std::min(learned, wanted.entries) < wanted.count)
        entries_ = table.last_learned(wanted.entries);
}

// The Initiator's path, if it sends and ends at the port.
std::optional<Direction> TrialConnections::initiator_into(std::size_t port) const {
    if (!spec_.connections) return std::nullopt;
    const Direction initiator = spec_.connections->initiator;
    const bool ends_here = bed_.receiving_port(initiator) == port && spec_.sends(initiator);
    return ends_here ? std::optional(initiator) : std::nullopt;
}

ConnectionChoice TrialConnections::choice(Direction direction) const {
    const ConnectionSpec& spec = *spec_.connections;
    const std::uint64_t seed = generator_seed(spec_.seed, direction, Generator::connections);
    switch (spec.use) {
        case ConnectionUse::open: break;
        case ConnectionUse::lost: return ConnectionChoice::listed(lost_connections_);
        case ConnectionUse::each:
        case ConnectionUse::traffic:
            return spec.is_initiator(direction) ? ConnectionChoice::random(spec.count, seed) : responder_choice(seed);
    }
    if (spec.opening == Opening::each) return ConnectionChoice::in_order(spec.count);
    return ConnectionChoice::random(spec.count, generator_seed(spec_.seed, direction, Generator::opening));
}

ConnectionChoice TrialConnections::responder_choice(std::uint64_t seed) const {
    const ConnectionSpec& spec = *spec_.connections;
    const std::uint32_t count = entries_.empty() ? spec.count : static_cast<std::uint32_t>(entries_.size());
    if (spec.use == ConnectionUse::each) return ConnectionChoice::each(count, seed).among(entries_);
    switch (spec.responder) {
        case ResponderOrder::in_order: return ConnectionChoice::in_order(count).among(entries_);
        case ResponderOrder::decreasing: return ConnectionChoice::decreasing(count).among(entries_);
        case ResponderOrder::first: return ConnectionChoice::first().among(entries_);
        case ResponderOrder::random: break;
    }
    return ConnectionChoice::random(count, seed).among(entries_);
}

const StateTable& TrialConnections::table_of_replies(Direction direction) const {
    const StreamSpec& stream = *spec_.streams[index_of(direction)];
    const StateTable& table = **bed_.state;
    if (stream.combined(ConnectionPart::source_address) != table.space().destination_address)
        throw Error("connections", "the Responder's addresses are not the destinations of the connections",
                    bed_.field_of(direction) + (stream.described ? ".frames" : ".source_address"));
    return table;
}

std::optional<ConnectionParts> TrialConnections::parts(Direction direction) const {
    if (spec_.connections_of(direction) == nullptr) return std::nullopt;
    const StateTable* const table = spec_.replies(direction) ? &table_of_replies(direction) : nullptr;
    const ConnectionSpace space =
        table != nullptr ? table->space() : spec_.connections->space(*spec_.streams[index_of(direction)]);
    const ConnectionChoice chosen = choice(direction);
    return ConnectionParts{.choice = chosen, .combinations = {space, chosen, bed_.queues}, .table = table};
}

std::optional<ConnectionLearner> TrialConnections::learner_at(std::size_t port) const {
    const auto initiator = initiator_into(port);
    if (!initiator) return std::nullopt;
    return ConnectionLearner(**bed_.state, choice(*initiator),
                             {.trial = mark_of(bed_, spec_),
                              .direction = *initiator,
                              .frames = spec_.intended(*initiator),
                              .kinds = spec_.streams[index_of(*initiator)]->connected_kinds()});
}

void TrialConnections::watch(Direction direction, Expected& expected) const {
    const auto& stream = spec_.streams[index_of(direction)];
    const ConnectionSpec* const connections = spec_.connections_of(direction);
    if (connections == nullptr || connections->use == ConnectionUse::open || !stream) return;
    const auto lose = [table = bed_.state->get(), chosen = choice(direction)](std::uint64_t number) {
        table->lose(chosen.of(number));
    };
    if (!stream->described) {
        expected.on_missing = [lose](std::uint64_t number, std::uint64_t count) {
            for (; count > 0; --count) lose(number++);
        };
        return;
    }
    expected.on_missing = [lose, order = spec_.kind_order(direction), kinds = stream->connected_kinds()](
                              std::uint64_t number, std::uint64_t count) {
        for (; count > 0; --count, ++number) {
            if ((kinds >> order.of(number).kind & 1U) != 0) lose(number);
        }
    };
}

}  // namespace dutperf
