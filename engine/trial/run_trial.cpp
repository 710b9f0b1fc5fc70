// SPDX-License-Identifier: Apache-2.0
#include "trial/run_trial.hpp"

#include <rte_lcore.h>
#include <rte_mempool.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "platform/cores.hpp"
#include "platform/error.hpp"
#include "trial/media.hpp"

namespace dutperf {

namespace {

constexpr std::chrono::milliseconds kAnswerTimeout{500};
constexpr std::uint64_t kMaxTscSkewNs =
    1000;  // RDTSC is not ordered with loads, and a virtual machine's counters agree no better
constexpr std::uint64_t kShortTurnNs = 1'000'000;  // after a longer turn, the backlog of a receive queue is unknown
constexpr double kStartDelayS = 0.002;             // so that every loop is running when the first frame is due
constexpr double kSendingGraceShare =
    0.01;  // extra sending time before the rest is given up; the client's limit is far stricter
constexpr double kSendingGraceS = 0.05;
constexpr double kCountsLateS = 1.5;  // some cards update their driver's counters once a second
constexpr std::uint64_t kFramesBetweenReadings = std::uint64_t{1} << 30U;
constexpr std::uint64_t kMostSharedFrames = std::uint64_t{1} << 34U;  // 2 GiB for each receiver

AddressVariation variation(bool varies) { return varies ? AddressVariation::word : AddressVariation::none; }

AddressVariations variations(const StreamSpec& stream, bool ipv6, bool foreground) {
    const auto offset = [ipv6](const std::optional<AddressField>& field) {
        return !field ? std::uint8_t{0} : ipv6 ? field->offset6 : field->offset4;
    };
    AddressVariations vary{.source = variation(foreground && stream.source_address),
                           .destination = variation(foreground && stream.destination_address),
                           .source_offset = offset(stream.source_address),
                           .destination_offset = offset(stream.destination_address)};
    if (stream.networks > 1) vary.destination = AddressVariation::network;
    return vary;
}

FieldPair address_fields(const StreamSpec& stream, std::uint64_t seed, std::uint64_t stride) {
    const FieldSpec still{};
    const FieldSpec network{
        .mode = FieldMode::random, .min = 0, .max = static_cast<std::uint16_t>(stream.networks - 1)};
    const FieldSpec source = stream.source_address ? stream.source_address->field : still;
    const FieldSpec destination = stream.networks > 1          ? network
                                  : stream.destination_address ? stream.destination_address->field
                                                               : still;
    return {source, destination, seed, stride};
}

// A number for each template since the start of the program.
std::uint32_t next_generation() {
    static std::uint32_t generation = 0;
    return ++generation;
}

// A direction, and one sender's share of its schedule.
struct Shared {
    Direction direction;
    Share share;
};

AnySchedule steady_schedule(const TrialSpec& spec, const Shared& of, std::uint64_t clock_hz) {
    const StreamSpec& stream = *spec.streams[index_of(of.direction)];
    const std::uint64_t frames = spec.intended(of.direction);
    if (!stream.then) return ConstantRate(clock_hz, stream.rate_fps, frames, spec.burst, of.share);
    const std::uint64_t before_change = spec.due_before(of.direction, stream.then->after_ns);
    const Ticks change = ticks_of(stream.then->after_ns, clock_hz) + 1;  // rounded up: no frame is early
    return ChangingRate(
        {clock_hz, stream.rate_fps, before_change, spec.burst, of.share},
        {clock_hz, stream.then->rate_fps, frames - before_change, spec.burst, of.share.from(before_change)}, change,
        spec.burst);
}

AnySchedule schedule_of(const TrialSpec& spec, const Shared& of, std::uint64_t clock_hz) {
    const StreamSpec& stream = *spec.streams[index_of(of.direction)];
    const std::uint64_t frames = spec.intended(of.direction);
    if (const auto* bursts = std::get_if<Bursts>(&stream.pattern)) {
        return Listed(BurstTimes(*bursts, clock_hz, stream.rate_fps), frames, spec.burst, of.share);
    }
    if (const auto* profile = std::get_if<Profile>(&stream.pattern)) {
        return Listed(ProfileTimes(*profile, clock_hz), frames, spec.burst, of.share);
    }
    if (const auto* recorded = std::get_if<Recorded>(&stream.pattern)) {
        return Listed(RecordedTimes(*recorded, clock_hz), frames, spec.burst, of.share);
    }
    if (std::holds_alternative<Poisson>(stream.pattern)) {
        return Listed(PoissonTimes(spec.uniform_times(of.direction), ticks_of(spec.duration_ns, clock_hz)), frames,
                      spec.burst, of.share);
    }
    return steady_schedule(spec, of, clock_hz);
}

std::uint32_t unchecked(const std::vector<DescribedFrame>& kinds) {
    std::uint32_t unchecked = 0;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        if (!kinds[kind].checked) unchecked |= 1U << kind;
    }
    return unchecked;
}

void add_tags_from_end(const FrameList& list, std::set<std::uint16_t>& from_end) {
    for (std::uint64_t i = 0; i < list.tagged(); ++i) {
        const FrameList::Frame& frame = list.frame(list.number_of_tagged(i));
        from_end.insert(static_cast<std::uint16_t>(frame.length - frame.tag_at));
    }
}

// Of both directions: a DUT may send a frame back.
std::vector<std::uint16_t> tags_from_end(const TrialSpec& spec) {
    std::set<std::uint16_t> from_end;
    for (const auto& stream : spec.streams) {
        if (stream && stream->replayed) add_tags_from_end(*stream->replayed->list, from_end);
        if (!stream || !stream->described) continue;
        for (const DescribedFrame& kind : stream->described->kinds)
            from_end.insert(static_cast<std::uint16_t>(kind.length() - kind.tag_at));
    }
    return {from_end.begin(), from_end.end()};
}

// The parts of the sending time over which losses are counted, in frame numbers.
MissingFrames::Bounds loss_bounds(const TrialSpec& spec, Direction direction) {
    MissingFrames::Bounds bounds{};
    const auto numbered = [&](std::uint64_t frames) { return spec.numbered_among(direction, frames); };
    std::ranges::transform(spec.ends_of_parts(direction, bounds.size()), bounds.begin(), numbered);
    return bounds;
}

}  // namespace

