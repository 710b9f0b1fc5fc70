// SPDX-License-Identifier: Apache-2.0
#include "trial/collect.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string>

#include "trial/media.hpp"
#include "trial/merge.hpp"
#include "trial/trial_paths.hpp"

namespace dutperf {

namespace {

std::uint64_t foreground_among(std::uint64_t frames, const StreamSpec& stream) {
    return frames / stream.n * stream.m + std::min<std::uint64_t>(frames % stream.n, stream.m);
}

std::optional<Losses> losses_of(const MissingFrames& missing, const TrialSpec& spec, Direction direction) {
    if (missing.total() == 0) return std::nullopt;
    const auto due_s = [&](std::uint64_t number) {
        return static_cast<double>(spec.due_ns(direction, spec.frame_numbered(direction, number))) / 1e9;
    };
    return Losses{.first_s = due_s(missing.first()),
                  .last_s = due_s(missing.last()),
                  .longest_run = missing.longest_run(),
                  .bins = missing.bins()};
}

Arrivals arrivals_since(Ticks start, const MergedArrivals& times, std::uint64_t clock_hz) {
    const auto seconds = [&](Ticks at) {
        return static_cast<double>(static_cast<std::int64_t>(at - start)) / static_cast<double>(clock_hz);
    };
    return {.first_s = seconds(times.first),
            .last_s = seconds(times.last),
            .longest_gap_from_s = seconds(times.longest.from),
            .longest_gap_to_s = seconds(times.longest.to),
            .in_long_gaps_s = times.in_long_gaps ? std::optional(static_cast<double>(*times.in_long_gaps) /
                                                                 static_cast<double>(clock_hz))
                                                 : std::nullopt};
}

FrameKinds kinds_of(const TrialSpec& spec, Direction direction) {
    const StreamSpec& stream = *spec.streams[index_of(direction)];
    return {.is_background = [&stream](std::uint64_t k) { return !stream.is_foreground(k); },
            .is_stamped = [none = spec.stamping == Stamping::none, choice = StampChoice::of(spec, direction)](
                              std::uint64_t k) { return !none && choice.chooses(k); }};
}

// Without frames that arrived after the frame timeout.
std::uint64_t never_came(const DirectionResult& of) { return of.sent - std::min(of.sent, of.received + of.late); }

void add(std::map<std::string, std::uint64_t>& counts, const char* name, std::uint64_t count) {
    if (count != 0) counts[name] += count;
}

void add_receive_drops(std::map<std::string, std::uint64_t>& drops, const PortCounters& before,
                       const PortCounters& after) {
    add(drops, "nic_missed", after.nic_missed - before.nic_missed);
    add(drops, "no_buffer", after.no_buffer - before.no_buffer);
    add(drops, "receive_errors", after.receive_errors - before.receive_errors);
    add(drops, "kernel_socket", after.kernel_socket - before.kernel_socket);
    add(drops, "kernel_backlog", after.kernel_backlog - before.kernel_backlog);
}

// Frames that the name server's sender handed over to a port.
std::uint64_t answers_from(const TrialSpec& spec, const TrialParts& parts, std::size_t port) {
    if (!spec.server || spec.server->port != port) return 0;
    return parts.answer_sender->delays().total() + parts.answer_sender->counts().control_sent;
}

// Whether the other end may stop the port for any time.
bool obeys_pauses(const Port& port) {
    const auto mode = port.flow_control();
    return mode == FlowControl::receive || mode == FlowControl::full;
}

class Collection {
public:
    Collection(const TestBed& bed, const TrialSpec& spec, const TrialParts& parts, const FrameGroups::Alive& alive)
        : bed_(bed), spec_(spec), parts_(parts), alive_(alive) {}

