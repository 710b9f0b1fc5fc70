// SPDX-License-Identifier: Apache-2.0
#include "refdut/dut_server.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "platform/clock.hpp"
#include "platform/cores.hpp"
#include "refdut/dut_requests.hpp"
#include "server/events.hpp"

namespace dutperf {

using nlohmann::json;

namespace {

// Other threads of the machine run while the DUT naps. Beside one that never does, each of them stalls the tester's
// loop or the DUT's for a whole tick.
constexpr std::chrono::microseconds kNap{20};
constexpr std::uint64_t kPollNs = 1'000'000;  // between two polls for requests
constexpr std::array<const char*, 2> kSideNames{"left", "right"}, kDirectionNames{"forward", "reverse"};

json direction_json(const DutCounts& counts, const DutTimes& times, std::uint64_t clock_hz) {
    json lost = json::object();
    for (std::size_t i = 0; i < kLosses; ++i) lost[kLossNames[i]] = counts.pipeline.lost[i];
    return {{"received", counts.received},
            {"forwarded", counts.forwarded},
            {"translated", counts.translated},
            {"tunnelled", counts.tunnelled},
            {"held", counts.held},
            {"lost", lost},
            {"duplicated", counts.pipeline.duplicated},
            {"reordered", counts.pipeline.reordered},
            {"delayed", counts.pipeline.delayed},
            {"corrupted", counts.pipeline.corrupted},
            {"delay_us", quantiles_us(times.delay, clock_hz)},
            {"lateness_us", quantiles_us(times.lateness, clock_hz)}};
}

json connections_json(const ConnectionCounts& counts) {
    return {{"created", counts.created},   {"refused", counts.refused}, {"untracked", counts.untracked},
            {"evicted", counts.evicted},   {"expired", counts.expired}, {"deleted", counts.deleted},
            {"remapped", counts.remapped}, {"current", counts.current}, {"highest", counts.highest}};
}

json dns64_json(const Dns64Counts& counts) {
    const ResolverCounts& resolver = counts.resolver;
    json wrong = json::object();
    for (std::size_t i = 0; i < kWrongs; ++i) wrong[kWrongNames[i]] = counts.wrong[i];
    return {{"queries", resolver.queries},
            {"answered", resolver.answered},
            {"cache_hits", resolver.cache_hits},
            {"synthesised", resolver.synthesised},
            {"existing", resolver.existing},
            {"upstream", {{"a", resolver.asked_a}, {"aaaa", resolver.asked_aaaa}}},
            {"retries", resolver.retries},
            {"timed_out", resolver.timed_out},
            {"unsent", counts.unsent},
            {"unexpected", resolver.unexpected},
            {"malformed", resolver.malformed},
            {"unsupported", resolver.unsupported},
            {"pending", counts.pending},
            {"pending_full", resolver.pending_full},
            {"cached", counts.cached},
            {"evicted", counts.evicted},
            {"wrong", wrong}};
}

json opened_json(const ReferenceDut& dut) {
    json event{{"event", "opened"}, {"version", DUTPERF_VERSION}, {"tsc_hz", dut.clock_hz()}};
    for (std::size_t side = 0; side < 2; ++side)
        event[kSideNames[side]] = {{"mac", to_string(dut.port(side).mac())}, {"driver", dut.port(side).driver()}};
    return event;
}

}  // namespace

int listen_on(const std::string& path) {
    const std::string unready = path + "~";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (unready.size() >= sizeof address.sun_path)
        throw std::runtime_error("the socket's path is longer than the kernel allows: " + path);
    std::memcpy(address.sun_path, unready.data(), unready.size());
    unlink(unready.c_str());
    umask(S_IRWXG | S_IRWXO);
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // rename the socket when it listens: between bind() and listen() a client would be refused
    if (listener < 0 || bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener, 8) != 0 || rename(unready.c_str(), path.c_str()) != 0) {
        throw std::runtime_error("cannot listen on " + path + ": " + std::strerror(errno));
    }
    return listener;
}

void DutServer::serve(int input, int output) {
    RequestStream client(input, output);
    const auto dispatched = [&](const json& id, const std::string& method, Reader& request) {
        dispatch(client, id, method, request);
    };
    while (client.wait(forward_until_poll()) != RequestStream::Input::end) client.answer_all(dispatched);
}

void DutServer::serve_clients(int listener) {
    for (;;) {
        pollfd wanted{.fd = listener, .events = POLLIN, .revents = 0};
        if (poll(&wanted, 1, forward_until_poll()) <= 0) continue;
        const int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (client < 0) continue;
        serve(client, client);
        close(client);
    }
}

int DutServer::forward_until_poll() {
    constexpr int kForever = -1, kNotAtAll = 0;
    if (!dut_) return kForever;
    const Ticks poll_at = now_ticks() + due_after(kPollNs, dut_->clock_hz(), 1'000'000'000);
    bool napped = false;
    while (now_ticks() < poll_at) {
        if (!dut_->turn() && dut_->may_nap()) {
            std::this_thread::sleep_for(kNap);
            napped = true;
        }
    }
    // only while it naps: an overloaded DUT would keep all others from its core
    if (napped != naps_) be_real_time_thread(napped);
    naps_ = napped;
    return kNotAtAll;
}

void DutServer::dispatch(const RequestStream& client, const json& id, const std::string& method, Reader& request) {
    static const std::vector<std::string> methods{"open",  "configure", "counters",         "clear",
                                                  "stall", "reset",     "clear_connections"};
    if (std::ranges::find(methods, method) == methods.end()) {
        std::string names;
        for (const std::string& one : methods) names += (names.empty() ? "" : ", ") + one;
        request.fail("method", "must be one of " + names + ", not '" + method + "'");
    }
    client.write(method == "open" ? open(request) : act(method, request), id);
}

json DutServer::open(Reader& request) {
    if (dut_) throw Error("already_open", "the ports are already open: start another process for another test setup");
    const DutRequest parsed = read_dut(request.object("params"));
    request.finish();
    dut_ = std::make_unique<ReferenceDut>(parsed);
    return opened_json(*dut_);
}

json DutServer::act(const std::string& method, Reader& request) {
    if (!dut_) throw Error("not_open", "no ports are open yet");
    if (method == "configure")
        dut_->configure(
            read_properties(request.object("params"), {.has_nat = dut_->has_nat(), .has_dns64 = dut_->has_dns64()}));
    if (method == "stall") dut_->stall(read_disturbance(request.object("params")));
    if (method == "reset") dut_->reset(read_disturbance(request.object("params")));
    request.finish();
    if (method == "clear_connections") {
        if (!dut_->has_nat()) throw Error("no_nat", "the DUT has no connections: it was opened without a NAT");
        dut_->delete_connections();
    }
    if (method == "counters") return counters();
    if (method == "clear") dut_->clear_counts();
    return {{"event", "done"}};
}

json DutServer::counters() {
    json event{{"event", "counters"}, {"checksums_computed", dut_->checksums_computed()}};
    for (std::size_t i = 0; i < 2; ++i) {
        event[kDirectionNames[i]] = direction_json(dut_->counts(i), dut_->times(i), dut_->clock_hz());
        const DutPortLosses losses = dut_->port_losses(i);
        event[kSideNames[i]] = {{"lost_before", losses.before}, {"lost_after", losses.after}};
    }
    if (dut_->has_nat()) event["connections"] = connections_json(dut_->connections());
    if (dut_->has_dns64()) event["dns64"] = dns64_json(dut_->dns64_counts());
    return event;
}

}  // namespace dutperf