// One core's loop. It runs its roles in turn until the trial's end and keeps its longest stall.
struct RunningTrial::Loop {
    std::vector<Sender*> senders;
    std::vector<Receiver*> receivers;
    LoopStall stall;
    std::thread thread;

    void run(RunningTrial& trial) {
        run_on(0, {stall.core});
        claim_core_for_thread();
        rte_thread_register();  // for the pools' cache of this core
        trial.loop_is_ready();
        turn_until_end(trial);
        flush_caches(trial);
        rte_thread_unregister();
        trial.loop_is_done();
    }

    void turn_until_end(RunningTrial& trial) {
        std::size_t sending = static_cast<std::size_t>(
            std::ranges::count_if(senders, [](const Sender* sender) { return !sender->done(); }));
        Ticks last = now_ticks();
        for (Ticks now = last;;) {
            if (now - last > stall.whole && now >= trial.parts_.start) [[unlikely]]
                stall.whole = now - last;
            if (trial.end_.has_come(now)) {  // only here: a stall at the end counts as well
                for (Receiver* receiver : receivers)
                    receiver->end(now - last > ticks_of(kShortTurnNs, trial.bed_.clock_hz));
                return;
            }
            last = now;
            Ticks known = 0;  // time after sending; serves the next turn if nothing was received
            for (Sender* sender : senders) known = std::max(known, sender->turn(now));
            for (Receiver* receiver : receivers) {
                if (receiver->turn()) known = 0;
            }
            if (sending != 0) [[likely]]
                sending = watch_sending(trial, sending);
            now = known != 0 ? known : now_ticks();
        }
    }

    // Counts the senders that still send; the last one of the trial sets its end.
    std::size_t watch_sending(RunningTrial& trial, std::size_t sending) {
        const auto still = static_cast<std::size_t>(
            std::ranges::count_if(senders, [](const Sender* sender) { return !sender->done(); }));
        stall.sending = stall.whole;
        if (still == sending) [[likely]]
            return still;
        const auto ended = static_cast<int>(sending - still);
        if (trial.sending_.fetch_sub(ended) == ended) {
            const double ahead_s = trial.bed_.offloads.contains(Offload::send_at) ? kMaxLeadS : 0;
            const double drain_s = ahead_s + (trial.drains_ ? static_cast<double>(trial.spec_.drain_ns) / 1e9 : 0);
            trial.end_.set_after_drain(now_ticks() +
                                       static_cast<Ticks>(drain_s * static_cast<double>(trial.bed_.clock_hz)));
        }
        return still;
    }

    static void flush_caches(const RunningTrial& trial) {
        for (rte_mempool* pool : trial.bed_.frame_pools) rte_mempool_cache_flush(nullptr, pool);
        rte_mempool_cache_flush(nullptr, trial.bed_.control_pool);
    }
};

RunningTrial::RunningTrial(const TestBed& bed, const TrialSpec& spec)
    : bed_(bed),
      spec_(spec),
      described_(bed.paths.size()),
      parts_(bed.paths.size(), bed.ports.size()),
      lost_(bed.paths.size()),
      sending_(0),
      caretaker_(gettid()) {
    if (spec_.frame_timeout_ns && bed_.offloads.contains(Offload::rate_limit)) {
        throw Error("bad_request",
                    "with rate_limit frames wait in the tester's own port, which must not count as lateness of the "
                    "DUT's: leave out one of the two",
                    "params.frame_timeout_ns");
    }
    for (std::size_t port = 0; port < bed_.ports.size() && bed_.offloads.contains(Offload::send_at); ++port) {
        if (paths_from(bed_, spec_, port).size() > 1) {
            throw Error("bad_request",
                        "several paths begin at the port " + bed_.ports[port]->side() +
                            ", whose NIC sends the frames of a queue in their order: leave out the offload send_at",
                        "params.paths");
        }
    }
    if (spec_.fill) require_fill_possible();
    for (NeighbourResponder* responder : bed_.responders) answered_.push_back(responder->resolve(kAnswerTimeout));
    if (bed_.ports.size() > 2) announce_ports();
    prepare_connections();
    for (const Direction direction : spec_.active()) {
        make_senders(direction);
        prepare_to_receive(direction);
    }
    for (std::size_t port = 0; port < bed_.ports.size(); ++port) {
        if (paths_from(bed_, spec_, port).empty())
            parts_.idle_senders[port] = make_idle_sender(bed_.ports[port]->queue(0), bed_.control_rings[port]);
        make_receivers(port);
    }
    limit_rates();
    make_loops();
    start();
}

// Learning frames (RFC 2544 section 23) for a switch with more than two ports: it floods the frames to a port that has
// never sent any. ARP and NDP did it where there are gateways.
void RunningTrial::announce_ports() {
    constexpr std::chrono::milliseconds kArrival{20};
    const auto is_direct = [](const NeighbourResponder* one) {
        return !one->gateway().ipv4 && !one->gateway().ipv6 && !one->gateway().mac;
    };
    if (std::ranges::none_of(bed_.responders, is_direct)) return;
    for (NeighbourResponder* responder : bed_.responders) responder->announce();
    const auto end = std::chrono::steady_clock::now() + kArrival;
    while (std::chrono::steady_clock::now() < end) {
        for (NeighbourResponder* responder : bed_.responders) responder->serve();
    }
}

