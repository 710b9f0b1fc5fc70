// SPDX-License-Identifier: Apache-2.0
#include "trial/trial_senders.hpp"

#include <algorithm>

#include "platform/error.hpp"
#include "trial/media.hpp"
#include "trial/stream_schedule.hpp"
#include "trial/trial_paths.hpp"

namespace dutperf {

namespace {

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

// Nobody may have the fillers' address: neither a port of the tester nor the DUT.
void require_nobody(const TestBed& bed, const TrialSpec& spec, Direction direction) {
    const Mac& nobody = spec.fill->destination;
    const auto has_it = [&](const Port* port) { return port->mac() == nobody; };
    if (std::ranges::any_of(bed.ports, has_it) || dut_mac(bed, spec, direction, false) == nobody ||
        dut_mac(bed, spec, direction, true) == nobody) {
        throw Error("bad_request",
                    "the fillers' address " + to_string(nobody) +
                        " is that of a port or of the DUT: choose one that nobody has",
                    "params.pacing");
    }
}

// What filling the line excludes, because the place of a frame on it would not be known or not be its time.
void require_fill_possible(const TestBed& bed, const TrialSpec& spec) {
    const auto refuse = [](const std::string& why) { throw Error("bad_request", why, "params.pacing"); };
    if (bed.queues > 1)
        refuse("fill needs a single queue: the card decides in which order the frames of several ones leave");
    if (bed.offloads.contains(Offload::send_at) || bed.offloads.contains(Offload::rate_limit))
        refuse("fill does not go with the offloads send_at and rate_limit, with which the card paces the frames");
    if (spec.stamping != Stamping::none)
        refuse(
            "fill does not go with delays or a frame timeout: frames wait in the tester's own transmit ring, and "
            "their delays would include that");
    for (const Direction direction : spec.active()) {
        if (paths_from(bed, spec, bed.sending_port(direction)).size() > 1)
            refuse("fill needs ports from which one path begins, and several begin at that of " +
                   bed.name_of(direction) + ": its fillers take all of the line");
        if (!spec.streams[index_of(direction)]->interval.is_whole())
            refuse("fill needs streams that send all the time: leave out begin_ns and sends_ns of " +
                   bed.name_of(direction));
        const Port& port = *bed.ports[bed.sending_port(direction)];
        if (!port.is_card() || bed.filler_pools[bed.sending_port(direction)] == nullptr)
            refuse("fill needs a card: " + the_port(port.side()) +
                   " is a software device, which takes frames at any time, so there is no line to fill");
        if (port.link().mbps == 0)
            refuse("fill needs the rate of the media, and the card of " + the_port(port.side()) + " reports none");
        const auto mode = port.flow_control();
        if (mode == FlowControl::receive || mode == FlowControl::full)
            refuse("fill needs a line that only the sender controls, and flow control lets the other end of " +
                   the_port(port.side()) + "'s cable stop it: leave engine.flow_control off");
        require_nobody(bed, spec, direction);
    }
}

}  // namespace

TrialSpec possible(const TestBed& bed, TrialSpec spec) {
    if (spec.frame_timeout_ns && bed.offloads.contains(Offload::rate_limit)) {
        throw Error("bad_request",
                    "with rate_limit frames wait in the tester's own port, which must not count as lateness of the "
                    "DUT's: leave out one of the two",
                    "params.frame_timeout_ns");
    }
    for (std::size_t port = 0; port < bed.ports.size() && bed.offloads.contains(Offload::send_at); ++port) {
        if (const auto paths = paths_from(bed, spec, port); paths.size() > 1) {
            throw Error("bad_request",
                        "several paths begin at the port " + bed.ports[port]->side() +
                            ", whose NIC sends the frames of a queue in their order: leave out the offload send_at",
                        "params." + bed.path(paths.back()).group);
        }
    }
    if (spec.fill) require_fill_possible(bed, spec);
    return spec;
}

DescribedParts TrialSenders::described_parts(Direction direction) {
    const PortHosts& hosts = *bed_.hosts[bed_.sending_port(direction)];
    const PathMark path = mark_of_path(index_of(direction));
    const DescribedStream& stream = *spec_.streams[index_of(direction)]->described;
    std::vector<DescribedKind> kinds;
    for (const DescribedFrame& frame : stream.kinds) {
        const auto stream_byte = static_cast<std::uint8_t>(path.stream | kinds.size() << kStreamKindShift);
        const std::uint16_t vlan = vlan_of(frame.head.data(), frame.head.size());
        if (frame.host >= hosts.size()) {
            throw Error("bad_request",
                        "is no host of the port, which has " + std::to_string(hosts.size()) + ", numbered from 0",
                        bed_.field_of(direction) + ".frames." + std::to_string(kinds.size()) + ".host");
        }
        const Mac destination = dut_mac(bed_, spec_, direction, frame.destination == NextHop::ipv6, vlan, frame.host);
        kinds.emplace_back(DescribedTemplate(frame, {.source = hosts[frame.host].host().mac,
                                                     .destination = destination,
                                                     .trial = mark_of(bed_, spec_),
                                                     .stream = stream_byte,
                                                     .seed = spec_.kind_seed(direction, kinds.size()),
                                                     .flow_seed = spec_.flow_seed(direction, kinds.size()),
                                                     .pair = path.pair}),
                           next_generation());
    }
    described_[index_of(direction)] =
        std::make_unique<DescribedFrames>(bed_.pool_of(direction), std::move(kinds), spec_.kind_order(direction));
    return {.frames = described_[index_of(direction)].get(),
            .stamps = StampChoice::of(spec_, direction),
            .nic = nic_sending(direction),
            .connections = connections_.parts(direction)};
}

ReplayParts TrialSenders::replay_parts(Direction direction) {
    const std::string field = bed_.field_of(direction) + ".replay";
    const PathMark path = mark_of_path(index_of(direction));
    const ReplayedStream& stream = *spec_.streams[index_of(direction)]->replayed;
    if (bed_.queues > 1) throw Error("bad_request", "needs ports with one queue: several have no common order", field);
    const std::uint64_t untagged = stream.untagged_among(spec_.intended(direction));
    if (untagged != 0 && !bed_.path(direction).also_to.empty())
        throw Error("bad_request", "has frames without a tag: they go with one receiving port only", field);
    if (untagged != 0 && shares_port(bed_, spec_, direction)) {
        throw Error("bad_request",
                    "has frames without a tag, whose path nothing tells: they need ports that no other path uses in "
                    "the same direction, and the path " +
                        bed_.name_of(direction) + " shares its ports with others",
                    field);
    }
    if (untagged > LengthLog::kMostFrames) {
        throw Error("no_memory",
                    "has more than " + std::to_string(LengthLog::kMostFrames) +
                        " frames without a tag: every arrival is noted until the end of the trial",
                    field);
    }
    return {.pool = bed_.pool_of(direction).pool,
            .list = stream.list,
            .source = bed_.ports[bed_.sending_port(direction)]->mac(),
            .destination = {Mac{}, dut_mac(bed_, spec_, direction, false), dut_mac(bed_, spec_, direction, true)},
            .trial = mark_of(bed_, spec_),
            .path = path,
            .generation = next_generation(),
            .nic = nic_sending(direction)};
}

FramePool* TrialSenders::make_pool_of(Direction direction, const FrameSpec& frame, bool foreground,
                                      bool ports_of_stream) {
    const std::size_t side = bed_.sending_port(direction);
    const StreamSpec& stream = *spec_.streams[index_of(direction)];
    const PathMark path = mark_of_path(index_of(direction));
    const auto stream_byte = static_cast<std::uint8_t>(path.stream | (foreground ? 0 : kStreamBackground));
    const FrameIdentity identity{mark_of(bed_, spec_), stream_byte,
                                 ports_of_stream ? stream.source_port.min : std::uint16_t{0},
                                 ports_of_stream ? stream.destination_port.min : std::uint16_t{0}, path.pair};
    const Mac destination = dut_mac(bed_, spec_, direction, frame.is_ipv6());
    FrameTemplate made(frame, bed_.ports[side]->mac(), destination, identity,
                       stream.variations(frame.is_ipv6(), foreground));
    frame_pools_.push_back(std::make_unique<FramePool>(bed_.pool_of(direction, foreground), made, next_generation()));
    return frame_pools_.back().get();
}

FrameSourceParts TrialSenders::frame_parts(Direction direction) {
    const StreamSpec& stream = *spec_.streams[index_of(direction)];
    const auto seed = [&](Generator generator) { return generator_seed(spec_.seed, direction, generator); };
    const auto fields = [&]() -> FrameFields {
        if (const ConnectionSpec* connections = spec_.connections_of(direction))
            return FrameFields({connections->space(stream), connections_.choice(direction), bed_.queues});
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

ResponderParts TrialSenders::responder_parts(Direction direction) {
    const StreamSpec& stream = *spec_.streams[index_of(direction)];
    const StateTable& table = connections_.table_of_replies(direction);
    FrameSpec frame = stream.foreground;
    std::visit([](auto& address) { address = {}; }, frame.addresses.destination);
    const ConnectionChoice choice = connections_.choice(direction);
    std::optional<ConnectionFields> addresses;
    if (stream.source_address) addresses.emplace(table.space(), choice, bed_.queues);
    return {.pool = make_pool_of(direction, frame, true, false),
            .table = &table,
            .choice = choice,
            .addresses = std::move(addresses),
            .stamps = StampChoice::of(spec_, direction),
            .nic = nic_sending(direction)};
}

void TrialSenders::limit_rates() {
    if (!bed_.offloads.contains(Offload::rate_limit)) return;
    for (std::size_t port = 0; port < bed_.ports.size(); ++port) {
        const auto ceiling_mbps = [&](Direction path) { return spec_.rate_ceiling_mbps(path, bed_.queues); };
        const std::vector<Direction> paths = paths_from(bed_, spec_, port);
        const bool limited = std::ranges::none_of(paths, [&](Direction path) { return ceiling_mbps(path) == 0; });
        parts_.rate_limits[port] = bed_.ports[port]->limit_rate(limited ? spec_.most_at_once(paths, ceiling_mbps) : 0);
    }
}

NicSending TrialSenders::nic_sending(Direction direction) const {
    if (!bed_.offloads.contains(Offload::send_at)) return {};
    const std::size_t side = bed_.sending_port(direction);
    const std::uint64_t rate_fps = spec_.streams[index_of(direction)]->highest_rate_fps() / bed_.queues + 1;
    return {.clock = bed_.clocks[side],
            .field = send_time_field(),
            .lead = lead_at(rate_fps, bed_.ports[side]->transmit_ring(), bed_.clock_hz)};
}

std::vector<std::unique_ptr<Sender>> TrialSenders::make(Direction direction) {
    const std::size_t side = bed_.sending_port(direction);
    const Port& port = *bed_.ports[side];
    std::vector<std::unique_ptr<Sender>> senders;
    const auto& stream = spec_.streams[index_of(direction)];
    const bool stamps = spec_.stamping != Stamping::none;
    using AnyParts = std::variant<FrameSourceParts, DescribedParts, ReplayParts, QuestionParts, ResponderParts>;
    AnyParts parts = stream->described          ? AnyParts(described_parts(direction))
                     : stream->replayed         ? AnyParts(replay_parts(direction))
                     : stream->questions        ? AnyParts(dns_.parts(direction, nic_sending(direction)))
                     : spec_.replies(direction) ? AnyParts(responder_parts(direction))
                                                : AnyParts(frame_parts(direction));
    for (std::uint16_t queue = 0; queue < bed_.queues; ++queue) {
        const Share share{queue, bed_.queues};
        const std::uint64_t hz = spec_.fill ? line_hz(port.link().mbps) : bed_.clock_hz;
        const AnySchedule schedule = schedule_of(spec_, {direction, share}, hz);
        const bool adds = queue == 0 && !stream->additional.empty();
        auto additional = adds ? make_additional(direction, share, hz) : nullptr;
        auto line = spec_.fill ? make_line_filler(direction, additional.get()) : nullptr;
        const bool by_socket = !parts_.stamp_logs.empty();
        SenderParts sender{.queue = port.queue(queue),
                           .control = bed_.control_rings[side],
                           .delay_parts = spec_.delay_parts,
                           .into_dut_hz = port.sends_into_dut() ? bed_.clock_hz : 0,
                           .additional = std::move(additional),
                           .line = std::move(line),
                           .stamps = by_socket ? &parts_.stamp_logs[side]->socket() : nullptr,
                           .ptp = by_socket ? ptp_message(direction) : std::nullopt};
        const auto make = [&]<class Parts>(Parts& one) {
            one.share = share;
            if constexpr (!std::is_same_v<Parts, FrameSourceParts>)
                return make_transmitter(stamps, std::move(sender), schedule, one);
            else
                return make_transmitter(*stream, stamps, std::move(sender), schedule, one);
        };
        senders.push_back(std::visit(make, parts));
    }
    return senders;
}

std::optional<PtpMessage> TrialSenders::ptp_message(Direction direction) const {
    if (!parts_.ptp()) return std::nullopt;
    std::vector<DescribedTemplate> of_kinds;
    for (const DescribedFrame& message : spec_.streams[index_of(direction)]->ptp) {
        const std::uint16_t vlan = vlan_of(message.head.data(), message.head.size());
        const bool ipv6 = message.destination == NextHop::ipv6;
        of_kinds.emplace_back(message,
                              DescribedTemplate::Addressing{.source = bed_.ports[bed_.sending_port(direction)]->mac(),
                                                            .destination = dut_mac(bed_, spec_, direction, ipv6, vlan),
                                                            .trial = mark_of(bed_, spec_),
                                                            .stream = 0,
                                                            .seed = 0,
                                                            .flow_seed = 0});
    }
    return PtpMessage(std::move(of_kinds), spec_.tags_from_end());
}

std::unique_ptr<LineFiller> TrialSenders::make_line_filler(Direction direction, AdditionalSender* additional) const {
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
                                                        .burst = spec_.burst,
                                                        .additional = additional});
}

std::unique_ptr<AdditionalSender> TrialSenders::make_additional(Direction direction, const Share& share,
                                                                std::uint64_t clock_hz) const {
    const std::size_t side = bed_.sending_port(direction);
    const Mac source = bed_.ports[side]->mac();
    std::vector<AdditionalSender::Kind> kinds;
    for (const AdditionalFrames& one : spec_.streams[index_of(direction)]->additional) {
        auto& kind = kinds.emplace_back(
            AdditionalSender::Kind{.frames = one.frames,
                                   .intended = one.among(spec_.intended(direction), spec_.sends_ns(direction)),
                                   .after_frames = one.after_frames,
                                   .every_ns = one.every_ns});
        for (FrameBytes& frame : kind.frames) {
            if (one.destination != NextHop::given) {
                const std::uint16_t vlan = vlan_of(frame.data(), frame.size());
                const Mac destination = dut_mac(bed_, spec_, direction, one.destination == NextHop::ipv6, vlan);
                std::ranges::copy(destination, frame.begin());
            }
            std::ranges::copy(source, frame.begin() + source.size());
        }
    }
    return std::make_unique<AdditionalSender>(bed_.control_pool, std::move(kinds), share, clock_hz);
}

}  // namespace dutperf
