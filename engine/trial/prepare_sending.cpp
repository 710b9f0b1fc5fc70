// SPDX-License-Identifier: Apache-2.0
// What a trial sends: its senders, and where their frames come from.
#include "trial/run_trial.hpp"

#include <algorithm>

#include "platform/error.hpp"
#include "trial/media.hpp"
#include "trial/stream_schedule.hpp"

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

}  // namespace

// Where a path's frames go: to the DUT, or without one to the port at the path's end.
Mac RunningTrial::dut_mac(Direction direction, bool ipv6, std::uint16_t vlan, std::size_t host) const {
    const Mac& direct = bed_.ports[far_port(direction)]->mac();
    return (*bed_.hosts[bed_.sending_port(direction)])[host].dut_mac(ipv6, direct, vlan);
}

DescribedParts RunningTrial::described_parts(Direction direction) {
    if (bed_.offloads.contains(Offload::checksums)) {
        throw Error("bad_request", "the offload checksums is for UDP directly over IP: described frames go without it",
                    bed_.field_of(direction) + ".frames");
    }
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
        const Mac destination = dut_mac(direction, frame.destination == NextHop::ipv6, vlan, frame.host);
        kinds.emplace_back(DescribedTemplate(frame, {.source = hosts[frame.host].host().mac,
                                                     .destination = destination,
                                                     .trial = trial_mark(),
                                                     .stream = stream_byte,
                                                     .seed = spec_.kind_seed(direction, kinds.size()),
                                                     .pair = path.pair}),
                           next_generation());
    }
    described_[index_of(direction)] =
        std::make_unique<DescribedFrames>(bed_.pool_of(direction), std::move(kinds), spec_.kind_order(direction));
    return {.frames = described_[index_of(direction)].get(),
            .stamps = StampChoice::of(spec_, direction),
            .nic = nic_sending(direction),
            .connections = connection_parts(direction)};
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
            .destination = {Mac{}, dut_mac(direction, false), dut_mac(direction, true)},
            .trial = trial_mark(),
            .path = path,
            .generation = next_generation(),
            .nic = nic_sending(direction)};
}

FramePool* RunningTrial::make_pool_of(Direction direction, const FrameSpec& frame, bool foreground,
                                      bool ports_of_stream) {
    const std::size_t side = bed_.sending_port(direction);
    const StreamSpec& stream = *spec_.streams[index_of(direction)];
    const PathMark path = mark_of_path(index_of(direction));
    const auto stream_byte = static_cast<std::uint8_t>(path.stream | (foreground ? 0 : kStreamBackground));
    const FrameIdentity identity{trial_mark(), stream_byte, ports_of_stream ? stream.source_port.min : std::uint16_t{0},
                                 ports_of_stream ? stream.destination_port.min : std::uint16_t{0}, path.pair};
    const Mac destination = dut_mac(direction, frame.is_ipv6());
    FrameTemplate made(frame, bed_.ports[side]->mac(), destination, identity,
                       stream.variations(frame.is_ipv6(), foreground));
    if (bed_.offloads.contains(Offload::checksums)) made.leave_checksums_to_hardware();
    frame_pools_.push_back(std::make_unique<FramePool>(bed_.pool_of(direction, foreground), made, next_generation()));
    return frame_pools_.back().get();
}

FrameSourceParts RunningTrial::frame_parts(Direction direction) {
    const StreamSpec& stream = *spec_.streams[index_of(direction)];
    const auto seed = [&](Generator generator) { return generator_seed(spec_.seed, direction, generator); };
    const auto fields = [&]() -> FrameFields {
        if (const ConnectionSpec* connections = spec_.connections_of(direction))
            return FrameFields({connections->space(stream), connection_choice(direction), bed_.queues});
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

// With limits, a sender catches up after a stall a little above the rate, not in a burst.
void RunningTrial::limit_rates() {
    if (!bed_.offloads.contains(Offload::rate_limit)) return;
    for (std::size_t port = 0; port < bed_.ports.size(); ++port) {
        const auto ceiling_mbps = [&](Direction path) { return spec_.rate_ceiling_mbps(path, bed_.queues); };
        const std::vector<Direction> paths = paths_from(bed_, spec_, port);
        const bool limited = std::ranges::none_of(paths, [&](Direction path) { return ceiling_mbps(path) == 0; });
        parts_.rate_limits[port] = bed_.ports[port]->limit_rate(limited ? spec_.most_at_once(paths, ceiling_mbps) : 0);
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
    using AnyParts = std::variant<FrameSourceParts, DescribedParts, ReplayParts, QuestionParts, ResponderParts>;
    AnyParts parts = stream->described    ? AnyParts(described_parts(direction))
                     : stream->replayed   ? AnyParts(replay_parts(direction))
                     : stream->questions  ? AnyParts(question_parts(direction))
                     : replies(direction) ? AnyParts(responder_parts(direction))
                                          : AnyParts(frame_parts(direction));
    for (std::uint16_t queue = 0; queue < bed_.queues; ++queue) {
        const Share share{queue, bed_.queues};
        const std::uint64_t hz = spec_.fill ? line_hz(port.link().mbps) : bed_.clock_hz;
        const AnySchedule schedule = schedule_of(spec_, {direction, share}, hz);
        const bool adds = queue == 0 && !stream->additional.empty();
        const bool by_socket = !parts_.stamp_logs.empty();
        SenderParts sender{.queue = port.queue(queue),
                           .control = bed_.control_rings[side],
                           .delay_parts = spec_.delay_parts,
                           .into_dut_hz = port.sends_into_dut() ? bed_.clock_hz : 0,
                           .additional = adds ? make_additional(direction, share) : nullptr,
                           .line = spec_.fill ? make_line_filler(direction) : nullptr,
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
        sending_ += 1;
    }
}

std::optional<PtpMessage> RunningTrial::ptp_message(Direction direction) const {
    if (!parts_.ptp()) return std::nullopt;
    std::vector<DescribedTemplate> of_kinds;
    for (const DescribedFrame& message : spec_.streams[index_of(direction)]->ptp) {
        const std::uint16_t vlan = vlan_of(message.head.data(), message.head.size());
        const bool ipv6 = message.destination == NextHop::ipv6;
        of_kinds.emplace_back(message,
                              DescribedTemplate::Addressing{.source = bed_.ports[bed_.sending_port(direction)]->mac(),
                                                            .destination = dut_mac(direction, ipv6, vlan),
                                                            .trial = trial_mark(),
                                                            .stream = 0,
                                                            .seed = 0});
    }
    return PtpMessage(std::move(of_kinds), spec_.tags_from_end());
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
        if (!spec_.streams[index_of(direction)]->interval.is_whole())
            refuse("fill needs streams that send all the time: leave out begin_ns and sends_ns of " +
                   bed_.name_of(direction));
        const Port& port = *bed_.ports[bed_.sending_port(direction)];
        if (!port.is_card() || bed_.filler_pools[bed_.sending_port(direction)] == nullptr)
            refuse("fill needs a card: " + the_port(port.side()) +
                   " is a software device, which takes frames at any time, so there is no line to fill");
        if (port.link().mbps == 0)
            refuse("fill needs the rate of the media, and the card of " + the_port(port.side()) + " reports none");
        const auto mode = port.flow_control();
        if (mode == FlowControl::receive || mode == FlowControl::full)
            refuse("fill needs a line that only the sender controls, and flow control lets the other end of " +
                   the_port(port.side()) + "'s cable stop it: leave engine.flow_control off");
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
                                   .intended = one.among(spec_.intended(direction), spec_.sends_ns(direction)),
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

}  // namespace dutperf
