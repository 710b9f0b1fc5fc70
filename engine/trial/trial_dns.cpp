// SPDX-License-Identifier: Apache-2.0
#include "trial/trial_dns.hpp"

#include <algorithm>
#include <random>

#include "platform/error.hpp"
#include "trial/trial_paths.hpp"

namespace dutperf {

namespace {

constexpr std::uint64_t kNsPerS = 1'000'000'000;

// The queries that may be open at one time: those of the timeout and a second more, so that an answer that comes a
// little late is still known as one.
std::uint64_t open_at_once(const TrialSpec& spec, Direction direction) {
    const std::uint64_t all = spec.intended(direction);
    if (!spec.frame_timeout_ns) return all;
    const StreamSpec& stream = *spec.streams[index_of(direction)];
    const auto* const bursts = std::get_if<Bursts>(&stream.pattern);
    __extension__ using Wide = unsigned __int128;
    const auto while_open = static_cast<Wide>(stream.highest_rate_fps()) * (*spec.frame_timeout_ns + kNsPerS) / kNsPerS;
    return static_cast<std::uint64_t>(std::min<Wide>(all, while_open + (bursts != nullptr ? bursts->frames : 0)));
}

void require_one_queue(const TestBed& bed, const std::string& field) {
    if (bed.queues > 1) throw Error("bad_request", "needs ports with one queue", field);
}

void require_no_vlans(const NeighbourResponder& of, const std::string& field) {
    if (!of.host().vlans.empty()) throw Error("bad_request", "goes without VLAN tags: the port has vlans", field);
}

}  // namespace

TestBed with_answers(TestBed bed, const TrialSpec& spec) {
    for (const Direction direction : spec.active()) {
        Path& path = bed.paths[index_of(direction)];
        if (spec.streams[index_of(direction)]->questions) path.to = path.from;
    }
    return bed;
}

QuestionParts TrialDns::parts(Direction direction, const NicSending& nic) {
    const std::string field = bed_.field_of(direction) + ".questions";
    const std::size_t side = bed_.sending_port(direction);
    require_one_queue(bed_, field);
    require_no_vlans(bed_.hosts[side]->first(), field);
    const std::uint64_t entries = open_at_once(spec_, direction);
    if (entries > QueryLog::kMostEntries) {
        throw Error("no_memory",
                    "may have " + std::to_string(entries) + " open queries, more than the " +
                        std::to_string(QueryLog::kMostEntries) +
                        " whose send times can be kept: take a shorter frame timeout or trial, or a lower rate",
                    field);
    }
    questions_ = spec_.questions(direction, bed_.run);
    query_log_ = std::make_unique<QueryLog>(entries);
    if (!spec_.queries_file.empty()) parts_.query_times = make_query_times(direction);
    query_frame_ =
        std::make_unique<dns::QueryFrame>(questions_, bed_.ports[side]->mac(), dut_mac(bed_, spec_, direction, true));
    query_pool_ = std::make_unique<ImagePool>(
        bed_.pool_of(direction),
        FrameImage{.data = query_frame_->data(), .length = query_frame_->length(), .generation = next_generation()});
    return {.frame = query_frame_.get(),
            .pool = query_pool_.get(),
            .log = query_log_.get(),
            .times = parts_.query_times.get(),
            .nic = nic};
}

std::unique_ptr<QueryTimes> TrialDns::make_query_times(Direction direction) const {
    const std::string field = "params.queries_file";
    const std::uint64_t queries = spec_.intended(direction);
    if (queries > QueryTimes::kMost)
        throw Error("no_memory",
                    "the times of " + std::to_string(queries) + " queries would be kept, more than " +
                        std::to_string(QueryTimes::kMost) + ": take a shorter trial, or a lower rate",
                    field);
    return std::make_unique<QueryTimes>(spec_.queries_file, field, queries);
}

std::optional<AnswerWatch> TrialDns::answers_into(std::size_t port) const {
    for (const Direction path : paths_into(bed_, spec_, port)) {
        if (!spec_.streams[index_of(path)]->questions) continue;
        return AnswerWatch(questions_, *query_log_, parts_.query_times.get(), mark_of(bed_, spec_), index_of(path),
                           bed_.ports[port]->may_leave_checksums_unfinished());
    }
    return std::nullopt;
}

// Its answers are in buffers for background, of a path that begins at its port: only mixed streams have a use for them.
void TrialDns::make_server(std::size_t port) {
    require_one_queue(bed_, "params.server");
    require_no_vlans(bed_.hosts[port]->first(), "params.server");
    const Host& host = bed_.hosts[port]->first().host();
    dns::NameServerOptions options{.zone = spec_.server->zone,
                                   .ttl_s = spec_.server->ttl_s,
                                   .ipv4 = host.ipv4,
                                   .ipv6 = {},
                                   .run = bed_.run,
                                   .trials = {spec_.number},
                                   .takes_unfinished = bed_.ports[port]->may_leave_checksums_unfinished()};
    if (host.ipv6) options.ipv6.push_back(*host.ipv6);
    options.ipv6.push_back(link_local(bed_.ports[port]->mac()));
    if (questions_.cached) options.trials.push_back(questions_.cached->trial);
    const auto path = std::ranges::find(bed_.paths, port, &Path::from) - bed_.paths.begin();
    rte_mempool* const pool = bed_.frame_pools[2 * static_cast<std::size_t>(path) + 1];
    // a DUT may use a connection again in the next trial
    std::unique_ptr<dns::TcpConnections>& connections = *bed_.dns_connections;
    if (!connections) connections = std::make_unique<dns::TcpConnections>(std::random_device{}());
    parts_.answering = std::make_unique<Answering>(std::move(options), *connections, pool, next_generation());
    parts_.answer_sender =
        std::make_unique<AnswerSender>(bed_.ports[port]->queue(0), bed_.control_rings[port], parts_.answering->queue());
}

}  // namespace dutperf