    [[nodiscard]] PerDirection<std::optional<DirectionResult>> all() const;

private:
    [[nodiscard]] DirectionResult of(Direction direction) const;
    void collect_sent(Direction direction, DirectionResult& into) const;
    void collect_received(Direction direction, DirectionResult& into) const;
    void collect_answers(Direction direction, DirectionResult& into) const;
    void collect_kinds(Direction direction, const std::vector<RxStatistics*>& statistics, DirectionResult& into) const;
    void collect_tester_time(Direction direction, DirectionResult& into) const;
    void count_lost_delays(Direction direction, std::vector<Histogram>& delays) const;
    void collect_additional(Direction direction, DirectionResult& into) const;
    void collect_departures(Direction direction, DirectionResult& into) const;
    void collect_stamps(Direction direction, DirectionResult& into) const;
    void collect_clocks(Direction direction, DirectionResult& into) const;
    [[nodiscard]] const FollowedClock& worst_clock(const std::vector<std::size_t>& ports) const;
    void collect_stalls(Direction direction, DirectionResult& into) const;
    void collect_media(Direction direction, DirectionResult& into) const;
    void collect_receive_ring(std::size_t port, DirectionResult& into) const;
    void collect_line(Direction direction, DirectionResult& into) const;
    [[nodiscard]] std::vector<const Receiver::Recognised*> recognised(std::size_t port, const PortMark& mark) const;
    void collect_port_counters(Direction direction, DirectionResult& into) const;
    void collect_transmitted(std::size_t port, PerDirection<std::optional<DirectionResult>>& results) const;
    void collect_other(Direction direction, ArrivalCounts counts, DirectionResult& into) const;
    void collect_received_at(Direction direction, DirectionResult& into) const;
    void collect_misdelivered(Direction direction, DirectionResult& into) const;
    void collect_icmp_errors(Direction direction, DirectionResult& into) const;
    [[nodiscard]] std::vector<Receiver*> receivers(Direction direction) const {
        std::vector<Receiver*> all;
        for (const std::size_t port : bed_.receiving_ports(direction)) {
            for (const auto& one : parts_.receivers[port]) all.push_back(one.get());
        }
        return all;
    }
    void collect_backlog(Direction direction, DirectionResult& into) const;
    [[nodiscard]] std::uint64_t given_up(Direction direction) const;
    [[nodiscard]] SentFrames sent_frames(Direction direction) const;
    [[nodiscard]] SentFrames numbered_frames(Direction direction) const;
    void match_lengths_of(Direction direction, DirectionResult& into) const;

