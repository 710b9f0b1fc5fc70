// SPDX-License-Identifier: Apache-2.0
#include "server/events.hpp"

#include <algorithm>

#include "trial/role_cores.hpp"

namespace dutperf {

using nlohmann::json;

namespace {

constexpr int kProtocol = 1;

template <class Number>
double us(Number ticks, std::uint64_t clock_hz) {
    return static_cast<double>(ticks) / static_cast<double>(clock_hz) * 1e6;
}

json buckets_us(const Histogram& histogram, std::uint64_t clock_hz) {
    json out = json::array();
    for (const auto& bucket : histogram.buckets()) out.push_back({us(bucket.largest, clock_hz), bucket.count});
    return out;
}

std::string hexadecimal(const std::vector<std::uint8_t>& bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : bytes) text.append({kDigits[byte >> 4U], kDigits[byte & 0xFU]});
    return text;
}

void add_media(const DirectionResult& result, json& out) {
    if (result.media)
        out["media"] = {{"line_rate_fps", result.media->line_rate_fps},
                        {"tolerance_us", static_cast<double>(result.media->tolerance_ns) / 1e3}};
    if (result.transmit_wait) {
        out["transmit_wait"] = {{"frames", result.transmit_wait->frames}, {"full", result.transmit_wait->full}};
        if (result.transmit_wait->us) out["transmit_wait"]["us"] = *result.transmit_wait->us;
    }
    if (result.held && (result.held->times != 0 || result.held->waiting != 0))
        out["queue_discipline"] = {{"times", result.held->times}, {"waiting", result.held->waiting}};
    if (result.receive_ring_us) out["receive_ring_us"] = *result.receive_ring_us;
}

json quantiles_of(const Histogram& delays, const TesterShare& share, std::uint64_t clock_hz) {
    json out = quantiles_us(delays, clock_hz);
    out["min"] = us(delays.min(), clock_hz);
    out["frames"] = delays.total();
    out["by_tester"] = {{"p50", us(share.p50, clock_hz)},
                        {"p99", us(share.p99, clock_hz)},
                        {"p999", us(share.p999, clock_hz)},
                        {"max", us(share.max, clock_hz)}};
    return out;
}

json delays_json(const Histogram& delays, const TesterShare& share, std::uint64_t clock_hz) {
    json out = quantiles_of(delays, share, clock_hz);
    out["buckets"] = buckets_us(delays, clock_hz);
    return out;
}

// Over the delays of all paths with names together, without other streams; null without any.
json delays_in_sum(const TrialResult& result, const std::vector<Path>& paths, std::uint64_t clock_hz) {
    std::optional<Histogram> all;
    TesterTime sending, receiving;
    for (std::size_t path = 0; path < paths.size(); ++path) {
        const auto& counted = result.directions[path];
        if (paths[path].group != Path::kNamed || !counted || !counted->delay || counted->delay->total() == 0) continue;
        if (!all) all.emplace();
        all->add(*counted->delay);
        sending.add(counted->sending_time);
        receiving.add(counted->receiving_time);
    }
    return all ? delays_json(*all, TesterTimes(sending, receiving).share_of(*all), clock_hz) : json(nullptr);
}

json group_delay_us(const GroupDelay& delay, std::uint64_t clock_hz) {
    if (delay.count == 0) return nullptr;
    return {us(delay.min, clock_hz), us(delay.mean(), clock_hz), us(delay.max, clock_hz)};
}

json kinds_json(const std::vector<KindResult>& kinds, std::uint64_t clock_hz) {
    json out = json::array();
    for (const KindResult& kind : kinds) {
        json one{{"sent", kind.sent}, {"received", kind.received}};
        const bool stamped = kind.delay.count != 0;
        if (stamped) one["delay_us"] = group_delay_us(kind.delay, clock_hz);
        if (!kind.flows_sent.empty()) {
            one["flows"] = {{"sent", kind.flows_sent}, {"received", kind.flows_received}};
            for (const GroupDelay& delay : kind.flows_delay) {
                if (stamped) one["flows"]["delay_us"].push_back(group_delay_us(delay, clock_hz));
            }
        }
        out.push_back(std::move(one));
    }
    return out;
}

json additional_json(const std::vector<AdditionalResult>& kinds) {
    json out = json::array();
    for (const AdditionalResult& kind : kinds) {
        json one{
            {"intended", kind.intended}, {"sent", kind.sent}, {"received", kind.received}, {"replies", kind.replies}};
        if (!kind.last_reply.empty()) one["last_reply"] = hexadecimal(kind.last_reply);
        out.push_back(std::move(one));
    }
    return out;
}

json icmp_errors_json(const IcmpErrors& errors) {
    json out = json::array();
    for (const auto& [error, frames] : errors.seen) {
        json one{{"protocol", error.ipv6 ? "icmpv6" : "icmp"},
                 {"type", error.type},
                 {"code", error.code},
                 {"frames", frames}};
        if (error.mtu != 0) one["mtu"] = error.mtu;
        if (error.holder) one["holder"] = to_string(*error.holder);
        out.push_back(std::move(one));
    }
    return out;
}

std::string digits_of(const VlanTags& tags) {
    std::vector<std::uint8_t> bytes(tags.size() * ethernet::kVlanTagSize);
    for (std::size_t i = 0; i < tags.size(); ++i) {
        store_be16(&bytes[i * ethernet::kVlanTagSize], tags[i].type);
        store_be16(&bytes[i * ethernet::kVlanTagSize + 2], tags[i].vlan);
    }
    return hexadecimal(bytes);
}

void add_vlan_tags(const DirectionResult& result, json& out) {
    if (result.tags_are_hidden) out["vlan_tags"] = {{"hidden", true}};
    if (result.other_tags.frames == 0) return;
    json seen = json::array();
    for (const auto& [tags, frames] : result.other_tags.seen)
        seen.push_back({{"tags", digits_of(tags)}, {"frames", frames}});
    out["vlan_tags"] = {{"other", result.other_tags.frames}, {"seen", std::move(seen)}};
}

void add_corrupted_by(const DirectionResult& result, json& out) {
    static constexpr std::array kNamed{std::pair{Corruption::length, "length"},
                                       std::pair{Corruption::no_sum, "no_udp_checksum"}};
    for (const auto& [how, name] : kNamed) {
        if (const std::uint64_t frames = result.corrupted_by[static_cast<std::size_t>(how)]; frames != 0)
            out["corrupted_by"][name] = frames;
    }
}

void add_destinations(const DirectionResult& result, json& out) {
    if (result.other_destinations.frames == 0) return;
    json seen = json::array();
    for (const auto& [address, frames] : result.other_destinations.seen)
        seen.push_back({{"address", to_string(address)}, {"frames", frames}});
    out["destinations"] = {{"other", result.other_destinations.frames}, {"seen", std::move(seen)}};
}

json matched_json(const MatchedByLength& matched) {
    json out{{"sent", matched.sent},
             {"in_order", matched.in_order},
             {"reordered", matched.reordered},
             {"extra", matched.extra}};
    if (matched.not_noted != 0) out["not_noted"] = matched.not_noted;
    if (matched.fitting_change != 0) out["fitting_change"] = matched.fitting_change;
    return out;
}

json line_json(const LineResult& line, std::uint64_t clock_hz) {
    return {{"mbps", line.mbps},
            {"fillers", line.fillers},
            {"shortest_filler", kMinEthernetSize},
            {"forwarded", line.forwarded},
            {"returned", line.back},
            {"idle", {{"times", line.times_idle}, {"longest_us", us(line.longest_idle, clock_hz)}}},
            {"early_us", us(line.early, clock_hz)},
            {"error_us", quantiles_us(line.errors, line_hz(line.mbps))}};
}

// Null for a part without delays.
void add_delay_parts(const DirectionResult& result, std::uint64_t clock_hz, json& out) {
    for (std::size_t i = 0; i < result.delay_parts.size(); ++i) {
        const Histogram& part = result.delay_parts[i];
        const TesterShare& share = result.part_shares[i];
        const bool any = part.total() != 0;
        out["delay_parts_us"].push_back(
            any ? json{us(part.quantile(0.5), clock_hz), us(part.quantile(0.99), clock_hz), us(part.max(), clock_hz)}
                : json(nullptr));
        out["delay_parts_by_tester_us"].push_back(
            any ? json{us(share.p50, clock_hz), us(share.p99, clock_hz), us(share.max, clock_hz)} : json(nullptr));
    }
}

// Null for a stream without delays.
json stream_delays_json(const DirectionResult& result, std::uint64_t clock_hz) {
    json out = json::array();
    for (std::size_t i = 0; i < result.stream_delays.size(); ++i) {
        const Histogram& stream = result.stream_delays[i];
        out.push_back(stream.total() != 0 ? quantiles_of(stream, result.stream_shares[i], clock_hz) : json(nullptr));
    }
    return out;
}

void add_file(const char* name, const std::optional<RecordsWritten>& file, json& out) {
    if (!file) return;
    out[name] = {{"written", file->written}, {"unwritten", file->unwritten}};
    if (!file->error.empty()) out[name]["error"] = file->error;
}

void add_delay_changes(const DirectionResult& result, std::uint64_t clock_hz, json& out) {
    if (!result.delay_change || result.delay_change->total() == 0) return;
    const SignedHistogram& change = *result.delay_change;
    const TesterChange& share = result.change_share;
    out["ipdv_us"] = {
        {"min", us(change.min(), clock_hz)},
        {"p50", us(change.quantile(0.5), clock_hz)},
        {"max", us(change.max(), clock_hz)},
        {"pairs", change.total()},
        {"by_tester",
         {{"min", us(share.min, clock_hz)}, {"p50", us(share.p50, clock_hz)}, {"max", us(share.max, clock_hz)}}}};
}

json answers_json(const WrongCounts& wrong) {
    json out{{"wrong", json::object()}};
    for (std::size_t kind = 0; kind < wrong.size(); ++kind) {
        if (wrong[kind] != 0) out["wrong"][dns::kWrongNames[kind]] = wrong[kind];
    }
    return out;
}

json server_json(const ServerResult& server, std::uint64_t clock_hz) {
    const dns::QueryCounts& queries = server.queries;
    const auto ns = [&](std::uint64_t ticks) { return 1e3 * us(ticks, clock_hz); };
    json out{{"queries", {{"a", queries.a}, {"aaaa", queries.aaaa}, {"other", queries.other}}},
             {"tcp", queries.tcp},
             {"stale", queries.stale},
             {"unknown", queries.unknown},
             {"refused", queries.refused},
             {"malformed", queries.malformed},
             {"answered", server.answered},
             {"unsent", server.unsent},
             {"tester_drops", server.tester_drops.empty() ? json::object() : json(server.tester_drops)}};
    if (server.delay.total() != 0)
        out["delay_ns"] = {{"median", ns(server.delay.quantile(0.5))},
                           {"p99", ns(server.delay.quantile(0.99))},
                           {"max", ns(server.delay.max())}};
    return out;
}

// By values, in digits.
json tracked_json(const TrackedBits& tracked) {
    json values = json::object();
    for (const auto& [value, frames] : tracked.counts()) values[std::to_string(value)] = frames;
    return {{"values", std::move(values)}, {"others", tracked.others()}};
}

json clock_json(const StampClock& clock) {
    static const std::map<Stamps, const char*> kNames{
        {Stamps::loop, "loop"}, {Stamps::kernel, "kernel"}, {Stamps::card, "card"}};
    json out{{"name", clock.name}, {"at", kNames.at(clock.at)}};
    if (clock.only_ptp) out["only_ptp"] = true;
    return out;
}

json clocks_json(const Clocks& clocks) {
    json out{{"sending", clock_json(clocks.sending)},
             {"receiving", clock_json(clocks.receiving)},
             {"error_us", clocks.error_ns / 1e3}};
    if (clocks.step_ns) out["step_us"] = *clocks.step_ns / 1e3;
    if (clocks.offset_ns) out["offset_us"] = *clocks.offset_ns / 1e3;
    if (clocks.drift_ppm) out["drift_ppm"] = *clocks.drift_ppm;
    if (clocks.unread_ns) out["unread_us"] = *clocks.unread_ns / 1e3;
    return out;
}

json direction_json(const DirectionResult& result, std::uint64_t clock_hz) {
    json out{{"intended", result.intended},
             {"sent", result.sent},
             {"received", result.received},
             {"foreground_sent", result.foreground_sent},
             {"background_sent", result.background_sent},
             {"foreground_received", result.foreground_received},
             {"background_received", result.background_received},
             {"duplicates", result.duplicates},
             {"out_of_order", result.out_of_order},
             {"stale", result.stale},
             {"corrupted", result.corrupted},
             {"send_time_s", result.send_time_s},
             {"lateness_us", quantiles_us(result.lateness, clock_hz)},
             {"stall_us", {{"sender", result.sender_stall_us}, {"receiver", result.receiver_stall_us}}},
             {"not_accepted", result.not_accepted},
             {"tester_drops", result.tester_drops.empty() ? json::object() : json(result.tester_drops)},
             {"dut_input_drops", result.dut_input_drops},
             {"other_received", result.other_received.empty() ? json::object() : json(result.other_received)}};
    if (result.dut_input_mtu) out["dut_input_mtu"] = *result.dut_input_mtu;
    if (const std::uint64_t frames = result.late_bursts.frames(); frames != 0) {
        out["late_bursts"] = {
            {"frames", frames}, {"longest", result.late_bursts.longest()}, {"bins", result.late_bursts.bins()}};
    }
    if (const std::uint64_t frames = result.late_bursts.late_frames(); frames != 0)
        out["late_frames"] = {{"frames", frames}, {"bins", result.late_bursts.late_bins()}};
    if (!result.switched_on.empty()) out["switched_on"] = result.switched_on;
    if (result.unfinished_checksums != 0) out["unfinished_checksums"] = result.unfinished_checksums;
    if (result.zero_checksums != 0) out["zero_checksums"] = result.zero_checksums;
    if (result.not_decapsulated != 0) out["not_decapsulated"] = result.not_decapsulated;
    if (result.not_encapsulated != 0) out["not_encapsulated"] = result.not_encapsulated;
    add_corrupted_by(result, out);
    add_vlan_tags(result, out);
    add_destinations(result, out);
    if (result.transmitted) {
        const TransmitCount& count = *result.transmitted;
        out["transmitted"] = {
            {"handed_over", count.handed_over}, {"counted", count.counted}, {"by", name_of(count.by)}};
    }
    add_media(result, out);
    if (const auto& backlog = result.receive_backlog) {
        out["receive_backlog"] = {{"frames", backlog->frames}, {"counted", backlog->counted}};
        if (backlog->ring) out["receive_backlog"]["ring"] = *backlog->ring;
    }
    if (result.tracked) out["tracked"] = tracked_json(*result.tracked);
    if (!result.received_at.empty()) out["received_at"] = result.received_at;
    if (!result.misdelivered.empty()) out["misdelivered"] = result.misdelivered;
    if (result.icmp_errors.frames != 0) out["icmp_errors"] = icmp_errors_json(result.icmp_errors);
    if (result.losses) {
        const Losses& losses = *result.losses;
        out["losses"] = {{"first_s", losses.first_s},
                         {"last_s", losses.last_s},
                         {"longest_run", losses.longest_run},
                         {"bins", losses.bins}};
    }
    if (result.arrivals) {
        const Arrivals& arrivals = *result.arrivals;
        out["arrivals"] = {{"first_s", arrivals.first_s},
                           {"last_s", arrivals.last_s},
                           {"longest_gap_from_s", arrivals.longest_gap_from_s},
                           {"longest_gap_to_s", arrivals.longest_gap_to_s}};
        if (arrivals.in_long_gaps_s) out["arrivals"]["in_long_gaps_s"] = *arrivals.in_long_gaps_s;
    }
    if (result.delay) {
        if (result.delay->total() != 0) out["delay_us"] = delays_json(*result.delay, result.delay_share, clock_hz);
        out["stamped_sent"] = result.stamped_sent;
        out["stamped_received"] = result.stamped_received;
        out["late"] = result.late;
        if (result.early != 0) out["early"] = result.early;
    }
    add_delay_parts(result, clock_hz, out);
    if (!result.stream_delays.empty()) out["stream_delay_us"] = stream_delays_json(result, clock_hz);
    if (!result.kinds.empty()) out["kinds"] = kinds_json(result.kinds, clock_hz);
    if (!result.additional.empty()) out["additional"] = additional_json(result.additional);
    if (result.matched) out["matched"] = matched_json(*result.matched);
    if (result.wrong_answers) out["answers"] = answers_json(*result.wrong_answers);
    if (result.line) out["line"] = line_json(*result.line, clock_hz);
    if (result.nic_arrivals) {
        const NicArrivals& arrivals = *result.nic_arrivals;
        out["receive_timestamps"] = {{"by_nic", arrivals.by_nic},
                                     {"by_poll", arrivals.by_poll},
                                     {"impossible", arrivals.impossible},
                                     {"uncertainty_us", us(arrivals.uncertainty, clock_hz)}};
    }
    if (const auto& stamps = result.stamps)
        out["stamps"] = {{"both", stamps->both},
                         {"no_transmit", stamps->no_transmit},
                         {"no_receive", stamps->no_receive},
                         {"impossible", stamps->impossible}};
    if (result.clocks) out["clocks"] = clocks_json(*result.clocks);
    if (result.ptp) out["ptp"] = true;
    if (result.rate_limit_mbps) out["rate_limit_mbps"] = *result.rate_limit_mbps;
    if (result.nic_departures) {
        const NicDepartures& departures = *result.nic_departures;
        out["send_at"] = {{"timed", departures.timed},
                          {"at_once", departures.at_once},
                          {"impossible", departures.impossible},
                          {"uncertainty_us", us(departures.uncertainty, clock_hz)}};
    }
    add_file("delays_file", result.delays_file, out);
    add_file("queries_file", result.queries_file, out);
    add_delay_changes(result, clock_hz, out);
    return out;
}

json counts_json(const CaptureCounts& counts) {
    json out = json::object();
    for (std::size_t kind = 0; kind < kCaptureKinds; ++kind) out[kCaptureNames[kind]] = counts[kind];
    return out;
}

json capture_json(const CaptureWritten& capture) {
    json out{{"written", counts_json(capture.written)}, {"left_out", counts_json(capture.left_out)}};
    if (!capture.error.empty()) out["error"] = capture.error;
    return out;
}

json neighbours_json(const NeighbourEvidence& evidence) {
    json unanswered = json::array(), moved = json::array(), conflicts = json::array();
    for (const auto& one : evidence.unanswered) {
        unanswered.push_back(
            {{"target", to_string(one.target)}, {"asker", to_string(one.asker)}, {"requests", one.requests}});
    }
    for (const auto& one : evidence.moved) {
        moved.push_back({{"gateway", to_string(one.gateway)}, {"mac", to_string(one.mac)}, {"messages", one.messages}});
        if (one.given) moved.back()["given"] = to_string(*one.given);
    }
    for (const auto& one : evidence.conflicts) {
        conflicts.push_back({{"address", to_string(one.address)},
                             {"of_gateway", one.is_gateway},
                             {"holder", to_string(one.holder)},
                             {"mac", to_string(one.mac)},
                             {"messages", one.messages}});
        if (one.by_dut) conflicts.back()["by_dut"] = true;
        if (one.of_range) conflicts.back()["of_range"] = true;
    }
    return {{"requests", evidence.requests}, {"unanswered", unanswered}, {"moved", moved}, {"conflicts", conflicts}};
}

json names_of(const Offloads& offloads) {
    json names = json::array();
    for (const Offload offload : offloads) names.push_back(name_of(offload));
    return names;
}

// The full name of a port that was named by its interface alone.
std::string opened_as(const Port& port, const SideRequest& side) {
    if (side.port.spec.kind != PortSpec::Kind::kernel) return side.port_text;
    return (port.spec().kind == PortSpec::Kind::af_xdp ? "af_xdp:" : "af_packet:") + port.spec().argument;
}

void add_dut_macs(const NeighbourResponder& of, const Mac& direct, json& to) {
    if (of.host().ipv4) to["dut_mac4"] = to_string(of.dut_mac(false, direct));
    if (of.host().ipv6) to["dut_mac6"] = to_string(of.dut_mac(true, direct));
}

json port_json(const Port& port, const SideRequest& side, const PortHosts& hosts, const Mac& direct) {
    const LinkStatus link = port.link();
    json out{{"port", opened_as(port, side)},
             {"driver", port.driver()},
             {"mac", to_string(port.mac())},
             {"numa_node", port.numa_node()},
             {"link_up", link.up},
             {"link_mbps", link.mbps},
             {"transmit_ring", port.transmit_ring()},
             {"receive_ring", port.receive_ring()}};
    out["offloads_available"] = names_of(port.available_offloads());
    if (!port.interface_driver().empty()) out["interface_driver"] = port.interface_driver();
    out["flow_control"] = port.flow_control() ? json(name_of(*port.flow_control())) : json(nullptr);
    add_dut_macs(hosts.first(), direct, out);
    for (std::size_t host = 1; host < hosts.size(); ++host)
        add_dut_macs(hosts[host], direct, out["hosts"].emplace_back(json{{"mac", to_string(hosts[host].host().mac)}}));
    return out;
}

// The core of each role. Names of queues after the first end with the queue's number.
json roles_json(const TestBed& bed) {
    json out = json::object();
    const bool of_directions = are_left_and_right(bed.paths);
    const auto add = [&](const std::string& name, const char* role, const std::vector<unsigned>& cores) {
        for (std::size_t queue = 0; queue < cores.size(); ++queue) {
            std::string full = name;
            full.append("_").append(role);
            if (queue != 0) full.append("_").append(std::to_string(queue));
            out[full] = cores[queue];
        }
    };
    for (std::size_t port = 0; port < bed.ports.size(); ++port) {
        // of left and right, the roles have the names of the directions
        const std::string& name = bed.ports[port]->side();
        add(of_directions ? bed.paths[port].name : name, "send", bed.cores.send[port]);
        add(of_directions ? bed.paths[1 - port].name : name, "receive", bed.cores.receive[port]);
    }
    return out;
}

// A value of each port, by its name.
template <class Values>
json sides_json(const TestBed& bed, const Values& values) {
    json out = json::object();
    for (std::size_t port = 0; port < bed.ports.size(); ++port) out[bed.ports[port]->side()] = values(port);
    return out;
}

// A path's member of an event.
json& of_path(json& out, const Path& path) { return path.group.empty() ? out[path.name] : out[path.group][path.name]; }

void add_change(json& out, const Port& port, const std::string& change) {
    if (!change.empty()) out["port_changes"][port.side()] = change;
}

}  // namespace