RunningTrial::~RunningTrial() {
    stop();
    for (const auto& loop : loops_) {
        if (loop->thread.joinable()) loop->thread.join();
    }
}

// Where a path's frames go: to the DUT, or without one to the port at the path's end.
Mac RunningTrial::dut_mac(Direction direction, bool ipv6, std::uint16_t vlan) const {
    const Mac& direct = bed_.ports[bed_.receiving_port(direction)]->mac();
    return bed_.responders[bed_.sending_port(direction)]->dut_mac(ipv6, direct, vlan);
}

DescribedParts RunningTrial::described_parts(Direction direction) {
    if (bed_.offloads.contains(Offload::checksums)) {
        throw Error("bad_request", "the offload checksums is for UDP directly over IP: described frames go without it",
                    bed_.field_of(direction) + ".frames");
    }
    const std::size_t side = bed_.sending_port(direction);
    const PathMark path = mark_of_path(index_of(direction));
    const DescribedStream& stream = *spec_.streams[index_of(direction)]->described;
    std::vector<DescribedKind> kinds;
    for (const DescribedFrame& frame : stream.kinds) {
        const auto stream_byte = static_cast<std::uint8_t>(
            path.stream | (spec_.stamping != Stamping::none ? kStreamStamped : 0) | kinds.size() << kStreamKindShift);
        const std::uint16_t vlan = vlan_of(frame.head.data(), frame.head.size());
        const Mac destination = dut_mac(direction, frame.destination == NextHop::ipv6, vlan);
        kinds.emplace_back(DescribedTemplate(frame, {.source = bed_.ports[side]->mac(),
                                                     .destination = destination,
                                                     .trial = spec_.number,
                                                     .stream = stream_byte,
                                                     .seed = spec_.kind_seed(direction, kinds.size()),
                                                     .pair = path.pair}),
                           next_generation());
    }
    described_[index_of(direction)] =
        std::make_unique<DescribedFrames>(bed_.frame_pools[2 * index_of(direction)], std::move(kinds),
                                          stream.kind_order(generator_seed(spec_.seed, direction, Generator::kinds)));
    return {.frames = described_[index_of(direction)].get(),
            .stamps = StampChoice::of(spec_, direction),
            .nic = nic_sending(direction)};
}

// Whether another path sends from the same port, or to the same one.
bool RunningTrial::shares_port(Direction direction) const {
    return paths_from(bed_, spec_, bed_.sending_port(direction)).size() > 1 ||
           paths_into(bed_, spec_, bed_.receiving_port(direction)).size() > 1;
}

ReplayParts RunningTrial::replay_parts(Direction direction) {
    const std::string field = bed_.field_of(direction) + ".replay";
    const PathMark path = mark_of_path(index_of(direction));
    const ReplayedStream& stream = *spec_.streams[index_of(direction)]->replayed;
    if (bed_.queues > 1) throw Error("bad_request", "needs ports with one queue: several have no common order", field);
    if (bed_.offloads.contains(Offload::checksums))
        throw Error("bad_request", "goes without the offload checksums: the frames have theirs", field);
    const std::uint64_t untagged = stream.untagged_among(spec_.intended(direction));
    if (untagged != 0 && shares_port(direction)) {
        throw Error("bad_request",
                    "has frames without a tag, whose path nothing tells: they need ports that no other path uses in "
                    "the same direction",
                    field);
    }
    if (untagged > LengthLog::kMostFrames) {
        throw Error("no_memory",
                    "has more than " + std::to_string(LengthLog::kMostFrames) +
                        " frames without a tag: every arrival is noted until the end of the trial",
                    field);
    }
    return {.pool = bed_.frame_pools[2 * index_of(direction)],
            .list = stream.list,
            .source = bed_.ports[bed_.sending_port(direction)]->mac(),
            .destination = {Mac{}, dut_mac(direction, false), dut_mac(direction, true)},
            .trial = spec_.number,
            .path = path,
            .generation = next_generation(),
            .nic = nic_sending(direction)};
}

FramePool* RunningTrial::make_pool_of(Direction direction, const FrameSpec& frame, bool foreground,
                                      bool ports_of_stream) {
    const std::size_t side = bed_.sending_port(direction);
    const StreamSpec& stream = *spec_.streams[index_of(direction)];
    const PathMark path = mark_of_path(index_of(direction));
    const auto stream_byte = static_cast<std::uint8_t>(path.stream | (foreground ? 0 : kStreamBackground) |
                                                       (spec_.stamping != Stamping::none ? kStreamStamped : 0));
    const FrameIdentity identity{spec_.number, stream_byte, ports_of_stream ? stream.source_port.min : std::uint16_t{0},
                                 ports_of_stream ? stream.destination_port.min : std::uint16_t{0}, path.pair};
    const Mac destination = dut_mac(direction, frame.is_ipv6());
    FrameTemplate made(frame, bed_.ports[side]->mac(), destination, identity,
                       variations(stream, frame.is_ipv6(), foreground));
    if (bed_.offloads.contains(Offload::checksums)) made.leave_checksums_to_hardware();
    rte_mempool* pool = bed_.frame_pools[2 * index_of(direction) + (foreground ? 0 : 1)];
    frame_pools_.push_back(std::make_unique<FramePool>(pool, made, next_generation()));
    return frame_pools_.back().get();
}

FrameSourceParts RunningTrial::frame_parts(Direction direction) {
    const StreamSpec& stream = *spec_.streams[index_of(direction)];
    const auto seed = [&](Generator generator) { return generator_seed(spec_.seed, direction, generator); };
    const auto fields = [&]() -> FrameFields {
        if (spec_.connections)
            return FrameFields({spec_.connections->space(stream), connection_choice(direction), bed_.queues});
        return {{stream.source_port, stream.destination_port, seed(Generator::ports), bed_.queues},
                address_fields(stream, seed(Generator::addresses), bed_.queues)};
    };
    FramePool* foreground = make_pool_of(direction, stream.foreground, true, true);
    FramePool* background = stream.is_mixed() ? make_pool_of(direction, *stream.background, false, true) : nullptr;
    return {.foreground = foreground,
            .background = background,
            .fields = fields(),
            .n = stream.n,
            .m = stream.m,
            .stamps = StampChoice::of(spec_, direction),
            .nic = nic_sending(direction)};
}