    const TestBed& bed_;
    const TrialSpec& spec_;
    const TrialParts& parts_;
    const FrameGroups::Alive& alive_;
};

PerDirection<std::optional<DirectionResult>> Collection::all() const {
    PerDirection<std::optional<DirectionResult>> results(bed_.paths.size());
    for (const Direction direction : spec_.active()) results[index_of(direction)] = of(direction);
    for (std::size_t port = 0; port < bed_.ports.size(); ++port) collect_transmitted(port, results);
    return results;
}

DirectionResult Collection::of(Direction direction) const {
    DirectionResult result;
    result.intended = spec_.intended(direction);
    collect_sent(direction, result);
    collect_received(direction, result);
    if (result.delay && spec_.lost_delay_ns && result.stamped_sent > result.stamped_received) {
        result.delay->record(ticks_of(*spec_.lost_delay_ns, bed_.clock_hz),
                             result.stamped_sent - result.stamped_received);
    }
    if (!result.stream_delays.empty() && spec_.lost_delay_ns) count_lost_delays(direction, result.stream_delays);
    if (result.delay) collect_tester_time(direction, result);
    if (bed_.offloads.contains(Offload::rate_limit))
        result.rate_limit_mbps = parts_.rate_limits[bed_.sending_port(direction)];
    collect_additional(direction, result);
    collect_departures(direction, result);
    collect_stamps(direction, result);
    collect_clocks(direction, result);
    collect_stalls(direction, result);
    collect_media(direction, result);
    collect_line(direction, result);
    collect_port_counters(direction, result);
    return result;
}

SentFrames Collection::sent_frames(Direction direction) const {
    std::vector<std::uint64_t> of_senders;
    for (const auto& sender : parts_.senders[index_of(direction)]) of_senders.push_back(sender->counts().sent);
    return SentFrames(std::move(of_senders));
}

// Those that carry a number: of a list not every frame has a tag.
SentFrames Collection::numbered_frames(Direction direction) const {
    SentFrames frames = sent_frames(direction);
    if (!spec_.streams[index_of(direction)]->replayed) return frames;
    return SentFrames({spec_.numbered_among(direction, frames.count())});
}

void Collection::collect_sent(Direction direction, DirectionResult& into) const {
    const StreamSpec& stream = *spec_.streams[index_of(direction)];
    const SentFrames frames = sent_frames(direction);
    into.sent = frames.count();
    into.foreground_sent = foreground_among(frames.end(), stream);
    frames.for_each_unsent([&](std::uint64_t k) { into.foreground_sent -= stream.is_foreground(k) ? 1 : 0; });
    into.background_sent = into.sent - into.foreground_sent;
    Ticks last_call_end = 0;
    for (const auto& sender : parts_.senders[index_of(direction)]) {
        into.not_accepted += sender->counts().not_accepted;
        into.lateness.add(sender->counts().lateness);
        into.late_bursts.add(sender->counts().late_bursts);
        into.stamped_sent += sender->stamped();
        last_call_end = std::max(last_call_end, sender->counts().last_call_end);
    }
    if (last_call_end > parts_.start)
        into.send_time_s = static_cast<double>(last_call_end - parts_.start) / static_cast<double>(bed_.clock_hz);
}

void Collection::collect_received(Direction direction, DirectionResult& into) const {
    std::vector<RxStatistics*> statistics;
    for (const auto& receiver : receivers(direction)) statistics.push_back(&receiver->statistics(direction));
    const MergedCounts counts = merge(statistics, kinds_of(spec_, direction));
    into.received = counts.received;
    into.background_received = counts.background;
    into.foreground_received = into.received - into.background_received;
    into.duplicates = counts.duplicates;
    into.out_of_order = counts.out_of_order;
    into.stale = counts.stale;
    into.corrupted = counts.corrupted;
    into.corrupted_by = counts.corrupted_by;
    into.unfinished_checksums = counts.unfinished;
    into.zero_checksums = counts.zero_checksums;
    into.not_decapsulated = counts.not_decapsulated;
    into.not_encapsulated = counts.not_encapsulated;
    into.stamped_received = counts.stamped;
    into.late = counts.late;
    if (!bed_.offloads.contains(Offload::send_at)) into.early = counts.early;
    into.delay = merged_delay(statistics);
    into.delay_parts = merged_part_delays(statistics);
    into.stream_delays = merged_stream_delays(statistics);
    if (const auto& changes = statistics.front()->delay_changes()) into.delay_change = changes->changes();
    if (parts_.delay_files[index_of(direction)]) into.delays_file = parts_.delay_files[index_of(direction)]->finish();
    const MissingFrames& missing = missing_of(statistics.front()->window(), numbered_frames(direction));
    if (parts_.lengths[index_of(direction)])
        match_lengths_of(direction, into);
    else
        into.losses = losses_of(missing, spec_, direction);
    if (const auto arrivals = merged_arrivals(statistics))
        into.arrivals = arrivals_since(parts_.start, *arrivals, bed_.clock_hz);
    collect_answers(direction, into);
    if (auto& in_time = statistics.front()->in_time(); in_time && parts_.groups[index_of(direction)])
        missing_of(*in_time, sent_frames(direction));
    statistics.front()->count_long_losses(alive_);
    collect_kinds(direction, statistics, into);
    collect_other(direction, counts, into);
    collect_received_at(direction, into);
    if (!spec_.streams[index_of(direction)]->tracked.empty()) {
        into.tracked.emplace();
        for (const Receiver* one : receivers(direction)) into.tracked->add(*one->tracked(direction));
    }
    collect_misdelivered(direction, into);
    collect_icmp_errors(direction, into);
    for (const RxStatistics* one : statistics) {
        into.other_tags.add(one->other_tags());
        into.other_destinations.add(one->other_destinations());
    }
    const auto hides_tag = [&](std::size_t port) { return bed_.ports[port]->hides_outer_tag(); };
    into.tags_are_hidden = std::ranges::any_of(bed_.receiving_ports(direction), hides_tag) &&
                           spec_.streams[index_of(direction)]->may_arrive_tagged();
}

void Collection::collect_answers(Direction direction, DirectionResult& into) const {
    if (!spec_.streams[index_of(direction)]->questions) return;
    into.wrong_answers = receivers(direction).front()->answers()->wrong();
    if (parts_.query_times) into.queries_file = parts_.query_times->write(parts_.start, bed_.clock_hz);
}

// Frames of no path are counted with the first path into their port; if there is none, errors that came back to a
// sending port belong to the first path from there. `counts` has only those of the path itself.
void Collection::collect_other(Direction direction, ArrivalCounts counts, DirectionResult& into) const {
    const std::size_t from = bed_.sending_port(direction);
    const bool takes_back = paths_into(bed_, spec_, from).empty() && paths_from(bed_, spec_, from).front() == direction;
    for (std::size_t kind = 0; kind < kOtherKinds; ++kind) {
        for (const auto& back : parts_.receivers[from])
            counts.other[kind] += takes_back ? back->counts().other[kind] : 0;
        add(into.other_received, kOtherKindNames[kind], counts.other[kind]);
    }
}

void Collection::collect_received_at(Direction direction, DirectionResult& into) const {
    if (bed_.path(direction).also_to.empty()) return;
    for (const std::size_t port : bed_.receiving_ports(direction)) {
        std::uint64_t& frames = into.received_at[bed_.ports[port]->side()];
        for (const auto& one : parts_.receivers[port]) {
            const auto& counts = one->statistics(direction).counts();
            frames += counts.received + counts.duplicates;
        }
    }
}

void Collection::collect_misdelivered(Direction direction, DirectionResult& into) const {
    for (std::size_t port = 0; port < bed_.ports.size(); ++port) {
        std::uint64_t frames = 0;
        for (const auto& receiver : parts_.receivers[port]) frames += receiver->misdelivered(direction);
        add(into.misdelivered, bed_.ports[port]->side().c_str(), frames);
    }
}

// They go to the sender of the packet that they are about.
void Collection::collect_icmp_errors(Direction direction, DirectionResult& into) const {
    for (const auto& receiver : parts_.receivers[bed_.sending_port(direction)])
        into.icmp_errors.add(receiver->icmp_errors());
}

// Arrivals without a tag counted as received so far. Which frames of the same length were lost is not known, so there
// are no losses by time.
void Collection::match_lengths_of(Direction direction, DirectionResult& into) const {
    const ReplayedStream& stream = *spec_.streams[index_of(direction)]->replayed;
    LengthLog& log = *parts_.lengths[index_of(direction)];
    log.count_untagged_only([&](std::uint64_t frames) { return stream.untagged_among(frames); });
    const LengthCycle cycle(stream.list->untagged_lengths(stream.length_changes));
    const std::uint64_t sent = stream.untagged_among(into.sent);
    const LengthMatch match = match_lengths(cycle, sent, log.arrivals());
    const std::uint64_t received = match.in_order + match.reordered;
    into.matched = MatchedByLength{.sent = sent,
                                   .in_order = match.in_order,
                                   .reordered = match.reordered,
                                   .extra = match.extra,
                                   .not_noted = log.not_noted(),
                                   .fitting_change = fitting_change(cycle, sent, log.arrivals().lengths, received)};
    into.received -= log.count() - received;
    into.foreground_received -= log.count() - received;
    into.out_of_order += match.reordered;
}

// Counts by kind and flow: what was sent follows from the plan, what was lost from the numbers that are missing.
void Collection::collect_kinds(Direction direction, const std::vector<RxStatistics*>& statistics,
                               DirectionResult& into) const {
    const auto& groups = parts_.groups[index_of(direction)];
    if (!groups) return;
    const SentFrames frames = sent_frames(direction);
    std::vector<std::uint64_t> sent = groups->among(frames.end(), alive_);
    frames.for_each_unsent([&](std::uint64_t k) { --sent[groups->of(k)]; });
    const std::vector<std::uint64_t>& lost = statistics.front()->group_losses();
    for (std::size_t kind = 0; kind < groups->kinds(); ++kind) {
        KindResult& result = into.kinds.emplace_back();
        for (std::size_t group = groups->first(kind); group < groups->first(kind + 1); ++group) {
            GroupDelay delay;
            for (const RxStatistics* one : statistics) {
                if (!one->group_delays().empty()) delay.add(one->group_delays()[group]);
            }
            result.sent += sent[group];
            result.received += sent[group] - lost[group];
            result.delay.add(delay);
            if (!spec_.by_flow) continue;
            result.flows_sent.push_back(sent[group]);
            result.flows_received.push_back(sent[group] - lost[group]);
            result.flows_delay.push_back(delay);
        }
    }
}

// What the tester may have added to the figures of the delays. Of a stream, all frames that it held up may be.
void Collection::collect_tester_time(Direction direction, DirectionResult& into) const {
    std::vector<RxStatistics*> statistics;
    for (const auto& receiver : receivers(direction)) statistics.push_back(&receiver->statistics(direction));
    const std::vector<TesterTime> receiving = merged_tester_time(statistics);
    for (std::size_t part = 0; part < receiving.size(); ++part) {
        TesterTime sending;
        for (const auto& sender : parts_.senders[index_of(direction)]) sending.add(sender->counts().tester_time[part]);
        into.sending_time.add(sending);
        into.receiving_time.add(receiving[part]);
        if (!into.delay_parts.empty())
            into.part_shares.push_back(TesterTimes(sending, receiving[part]).share_of(into.delay_parts[part]));
    }
    const TesterTimes times(into.sending_time, into.receiving_time);
    into.delay_share = times.share_of(*into.delay);
    for (const Histogram& stream : into.stream_delays) into.stream_shares.push_back(times.share_of(stream));
    if (into.delay_change) into.change_share = times.share_of(*into.delay_change);
}

// A lost stamped frame counts with the delay that the trial gives it, in its stream.
void Collection::count_lost_delays(Direction direction, std::vector<Histogram>& delays) const {
    const FrameGroups& groups = *parts_.groups[index_of(direction)];
    const SentFrames frames = sent_frames(direction);
    std::vector<std::uint64_t> stamped(delays.size());
    const StampChoice choice = StampChoice::of(spec_, direction);
    if (spec_.stamping == Stamping::every) {
        const std::vector<std::uint64_t> sent = groups.among(frames.end(), alive_);
        for (std::size_t kind = 0; kind < groups.kinds(); ++kind) {
            for (std::size_t group = groups.first(kind); group < groups.first(kind + 1); ++group)
                stamped[groups.stream(kind)] += sent[group];
        }
    } else {
        choice.for_each(frames.end(), [&](std::uint64_t k) { ++stamped[groups.stream(groups.place(k).kind)]; });
    }
    frames.for_each_unsent([&](std::uint64_t k) {
        if (choice.chooses(k)) --stamped[groups.stream(groups.place(k).kind)];
    });
    const Ticks lost_delay = ticks_of(*spec_.lost_delay_ns, bed_.clock_hz);
    for (std::size_t stream = 0; stream < delays.size(); ++stream) {
        const std::uint64_t came = std::min(delays[stream].total(), stamped[stream]);
        if (stamped[stream] != came) delays[stream].record(lost_delay, stamped[stream] - came);
    }
}

// What each receiver of a port recognised by a mark.
std::vector<const Receiver::Recognised*> Collection::recognised(std::size_t port, const PortMark& mark) const {
    const std::vector<PortMark> marks = marks_at(bed_, spec_, port);
    const auto number = static_cast<std::size_t>(std::ranges::find(marks, mark) - marks.begin());
    std::vector<const Receiver::Recognised*> found;
    for (const auto& receiver : parts_.receivers[port]) found.push_back(&receiver->recognised(number));
    return found;
}

void Collection::collect_additional(Direction direction, DirectionResult& into) const {
    const auto& kinds = spec_.streams[index_of(direction)]->additional;
    const AdditionalSender* sender = parts_.senders[index_of(direction)].front()->additional();
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        AdditionalResult& result = into.additional.emplace_back();
        result.intended = kinds[kind].among(spec_.intended(direction), spec_.sends_ns(direction));
        result.sent = sender->sent(kind);
        for (const std::size_t port : bed_.receiving_ports(direction)) {
            for (const auto* forwarded : recognised(port, {PortMark::Of::forwarded, direction, kind}))
                result.received += forwarded->frames;
        }
        for (const auto* replies : recognised(bed_.sending_port(direction), {PortMark::Of::reply, direction, kind})) {
            result.replies += replies->frames;
            if (replies->frames != 0)
                result.last_reply.assign(replies->last.begin(),
                                         replies->last.begin() + static_cast<std::ptrdiff_t>(replies->length));
        }
    }
}

void Collection::collect_departures(Direction direction, DirectionResult& into) const {
    if (!bed_.offloads.contains(Offload::send_at)) return;
    NicDepartures& departures = into.nic_departures.emplace();
    for (const auto& sender : parts_.senders[index_of(direction)]) departures.add(sender->departures());
    for (const auto& receiver : receivers(direction))
        departures.impossible += receiver->statistics(direction).counts().early;
    departures.uncertainty = bed_.clocks[bed_.sending_port(direction)]->uncertainty();
}

void Collection::collect_stamps(Direction direction, DirectionResult& into) const {
    into.stamps = parts_.stamps[index_of(direction)];
    into.ptp = parts_.ptp();
    if (into.stamps) {
        const std::uint64_t arrived = into.stamps->both + into.stamps->no_transmit;
        into.stamps->no_receive = into.stamped_received - std::min(into.stamped_received, arrived);
    }
    if (!bed_.offloads.contains(Offload::receive_timestamps) || spec_.stamping == Stamping::none) return;
    const std::vector<std::size_t> receiving = bed_.receiving_ports(direction);
    NicArrivals& arrivals = into.nic_arrivals.emplace();
    for (const auto& receiver : receivers(direction)) arrivals.add(receiver->stamp_counts(direction));
    arrivals.uncertainty = worst_clock(receiving).uncertainty();
}

// Of the cards at these ports.
const FollowedClock& Collection::worst_clock(const std::vector<std::size_t>& ports) const {
    const auto uncertainty = [&](std::size_t port) { return bed_.clocks[port]->uncertainty(); };
    return *bed_.clocks[std::ranges::max(ports, {}, uncertainty)];
}

// Without stamps of the kernel or of cards these are the loops', or, with offloads, those of the DPDK cards.
void Collection::collect_clocks(Direction direction, DirectionResult& into) const {
    if (spec_.stamping == Stamping::none) return;
    into.clocks = parts_.clocks[index_of(direction)];
    if (into.clocks) return;
    const auto ns = [&](double ticks) { return ticks * 1e9 / static_cast<double>(bed_.clock_hz); };
    Clocks& clocks = into.clocks.emplace();
    clocks.error_ns = ns(bed_.skew_ticks);
    const auto by_card = [&](Offload offload, const std::vector<std::size_t>& ports, StampClock& clock) {
        if (!bed_.offloads.contains(offload)) return;
        const FollowedClock& worst = worst_clock(ports);
        clock = {.name = worst.name(), .at = Stamps::card};
        clocks.error_ns += ns(worst.uncertainty());
    };
    by_card(Offload::send_at, {bed_.sending_port(direction)}, clocks.sending);
    by_card(Offload::receive_timestamps, bed_.receiving_ports(direction), clocks.receiving);
}

// The longest stalls of all loops that serve the direction.
void Collection::collect_stalls(Direction direction, DirectionResult& into) const {
    const auto& send = bed_.cores.send[bed_.sending_port(direction)];
    std::vector<unsigned> receive;
    for (const std::size_t port : bed_.receiving_ports(direction))
        std::ranges::copy(bed_.cores.receive[port], std::back_inserter(receive));
    const double us = 1e6 / static_cast<double>(bed_.clock_hz);
    for (const LoopStall& stall : parts_.stalls) {
        if (std::ranges::find(send, stall.core) != send.end())
            into.sender_stall_us = std::max(into.sender_stall_us, static_cast<double>(stall.sending) * us);
        if (std::ranges::find(receive, stall.core) != receive.end())
            into.receiver_stall_us = std::max(into.receiver_stall_us, static_cast<double>(stall.whole) * us);
    }
}

void Collection::collect_media(Direction direction, DirectionResult& into) const {
    const StreamSpec& stream = *spec_.streams[index_of(direction)];
    const std::size_t from = bed_.sending_port(direction);
    const Port& out = *bed_.ports[from];
    const std::uint32_t mbps = parts_.media_mbps[from];
    into.media = media_limit(spec_, direction, mbps, share_of_others(bed_, spec_, direction, mbps));
    // with send_at stamps hold the send time, not the time of handing over; a line that is filled has its frames early
    const bool planned = bed_.offloads.contains(Offload::send_at) || spec_.fill;
    if (out.is_card() && !planned) {
        const std::uint64_t of_queue = out.transmit_ring() + spec_.burst;
        const std::uint32_t limit = obeys_pauses(out) ? 0 : parts_.rate_limits[from];  // of a queue by itself
        into.transmit_wait = limit != 0 ? transmit_wait(stream, of_queue, limit)
                                        : transmit_wait(stream, bed_.queues * of_queue, obeys_pauses(out) ? 0 : mbps);
        into.transmit_wait->full = into.not_accepted != 0;
    }
    for (const std::size_t to : bed_.receiving_ports(direction)) collect_receive_ring(to, into);
}

// Of the ring that is full first, and of one queue: it is unknown how evenly a card spreads the frames.
void Collection::collect_receive_ring(std::size_t port, DirectionResult& into) const {
    const Port& in = *bed_.ports[port];
    if (!in.is_card()) return;
    const double rate_fps = spec_.most_at_once(paths_into(bed_, spec_, port), [&](Direction path) {
        return static_cast<double>(spec_.streams[index_of(path)]->highest_rate_fps());
    });
    const double full_us = 1e6 * in.receive_ring() / rate_fps;
    into.receive_ring_us = std::min(into.receive_ring_us.value_or(full_us), full_us);
}

void Collection::collect_line(Direction direction, DirectionResult& into) const {
    const auto& senders = parts_.senders[index_of(direction)];
    if (!spec_.fill || senders.front()->line() == nullptr) return;
    const LineFiller& line = *senders.front()->line();
    const auto fillers_at = [&](std::size_t port) {
        std::uint64_t frames = 0;
        for (const auto* fillers : recognised(port, {PortMark::Of::filler, direction, 0})) frames += fillers->frames;
        return frames;
    };
    const std::size_t from = bed_.sending_port(direction);
    std::uint64_t forwarded = 0;
    for (std::size_t port = 0; port < bed_.ports.size(); ++port) forwarded += port == from ? 0 : fillers_at(port);
    into.line = LineResult{.mbps = parts_.media_mbps[from],
                           .fillers = line.fillers(),
                           .forwarded = forwarded,
                           .back = fillers_at(from),
                           .times_idle = line.watch().times_idle(),
                           .longest_idle = line.watch().longest_idle(),
                           .early = line.early(),
                           .errors = line.errors()};
}

// Frames that the tester itself lost: sent but never on the wire, or on the wire but never at the receiving loop.
void Collection::collect_port_counters(Direction direction, DirectionResult& into) const {
    const std::size_t out = bed_.sending_port(direction);
    const PortCounters &out0 = parts_.before[out], &out1 = parts_.after[out];
    into.dut_input_drops = out1.link_input_drops - out0.link_input_drops + given_up(direction);
    if (into.dut_input_drops != 0) into.dut_input_mtu = bed_.ports[out]->mtu_of_other_end();
    collect_backlog(direction, into);
    if (out0.discipline && out1.discipline) into.held = held_between(*out0.discipline, *out1.discipline);
    add(into.tester_drops, "interface_transmit", out1.interface_transmit_drops - out0.interface_transmit_drops);
    bool went_down = out1.taken_down != out0.taken_down;
    for (const std::size_t in : bed_.receiving_ports(direction)) {
        add_receive_drops(into.tester_drops, parts_.before[in], parts_.after[in]);
        went_down |= parts_.after[in].taken_down != parts_.before[in].taken_down;
    }
    for (const Receiver* receiver : receivers(direction))
        add(into.tester_drops, "neighbour_replies", receiver->replies_dropped());
    // any lost frame may have been lost at the port that was down
    if (went_down) add(into.tester_drops, "port_down", never_came(into));
}

// The queue that came nearest to being full; nothing if a queue may have filled further after the loop's last poll.
void Collection::collect_backlog(Direction direction, DirectionResult& into) const {
    const std::vector<Receiver*> receivers = this->receivers(direction);
    if (std::ranges::any_of(receivers, [](const auto& one) { return one->counts_overruns() && !one->saw_all(); }))
        return;
    for (const auto& receiver : receivers) {
        if (!receiver->watches_queue()) continue;
        if (!into.receive_backlog)
            into.receive_backlog =
                ReceiveBacklog{.frames = 0, .ring = receiver->room(), .counted = receiver->counts_overruns()};
        into.receive_backlog->frames = std::max(into.receive_backlog->frames, receiver->most_waiting());
    }
}

// Frames that did not fit into the DUT's input queue.
std::uint64_t Collection::given_up(Direction direction) const {
    std::uint64_t frames = 0;
    for (const auto& sender : parts_.senders[index_of(direction)]) frames += sender->counts().input_drops;
    return frames;
}

// A port sends the frames of all paths from it: each of them may have lost those that never left.
void Collection::collect_transmitted(std::size_t port, PerDirection<std::optional<DirectionResult>>& results) const {
    const std::vector<Direction> paths = paths_from(bed_, spec_, port);
    if (paths.empty()) return;
    TransmitEvidence evidence{
        .before = parts_.before[port], .after = parts_.after[port], .may_keep = may_keep_frames(bed_.offloads)};
    evidence.handed_over =
        parts_.answered_after[port] - parts_.answered_before[port] + answers_from(spec_, parts_, port);
    for (const Direction path : paths) {
        const DirectionResult& result = *results[index_of(path)];
        evidence.handed_over += result.sent - given_up(path);
        for (const auto& sender : parts_.senders[index_of(path)]) evidence.handed_over += sender->counts().control_sent;
        for (const AdditionalResult& additional : result.additional) evidence.handed_over += additional.sent;
        evidence.handed_over += result.line ? result.line->fillers : 0;
        evidence.came += result.received + result.late;
        evidence.lost += never_came(result);
        evidence.tx_was_full |= result.not_accepted != 0 || result.line;
    }
    const TransmitCount transmitted = count_transmitted(evidence, bed_.ports[port]->transmit_ledger());
    for (const Direction path : paths) {
        DirectionResult& result = *results[index_of(path)];
        result.transmitted = transmitted;
        add(result.tester_drops, "transmit_errors", transmitted.errors);
        add(result.tester_drops, "transmit_unaccounted", transmitted.unaccounted);
    }
}

}  // namespace