json quantiles_us(const Histogram& histogram, std::uint64_t clock_hz) {
    const auto at = [&](double share) { return us(histogram.quantile(share), clock_hz); };
    return {{"p50", at(0.5)}, {"p99", at(0.99)}, {"p999", at(0.999)}, {"max", us(histogram.max(), clock_hz)}};
}

json hello_event() {
    return {{"event", "hello"},       {"protocol", kProtocol},       {"engine", DUTPERF_VERSION},
            {"dpdk", dpdk_version()}, {"instructions", DUTPERF_CPU}, {"cores", allowed_cores()}};
}

json opened_event(const Session& session) {
    const TestBed bed = session.bed();
    json out{{"event", "opened"},
             {"queues", bed.queues},
             {"offloads", names_of(bed.offloads)},
             {"roles", roles_json(bed)},
             {"memory",
              {{"mode", session.memory().huge_pages ? "huge_pages" : "no_huge_pages"},
               {"page_kb", session.memory().page_kb}}},
             {"tsc_hz", bed.clock_hz},
             {"tsc_skew_ns", nullptr},
             {"warnings", session.warnings()}};
    if (session.skew_ticks()) out["tsc_skew_ns"] = *session.skew_ticks() / static_cast<double>(bed.clock_hz) * 1e9;
    for (std::size_t side = 0; side < bed.ports.size(); ++side) {
        const std::string& name = bed.ports[side]->side();
        const auto path = std::ranges::find(bed.paths, side, &Path::from);
        const Port& direct = *bed.ports[path == bed.paths.end() ? side : path->to];
        (are_left_and_right(bed.paths) ? out[name] : out["ports"][name]) =
            port_json(*bed.ports[side], session.request().sides[side], *bed.hosts[side], direct.mac());
    }
    return out;
}