// The state table is made new for connections that are opened.
void RunningTrial::prepare_connections() {
    if (!spec_.connections) return;
    if (bed_.offloads.contains(Offload::checksums))
        throw Error("bad_request", "the offload checksums does not go with connections", "params.connections");
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
void RunningTrial::choose_entries(const StateTable& table) {
    const ConnectionSpec& wanted = *spec_.connections;
    const std::uint32_t learned = table.learned();
    const bool replies = spec_.streams[1 - index_of(wanted.initiator)].has_value();
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
std::optional<Direction> RunningTrial::initiator_into(std::size_t port) const {
    if (!spec_.connections) return std::nullopt;
    const Direction initiator = spec_.connections->initiator;
    const bool ends_here = bed_.receiving_port(initiator) == port && spec_.streams[index_of(initiator)];
    return ends_here ? std::optional(initiator) : std::nullopt;
}

bool RunningTrial::replies(Direction direction) const {
    return spec_.connections && !spec_.connections->is_initiator(direction);
}

ConnectionChoice RunningTrial::connection_choice(Direction direction) const {
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

ConnectionChoice RunningTrial::responder_choice(std::uint64_t seed) const {
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

ResponderParts RunningTrial::responder_parts(Direction direction) {
    const StreamSpec& stream = *spec_.streams[index_of(direction)];
    const StateTable& table = **bed_.state;
    const FieldSpec own = stream.source_address ? stream.source_address->field : FieldSpec{};
    if (own != table.space().destination_address)
        throw Error("connections", "the Responder's addresses are not the destinations of the connections",
                    bed_.field_of(direction) + ".source_address");
    FrameSpec frame = stream.foreground;
    std::visit([](auto& address) { address = {}; }, frame.addresses.destination);
    const ConnectionChoice choice = connection_choice(direction);
    std::optional<ConnectionFields> addresses;
    if (stream.source_address) addresses.emplace(table.space(), choice, bed_.queues);
    return {.pool = make_pool_of(direction, frame, true, false),
            .table = &table,
            .choice = choice,
            .addresses = std::move(addresses),
            .stamps = StampChoice::of(spec_, direction),
            .nic = nic_sending(direction)};
}

// Lost frames are noted by their connections, which a later trial may ask for.
void RunningTrial::watch_connections(Direction direction, Expected& expected) const {
    if (!spec_.connections || spec_.connections->use == ConnectionUse::open || !spec_.streams[index_of(direction)])
        return;
    expected.on_missing = [table = bed_.state->get(), choice = connection_choice(direction)](std::uint64_t number,
                                                                                             std::uint64_t count) {
        for (; count > 0; --count) table->lose(choice.of(number++));
    };
}

// With limits, a sender catches up after a stall a little above the rate, not in a burst.
void RunningTrial::limit_rates() {
    if (!bed_.offloads.contains(Offload::rate_limit)) return;
    for (std::size_t port = 0; port < bed_.ports.size(); ++port) {
        std::uint32_t ceiling_mbps = 0;
        for (const Direction path : paths_from(bed_, spec_, port)) {
            const std::uint32_t of_path = spec_.rate_ceiling_mbps(path, bed_.queues);
            ceiling_mbps = of_path == 0 ? 0 : ceiling_mbps + of_path;
            if (of_path == 0) break;
        }
        parts_.rate_limits[port] = bed_.ports[port]->limit_rate(ceiling_mbps);
    }
}

NicSending RunningTrial::nic_sending(Direction direction) const {
    if (!bed_.offloads.contains(Offload::send_at)) return {};
    const std::size_t side = bed_.sending_port(direction);
    const std::uint64_t rate_fps = spec_.streams[index_of(direction)]->highest_rate_fps() / bed_.queues + 1;
    return {.clock = bed_.clocks[side],
            .field = send_time_field(),
            .lead = lead_at(rate_fps, bed_.ports[side]->transmit_ring(), bed_.clock_hz)};
}

void RunningTrial::make_senders(Direction direction) {
    const std::size_t side = bed_.sending_port(direction);
    const Port& port = *bed_.ports[side];
    auto& senders = parts_.senders[index_of(direction)];
    const auto& stream = spec_.streams[index_of(direction)];
    const bool stamps = spec_.stamping != Stamping::none;
    using AnyParts = std::variant<FrameSourceParts, DescribedParts, ReplayParts, ResponderParts>;
    AnyParts parts = stream->described    ? AnyParts(described_parts(direction))
                     : stream->replayed   ? AnyParts(replay_parts(direction))
                     : replies(direction) ? AnyParts(responder_parts(direction))
                                          : AnyParts(frame_parts(direction));
    for (std::uint16_t queue = 0; queue < bed_.queues; ++queue) {
        const Share share{queue, bed_.queues};
        const std::uint64_t hz = spec_.fill ? line_hz(port.link().mbps) : bed_.clock_hz;
        const AnySchedule schedule = schedule_of(spec_, {direction, share}, hz);
        const auto make = [&]<class Parts>(Parts& one) {
            one.share = share;
            if constexpr (!std::is_same_v<Parts, FrameSourceParts>)
                return make_transmitter(stamps, port.queue(queue), schedule, bed_.control_rings[side], one);
            else
                return make_transmitter(*stream, stamps, port.queue(queue), schedule, bed_.control_rings[side], one);
        };
        senders.push_back(std::visit(make, parts));
        if (queue == 0 && !stream->additional.empty())
            senders.back()->send_additional(make_additional(direction, share));
        if (port.sends_into_dut()) senders.back()->send_into_dut(bed_.clock_hz);
        if (spec_.fill) senders.back()->fill_line(make_line_filler(direction));
        sending_ += 1;
    }
}

// What filling the line excludes, because the place of a frame on it would not be known or not be its time.
void RunningTrial::require_fill_possible() const {
    const auto refuse = [](const std::string& why) { throw Error("bad_request", why, "params.pacing"); };
    if (bed_.queues > 1)
        refuse("fill needs a single queue: the card decides in which order the frames of several ones leave");
    if (bed_.offloads.contains(Offload::send_at) || bed_.offloads.contains(Offload::rate_limit))
        refuse("fill does not go with the offloads send_at and rate_limit, with which the card paces the frames");
    if (spec_.stamping != Stamping::none)
        refuse(
            "fill does not go with delays or a frame timeout: frames wait in the tester's own transmit ring, and "
            "their delays would include that");
    for (const Direction direction : spec_.active()) {
        if (shares_port(direction))
            refuse("fill needs ports with one path each way, and the path " + bed_.name_of(direction) +
                   " shares its ports with others: its fillers take all of the line");
        if (!spec_.streams[index_of(direction)]->additional.empty())
            refuse("fill does not go with modifiers that send frames beside the test frames");
        const Port& port = *bed_.ports[bed_.sending_port(direction)];
        if (!port.is_card() || bed_.filler_pools[bed_.sending_port(direction)] == nullptr)
            refuse("fill needs a card: the " + port.side() +
                   " port is a software device, which takes frames at any time, so there is no line to fill");
        if (port.link().mbps == 0)
            refuse("fill needs the rate of the media, and the card of the " + port.side() + " port reports none");
        const auto mode = port.flow_control();
        if (mode == FlowControl::receive || mode == FlowControl::full)
            refuse("fill needs a line that only the sender controls, and flow control lets the other end of the " +
                   port.side() + " port's cable stop it: leave engine.flow_control off");
        require_nobody(direction);
    }
}

// Nobody may have the fillers' address: neither a port of the tester nor the DUT.
void RunningTrial::require_nobody(Direction direction) const {
    const Mac& nobody = spec_.fill->destination;
    const auto has_it = [&](const Port* port) { return port->mac() == nobody; };
    if (std::ranges::any_of(bed_.ports, has_it) || dut_mac(direction, false) == nobody ||
        dut_mac(direction, true) == nobody) {
        throw Error("bad_request",
                    "the fillers' address " + to_string(nobody) +
                        " is that of a port or of the DUT: choose one that nobody has",
                    "params.pacing");
    }
}

std::unique_ptr<LineFiller> RunningTrial::make_line_filler(Direction direction) const {
    const std::size_t side = bed_.sending_port(direction);
    const Port& port = *bed_.ports[side];
    return std::make_unique<LineFiller>(LineFillerParts{.pool = bed_.filler_pools[side],
                                                        .source = port.mac(),
                                                        .destination = spec_.fill->destination,
                                                        .path = index_of(direction),
                                                        .longest_length = longest_filler(bed_.filler_pools[side]),
                                                        .generation = next_generation(),
                                                        .ring = port.transmit_ring(),
                                                        .line_hz = line_hz(port.link().mbps),
                                                        .clock_hz = bed_.clock_hz,
                                                        .clock_difference = kMaxClockDifference,
                                                        .burst = spec_.burst});
}

std::unique_ptr<AdditionalSender> RunningTrial::make_additional(Direction direction, const Share& share) const {
    const std::size_t side = bed_.sending_port(direction);
    const Mac source = bed_.ports[side]->mac();
    std::vector<AdditionalSender::Kind> kinds;
    for (const AdditionalFrames& one : spec_.streams[index_of(direction)]->additional) {
        auto& kind = kinds.emplace_back(
            AdditionalSender::Kind{.frames = one.frames,
                                   .intended = one.among(spec_.intended(direction), spec_.duration_ns),
                                   .after_frames = one.after_frames,
                                   .every_ns = one.every_ns});
        for (FrameBytes& frame : kind.frames) {
            if (one.destination != NextHop::given) {
                const Mac destination = dut_mac(direction, one.destination == NextHop::ipv6);
                std::ranges::copy(destination, frame.begin());
            }
            std::ranges::copy(source, frame.begin() + source.size());
        }
    }
    return std::make_unique<AdditionalSender>(bed_.control_pool, std::move(kinds), share, bed_.clock_hz);
}

std::vector<Marks> RunningTrial::marks(std::size_t port) const {
    std::vector<Marks> marks;
    for (const PortMark& mark : marks_at(bed_, spec_, port)) {
        if (mark.of == PortMark::Of::filler) {
            marks.push_back(filler_marks(index_of(mark.path))[mark.kind]);
            continue;
        }
        const AdditionalFrames& frames = spec_.streams[index_of(mark.path)]->additional[mark.kind];
        marks.push_back(mark.of == PortMark::Of::reply ? frames.replies : frames.forwarded);
    }
    return marks;
}

// What all receivers of an active path share.
void RunningTrial::prepare_to_receive(Direction direction) {
    const std::string& path = spec_.delays_files[index_of(direction)];
    auto& delays = parts_.delay_files[index_of(direction)];
    if (!path.empty()) {
        const std::string field = "params.delays_files." + bed_.name_of(direction);
        delays = std::make_unique<DelayFile>(path, field, bed_.clock_hz, bed_.queues, DelayFile::kRingRecords,
                                             bed_.other_cores);
    }
    if (bed_.queues > 1 && spec_.intended(direction) > kMostSharedFrames) {
        throw Error(
            "no_memory",
            "with several queues a direction has at most " + std::to_string(kMostSharedFrames) +
                " frames a trial: every receiver keeps a bit for each, to know duplicates of what another one took");
    }
    if (spec_.streams[index_of(direction)]->described)
        parts_.groups[index_of(direction)].emplace(spec_.groups(direction));
    note_lengths(direction);
    const bool has_numbers = spec_.numbered_among(direction, spec_.intended(direction)) != 0;
    if (spec_.capture && spec_.capture->of(CapturedAs::lost) != 0 && has_numbers)
        lost_[index_of(direction)].emplace(LostNumbers{.most = spec_.capture->of(CapturedAs::lost)});
}

Expected RunningTrial::expected(Direction direction, std::uint16_t queue) const {
    Expected expected{.trial = spec_.number,
                      .direction = direction,
                      .frames = 0,
                      .bounds = {},
                      .stamping = spec_.stamping,
                      .frame_timeout = ticks_of(spec_.frame_timeout_ns.value_or(0), bed_.clock_hz),
                      .delays = nullptr,
                      .shared = bed_.queues > 1,
                      .tags_from_end = tags_from_end(spec_)};
    if (!bed_.offloads.contains(Offload::send_at)) expected.max_tsc_skew = ticks_of(kMaxTscSkewNs, bed_.clock_hz);
    if (direction == Direction::none) return expected;
    const std::size_t path = index_of(direction);
    expected.frames = spec_.numbered_among(direction, spec_.intended(direction));
    expected.bounds = loss_bounds(spec_, direction);
    expected.ends_of_parts = spec_.ends_of_parts(direction, spec_.delay_parts);
    if (parts_.delay_files[path]) expected.delays = &parts_.delay_files[path]->ring(queue);
    if (parts_.groups[path]) {
        expected.groups = &*parts_.groups[path];
        expected.unchecked_kinds = unchecked(spec_.streams[path]->described->kinds);
    }
    expected.untagged = parts_.lengths[path].get();
    return expected;
}

void RunningTrial::make_receivers(std::size_t port) {
    const std::vector<Direction> paths = paths_into(bed_, spec_, port);
    const bool stamped_by_nic = bed_.offloads.contains(Offload::receive_timestamps) && spec_.stamping != Stamping::none;
    const Port& open = *bed_.ports[port];
    for (std::uint16_t queue = 0; queue < bed_.queues; ++queue) {
        const auto expect = [&](Direction path) {
            Expected expected = this->expected(path, queue);
            if (path == Direction::none) return expected;
            if (lost_[index_of(path)]) expected.lost = &*lost_[index_of(path)];
            watch_connections(path, expected);
            return expected;
        };
        auto& receiver = parts_.receivers[port].emplace_back(std::make_unique<Receiver>(
            open.queue(queue), bed_.responders[port]->host(), expect(paths.empty() ? Direction::none : paths.front()),
            bed_.control_pool, bed_.control_rings[port]));
        for (std::size_t path = 1; path < paths.size(); ++path) receiver->expect(expect(paths[path]));
        receiver->watch_room(open.peer_queue_size());
        receiver->watch_ring(open.kernel_queue_size());
        watch_for_capture(*receiver);
        receiver->recognise(marks(port));
        if (const auto initiator = initiator_into(port))
            receiver->learn(
                {**bed_.state, connection_choice(*initiator), spec_.number, *initiator, spec_.intended(*initiator)});
        if (stamped_by_nic) receiver->stamp_by({bed_.clocks[port], receive_time_field()});
    }
}

// Arrivals without a tag are noted if the list has frames without one.
void RunningTrial::note_lengths(Direction direction) {
    const auto& stream = spec_.streams[index_of(direction)];
    if (!stream->replayed) return;
    const FrameList& list = *stream->replayed->list;
    const std::uint64_t untagged = stream->replayed->untagged_among(spec_.intended(direction));
    if (untagged == 0) return;
    const SenderCounts& counts = parts_.senders[index_of(direction)].front()->counts();
    parts_.lengths[index_of(direction)] =
        std::make_unique<LengthLog>(LengthLog::Watched{.sent = &counts.sent,
                                                       .in_hand = spec_.burst,
                                                       .frames_for_neighbours = list.has_frames_for_neighbours(),
                                                       .only_untagged = list.tagged() == 0},
                                    untagged);
}

void RunningTrial::watch_for_capture(Receiver& receiver) {
    if (!spec_.capture) return;
    const std::size_t longest = rte_pktmbuf_data_room_size(bed_.frame_pools[0]);
    receiver.capture_to(*captures_.emplace_back(std::make_unique<CaptureBuffer>(*spec_.capture, longest)));
}

CaptureWritten RunningTrial::write_captured() {
    CaptureWritten counts;
    std::vector<CapturedFrame> frames;
    std::vector<std::vector<std::uint8_t>> made;
    for (std::size_t i = 0; i < captures_.size(); ++i) {
        for (const CaptureBuffer::Kept& kept : captures_[i]->kept()) {
            const auto after = static_cast<std::int64_t>(kept.at - parts_.start);
            const double after_ns = static_cast<double>(after) * 1e9 / static_cast<double>(bed_.clock_hz);
            frames.push_back({.time_ns = began_ns_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(after_ns)),
                              .kind = kept.kind,
                              .side = static_cast<std::uint8_t>(i / bed_.queues),
                              .comment = kCaptureNames[static_cast<std::size_t>(kept.kind)],
                              .bytes = captures_[i]->bytes_of(kept),
                              .size = kept.size});
        }
        for (std::size_t kind = 0; kind < kCaptureKinds; ++kind)
            counts.left_out[kind] += captures_[i]->left_out()[kind];
    }
    for (const Direction direction : spec_.active()) {
        if (!lost_[index_of(direction)]) continue;
        add_lost(direction, made, frames);
        counts.left_out[static_cast<std::size_t>(CapturedAs::lost)] += lost_[index_of(direction)]->left_out;
    }
    for (const CapturedFrame& frame : frames) ++counts.written[static_cast<std::size_t>(frame.kind)];
    std::vector<std::string> names;
    for (const Port* port : bed_.ports) names.push_back(port->side());
    counts.error = write_capture(spec_.capture->path, names, std::move(frames));
    if (!counts.error.empty()) counts.written = {};
    return counts;
}

// Lost frames are made a second time by their senders.
void RunningTrial::add_lost(Direction direction, std::vector<std::vector<std::uint8_t>>& made,
                            std::vector<CapturedFrame>& frames) {
    for (const std::uint64_t lost : lost_[index_of(direction)]->numbers) {
        const std::uint64_t number = spec_.frame_numbered(direction, lost);
        rte_mbuf* frame = parts_.senders[index_of(direction)][number % bed_.queues]->make_again(number / bed_.queues);
        if (frame == nullptr) {
            ++lost_[index_of(direction)]->left_out;
            continue;
        }
        const std::uint8_t* bytes = rte_pktmbuf_mtod(frame, const std::uint8_t*);
        made.emplace_back(bytes, bytes + rte_pktmbuf_data_len(frame));
        rte_pktmbuf_free(frame);
        frames.push_back({.time_ns = began_ns_ + spec_.due_ns(direction, number),
                          .kind = CapturedAs::lost,
                          .side = static_cast<std::uint8_t>(bed_.sending_port(direction)),
                          .comment = "lost: frame " + std::to_string(number) + " of " + bed_.name_of(direction),
                          .bytes = made.back().data(),
                          .size = static_cast<std::uint16_t>(made.back().size())});
    }
}

void RunningTrial::make_loops() {
    for (const unsigned core : bed_.cores.distinct()) {
        auto loop = std::make_unique<Loop>();
        loop->stall.core = core;
        for (const Direction direction : spec_.active()) {
            const auto& senders = parts_.senders[index_of(direction)];
            for (std::size_t queue = 0; queue < senders.size(); ++queue) {
                if (bed_.cores.send[bed_.sending_port(direction)][queue] == core)
                    loop->senders.push_back(senders[queue].get());
            }
        }
        for (std::size_t port = 0; port < bed_.ports.size(); ++port) {
            if (parts_.idle_senders[port] && bed_.cores.send[port][0] == core)
                loop->senders.push_back(parts_.idle_senders[port].get());
            for (std::size_t queue = 0; queue < parts_.receivers[port].size(); ++queue) {
                if (bed_.cores.receive[port][queue] == core)
                    loop->receivers.push_back(parts_.receivers[port][queue].get());
            }
        }
        loops_.push_back(std::move(loop));
    }
}

void RunningTrial::start() {
    for (std::size_t side = 0; side < bed_.ports.size(); ++side) {
        parts_.before[side] = bed_.ports[side]->counters();
        parts_.answered_before[side] = bed_.responders[side]->sent();
        parts_.media_mbps[side] = bed_.ports[side]->link().mbps;
    }
    for (FollowedClock* clock : bed_.clocks) {
        if (clock != nullptr) clock->begin();
    }
    unready_ = running_ = loops_.size();
    for (const auto& loop : loops_) loop->thread = std::thread([this, one = loop.get()] { one->run(*this); });
    go_.wait(false);
}

// Each loop calls this. The last one starts the trial, because beside a DUT that spins, the preparing thread may hardly
// run from then on.
void RunningTrial::loop_is_ready() {
    if (unready_.fetch_sub(1) > 1) return go_.wait(false);
    run_on(caretaker_, bed_.other_cores.during_trials);
    begin();
    go_.store(true);
    go_.notify_all();
}

void RunningTrial::loop_is_done() {
    if (running_.fetch_sub(1) == 1) run_on(caretaker_, bed_.other_cores.between_trials);
}

void RunningTrial::begin() {
    const auto ticks = [this](double seconds) {
        return static_cast<Ticks>(seconds * static_cast<double>(bed_.clock_hz));
    };
    const double duration_s = static_cast<double>(spec_.duration_ns) / 1e9;
    parts_.start = now_ticks() + ticks(kStartDelayS + static_cast<double>(spec_.rest_ns) /
                                                          1e9);  // the learning frames (ARP, NDP) have been answered
    began_s_ = monotonic_s(parts_.start, bed_.clock_hz);
    began_ns_ = wall_clock_ns(parts_.start, bed_.clock_hz);
    const Ticks end = parts_.start + ticks_of(spec_.duration_ns, bed_.clock_hz);
    if (sending_.load() == 0) end_.set_after_drain(end + ticks_of(spec_.drain_ns, bed_.clock_hz));
    const Ticks deadline = parts_.start + ticks(duration_s + std::max(kSendingGraceS, kSendingGraceShare * duration_s));
    for (const Direction direction : spec_.active()) {
        // at the media's rate frames are late by its clock, and none can leave in a burst
        const std::uint32_t mbps = parts_.media_mbps[bed_.sending_port(direction)];
        const auto media = media_limit(spec_, direction, mbps, share_of_others(bed_, spec_, direction, mbps));
        const std::uint64_t tolerance_ns = media ? media->tolerance_ns : 0;
        const Ticks punctual = ticks_of(LateBursts::kBurstThresholdNs + tolerance_ns, bed_.clock_hz);
        for (const auto& sender : parts_.senders[index_of(direction)]) {
            sender->start({.start = parts_.start, .end = end, .deadline = deadline, .burst_threshold = punctual});
        }
    }
}

void RunningTrial::stop() {
    if (loops_have_ended()) return;
    drains_ = false;
    stop_sending();
    if (sending_.load() == 0) end_.set_now();  // the loops only receive, or are about to
}

void RunningTrial::stop_sending() {
    if (loops_have_ended()) return;
    stopped_ = true;
    for (const auto& senders : parts_.senders) {
        for (const auto& sender : senders) sender->stop();
    }
}

void RunningTrial::look_after() {
    for (FollowedClock* clock : bed_.clocks) {
        if (clock != nullptr) clock->follow();
    }
    read_counters_in_time();
}

// 32-bit counters must be read before they wrap twice, and many cards' counters stop at their maximum.
void RunningTrial::read_counters_in_time() {
    std::uint64_t sent_so_far = 0;
    for (const Direction direction : spec_.active()) sent_so_far += sent(direction);
    if (sent_so_far - sent_at_reading_ < kFramesBetweenReadings) return;
    sent_at_reading_ = sent_so_far;
    for (Port* port : bed_.ports) port->counters();
}

bool RunningTrial::done() {
    if (!loops_have_ended()) return false;
    const bool waited =
        now_ticks() - last_sent() > static_cast<Ticks>(kCountsLateS * static_cast<double>(bed_.clock_hz));
    if (!drains_ || waited ||
        std::ranges::all_of(spec_.active(), [this](Direction direction) { return is_counted(direction); }))
        return true;
    for (NeighbourResponder* responder : bed_.responders) responder->serve();
    return false;
}

// Whether the counts of a direction are final: no frame is missing that a card may have sent or dropped without having
// updated its driver's counters. Other ports count at once. On those, and if the NIC may keep frames, a frame without a
// count has not left in time.
bool RunningTrial::is_counted(Direction direction) const {
    // of arrivals without a tag it is not known yet whether they are frames of the trial
    const bool all_came = received(direction) >= sent(direction) && !parts_.lengths[index_of(direction)];
    if (all_came || may_keep_frames(bed_.offloads)) return true;
    return std::ranges::none_of(bed_.ports, &Port::is_card);
}

Ticks RunningTrial::last_sent() const {
    Ticks last = 0;
    for (const auto& senders : parts_.senders) {
        for (const auto& sender : senders) last = std::max(last, sender->counts().last_call_end);
    }
    return last;
}

double RunningTrial::elapsed_s() const {
    const Ticks now = now_ticks();
    return now > parts_.start ? static_cast<double>(now - parts_.start) / static_cast<double>(bed_.clock_hz) : 0;
}

std::uint64_t RunningTrial::sent(Direction direction) const {
    std::uint64_t sent = 0;
    for (const auto& sender : parts_.senders[index_of(direction)])
        sent += sender->counts().sent.load(std::memory_order_relaxed);
    return sent;
}

std::uint64_t RunningTrial::received(Direction direction) const {
    std::uint64_t received = 0;
    for (const auto& receiver : parts_.receivers[bed_.receiving_port(direction)])
        received += receiver->statistics(direction).counts().received.load(std::memory_order_relaxed);
    return received;
}

std::vector<PortCounters> RunningTrial::read_counters() {
    std::vector<PortCounters> now;
    for (Port* port : bed_.ports) now.push_back(port->counters());
    return now;
}

SoFar RunningTrial::so_far(Direction direction, const std::vector<PortCounters>& now) const {
    SoFar so_far{.sent = sent(direction), .received = received(direction)};
    for (const auto& sender : parts_.senders[index_of(direction)])
        so_far.max_lateness =
            std::max(so_far.max_lateness, sender->counts().max_lateness.load(std::memory_order_relaxed));
    const std::size_t out = bed_.sending_port(direction), in = bed_.receiving_port(direction);
    const PortCounters &out1 = now[out], &in1 = now[in], &out0 = parts_.before[out], &in0 = parts_.before[in];
    so_far.tester_drops = (in1.nic_missed - in0.nic_missed) + (in1.no_buffer - in0.no_buffer) +
                          (in1.receive_errors - in0.receive_errors) + (in1.kernel_socket - in0.kernel_socket) +
                          (in1.kernel_backlog - in0.kernel_backlog) +
                          (out1.interface_transmit_drops - out0.interface_transmit_drops);
    for (const std::size_t side : {out, in}) {
        if (bed_.clocks[side] != nullptr)
            so_far.nic_clock_uncertainty = std::max(so_far.nic_clock_uncertainty, bed_.clocks[side]->uncertainty());
    }
    return so_far;
}

std::vector<bool> RunningTrial::links_down(const std::vector<PortCounters>& now) const {
    std::vector<bool> down;
    for (std::size_t side = 0; side < bed_.ports.size(); ++side) {
        const Port& port = *bed_.ports[side];
        down.push_back(port.owns_link() &&
                       (!port.link().up || now[side].carrier_changes != parts_.before[side].carrier_changes));
    }
    return down;
}

TrialResult RunningTrial::finish() {
    for (const auto& loop : loops_) loop->thread.join();
    for (FollowedClock* clock : bed_.clocks) {
        if (clock != nullptr) clock->end();
    }
    TrialResult result;
    result.number = spec_.number;
    result.stopped = stopped_;
    result.began_s = began_s_;
    for (std::size_t side = 0; side < bed_.ports.size(); ++side) {
        parts_.after[side] = bed_.ports[side]->counters();
        parts_.answered_after[side] = bed_.responders[side]->sent();
        PortResult& port = result.ports.emplace_back();
        port.link_changes = parts_.after[side].carrier_changes - parts_.before[side].carrier_changes;
        port.link_up = bed_.ports[side]->link().up;
        port.link_down = bed_.ports[side]->owns_link() && (port.link_changes != 0 || !port.link_up);
        port.dut_answered = answered_[side];
    }
    for (const auto& loop : loops_) parts_.stalls.push_back(loop->stall);
    result.directions = collect(bed_, spec_, parts_);
    if (spec_.capture) result.capture = write_captured();
    if (spec_.connections) {
        const StateTable& table = **bed_.state;
        result.connections = {.learned = table.learned(), .remapped = table.remapped(), .lost = table.lost()};
    }
    return result;
}

}  // namespace dutperf