ServerResult collect_server(const TestBed& bed, const TrialSpec& spec, const TrialParts& parts) {
    const std::size_t port = spec.server->port;
    const std::uint64_t given_up = parts.answer_sender->give_up();
    ServerResult result{.queries = parts.answering->queries(),
                        .answered = parts.answering->answered() - std::min(parts.answering->answered(), given_up),
                        .unsent = parts.answering->unsent() + given_up,
                        .delay = parts.answer_sender->delays(),
                        .tester_drops = {}};
    const PortCounters &before = parts.before[port], &after = parts.after[port];
    add(result.tester_drops, "interface_transmit", after.interface_transmit_drops - before.interface_transmit_drops);
    add_receive_drops(result.tester_drops, before, after);
    add(result.tester_drops, "tcp_connections", parts.answering->evicted_connections());
    // of a port where paths begin, these may have lost them as well
    if (!paths_from(bed, spec, port).empty()) return result;
    TransmitEvidence evidence{.before = before, .after = after, .may_keep = may_keep_frames(bed.offloads)};
    evidence.handed_over = parts.answered_after[port] - parts.answered_before[port] + answers_from(spec, parts, port);
    evidence.lost = result.delay.total();  // any of them
    const TransmitCount transmitted = count_transmitted(evidence, bed.ports[port]->transmit_ledger());
    add(result.tester_drops, "transmit_errors", transmitted.errors);
    add(result.tester_drops, "transmit_unaccounted", transmitted.unaccounted);
    return result;
}

std::vector<PortMark> marks_at(const TestBed& bed, const TrialSpec& spec, std::size_t port) {
    std::vector<PortMark> marks;
    for (const bool reply : {false, true}) {
        for (const Direction path : reply ? paths_from(bed, spec, port) : paths_into(bed, spec, port)) {
            const std::size_t kinds = spec.streams[index_of(path)]->additional.size();
            for (std::size_t kind = 0; kind < kinds; ++kind)
                marks.push_back({reply ? PortMark::Of::reply : PortMark::Of::forwarded, path, kind});
        }
    }
    if (!spec.fill) return marks;
    // of all paths: a switch may flood the fillers, which nobody has asked for, to any port
    for (const Direction path : spec.active()) marks.push_back({PortMark::Of::filler, path, 0});
    return marks;
}

PerDirection<std::optional<DirectionResult>> collect(const TestBed& bed, const TrialSpec& spec, const TrialParts& parts,
                                                     const FrameGroups::Alive& alive) {
    return Collection(bed, spec, parts, alive).all();
}

}  // namespace dutperf