json loaded_event(const FrameList& list) {
    return {{"event", "loaded"}, {"frames", list.size()}, {"bytes", list.bytes()}, {"tagged", list.tagged()}};
}

json progress_event(RunningTrial& trial, std::uint64_t clock_hz) {
    json out{{"event", "progress"}, {"elapsed_s", trial.elapsed_s()}};
    const TestBed& bed = trial.bed();
    const std::vector<PortCounters> counters = trial.read_counters();
    for (const Direction direction : trial.spec().active()) {
        const SoFar so_far = trial.so_far(direction, counters);
        json& of = of_path(out, bed.path(direction));
        of = {{"sent", so_far.sent},
              {"received", so_far.received},
              {"max_lateness_us", us(so_far.max_lateness, clock_hz)},
              {"tester_drops", so_far.tester_drops},
              {"nic_clock_us", us(so_far.nic_clock_uncertainty, clock_hz)}};
        if (!so_far.received_at.empty()) of["received_at"] = so_far.received_at;
    }
    const std::vector<bool> down = trial.links_down(counters);
    out["link_down"] = sides_json(bed, [&](std::size_t port) { return bool{down[port]}; });
    for (std::size_t port = 0; port < bed.ports.size(); ++port)
        add_change(out, *bed.ports[port], counters[port].change);
    return out;
}

json result_event(const TrialResult& result, const TestBed& bed) {
    json out{{"event", "result"},
             {"trial", result.number},
             {"outcome", result.stopped ? "stopped" : "completed"},
             {"began_s", result.began_s}};
    if (!result.loop_stamps_because.empty()) out["loop_stamps_because"] = result.loop_stamps_because;
    const auto of_ports = [&](auto member) {
        return sides_json(bed, [&](std::size_t port) { return result.ports[port].*member; });
    };
    out["link_changes"] = of_ports(&PortResult::link_changes);
    out["link_up"] = of_ports(&PortResult::link_up);
    out["link_down"] = of_ports(&PortResult::link_down);
    out["dut_answered"] = of_ports(&PortResult::dut_answered);
    for (std::size_t port = 0; port < bed.ports.size(); ++port) {
        const NeighbourEvidence& evidence = result.ports[port].neighbours;
        if (!evidence.empty()) out["neighbours"][bed.ports[port]->side()] = neighbours_json(evidence);
        add_change(out, *bed.ports[port], result.ports[port].change);
    }
    for (std::size_t path = 0; path < bed.paths.size(); ++path) {
        const auto& counted = result.directions[path];
        if (!counted) continue;
        json& of = of_path(out, bed.paths[path]);
        of = direction_json(*counted, bed.clock_hz);
        if (bed.paths[path].group.empty()) continue;
        of["other_received"].erase(kOtherKindNames[static_cast<std::size_t>(OtherKind::wrong_direction)]);
    }
    json in_sum = delays_in_sum(result, bed.paths, bed.clock_hz);
    if (!in_sum.is_null()) out["in_sum"] = {{"delay_us", std::move(in_sum)}};
    if (result.capture) out["capture"] = capture_json(*result.capture);
    if (result.server) out["server"] = server_json(*result.server, bed.clock_hz);
    if (const auto& counts = result.connections)
        out["connections"] = {{"learned", counts->learned}, {"remapped", counts->remapped}, {"lost", counts->lost}};
    return out;
}

json stopped_event() { return {{"event", "stopped"}}; }

json error_event(const Error& error) {
    json out{{"event", "error"}, {"code", error.code()}, {"message", error.what()}, {"field", nullptr}};
    if (!error.field().empty()) out["field"] = error.field();
    if (error.max_frame_size()) out["max_frame_size"] = *error.max_frame_size();
    return out;
}

}  // namespace dutperf
