// SPDX-License-Identifier: Apache-2.0
#include "trial/run_trial.hpp"

#include <rte_mempool.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <thread>

#include "platform/cores.hpp"
#include "platform/error.hpp"
#include "trial/media.hpp"
#include "trial/sender_turns.hpp"
#include "trial/trial_paths.hpp"

namespace dutperf {

namespace {

constexpr std::uint64_t kShortTurnNs = 1'000'000;  // after a longer turn, the backlog of a receive queue is unknown
constexpr double kStartDelayS = 0.002;             // so that every loop is running when the first frame is due
constexpr double kStartOfSenderS = 30e-6;          // that of one which lists its times takes about half of it
// Extra sending time before the rest is given up, 1 % and at least so much; the client's limit is far stricter.
constexpr std::uint64_t kSendingGraceShare = 100, kSendingGraceNs = 50'000'000;
constexpr std::uint64_t kSilentDrains = 2;  // further drains where no frame of a path came, each of up to...
constexpr std::uint64_t kLongestSilentDrainNs = 5'000'000'000;
constexpr double kCountsLateS = 1.5;  // some cards update their driver's counters once a second
// So many histograms of a loop have all of their memory before the trial (0.9 MiB each). More have so many blocks each
// in stock, which is what frames that are not disturbed use at first.
constexpr std::size_t kFewHistograms = 64, kBlocksOfEach = 64;

}  // namespace

// One core's loop. It runs its roles in turn until the trial's end and keeps its longest stall.
struct RunningTrial::Loop {
    Loop(std::vector<Sender*> its_senders, std::vector<Receiver*> its_receivers, unsigned core)
        : all_senders(std::move(its_senders)), senders(all_senders), receivers(std::move(its_receivers)) {
        stall.core = core;
    }

    std::vector<Sender*> all_senders;
    SenderTurns senders;
    std::vector<Receiver*> receivers;
    LoopStall stall;
    std::thread thread;

    void run(RunningTrial& trial) {
        run_on(0, {stall.core});
        claim_core_for_thread();
        rte_thread_register();  // for the pools' cache of this core
        touch_memory();
        trial.loop_is_ready();
        turn_until_end(trial);
        flush_caches(trial);
        rte_thread_unregister();
        trial.loop_is_done();
    }

    // A loop that waits for the kernel to give it a page is late.
    void touch_memory() {
        std::size_t histograms = 0;
        for (const Sender* sender : all_senders) histograms += sender->histograms();
        for (Receiver* receiver : receivers) histograms += receiver->touch();
        stock_blocks(histograms * kBlocksOfEach);
        if (histograms > kFewHistograms) return;
        for (Sender* sender : all_senders) sender->take_whole();
        for (Receiver* receiver : receivers) receiver->take_whole();
    }

    void turn_until_end(RunningTrial& trial) {
        std::size_t sending = senders.sending();
        Ticks last = now_ticks();
        for (Ticks now = last;;) {
            if (now - last > stall.whole && now >= trial.parts_.start) [[unlikely]]
                stall.whole = now - last;
            if (trial.end_.has_come(now) && !trial.listens_on(now)) {  // only here: a stall at the end counts as well
                for (Receiver* receiver : receivers)
                    receiver->end(now - last > ticks_of(kShortTurnNs, trial.bed_.clock_hz));
                return;
            }
            last = now;
            Ticks known = senders.turn(now);  // serves the next turn if nothing was received
            for (Receiver* receiver : receivers) {
                if (receiver->turn(now)) known = 0;
            }
            if (sending != 0) [[likely]]
                sending = watch_sending(trial, sending);
            now = known != 0 ? known : now_ticks();
        }
    }

    // Counts the senders that still send; the last one of the trial sets its end.
    std::size_t watch_sending(RunningTrial& trial, std::size_t sending) {
        const std::size_t still = senders.sending();
        stall.sending = stall.whole;
        if (trial.stopped_.load(std::memory_order_relaxed)) [[unlikely]]
            senders.wake();
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
    : bed_(with_answers(bed, spec)),
      spec_(possible(bed_, spec)),
      parts_(bed.paths.size(), bed.ports.size()),
      stamps_(bed_, spec_, parts_),
      hosts_(bed_, spec_, stamps_),
      connections_(bed_, spec_),
      dns_(bed_, spec_, parts_),
      capture_(bed_, spec_),
      senders_(bed_, spec_, parts_, connections_, dns_),
      receivers_(bed_, spec_, parts_, connections_, dns_, capture_),
      sending_times_(bed.paths.size()),
      sending_(0),
      caretaker_(gettid()) {
    for (const Direction direction : spec_.active()) {
        auto& senders = parts_.senders[index_of(direction)] = senders_.make(direction);
        sending_ += static_cast<int>(senders.size());
        receivers_.prepare(direction);
    }
    for (std::size_t port = 0; port < bed_.ports.size(); ++port) {
        const bool serves = spec_.server && spec_.server->port == port;
        if (paths_from(bed_, spec_, port).empty() && !serves)
            parts_.idle_senders[port] = make_idle_sender(bed_.ports[port]->queue(0), bed_.control_rings[port]);
        if (serves) dns_.make_server(port);
        parts_.receivers[port] = receivers_.make(port);
    }
    senders_.limit_rates();
    make_loops();
    start();
}

RunningTrial::~RunningTrial() {
    stop();
    for (const auto& loop : loops_) {
        if (loop->thread.joinable()) loop->thread.join();
    }
    for (auto& senders : parts_.senders) senders.clear();  // they give their buffers back to pools of senders_
}

void RunningTrial::make_loops() {
    for (const unsigned core : bed_.cores.distinct()) {
        std::vector<Sender*> sending;
        std::vector<Receiver*> receiving;
        for (const Direction direction : spec_.active()) {
            const auto& senders = parts_.senders[index_of(direction)];
            for (std::size_t queue = 0; queue < senders.size(); ++queue) {
                if (bed_.cores.send[bed_.sending_port(direction)][queue] == core)
                    sending.push_back(senders[queue].get());
            }
        }
        for (std::size_t port = 0; port < bed_.ports.size(); ++port) {
            if (parts_.idle_senders[port] && bed_.cores.send[port][0] == core)
                sending.push_back(parts_.idle_senders[port].get());
            if (spec_.server && spec_.server->port == port && bed_.cores.send[port][0] == core)
                sending.push_back(parts_.answer_sender.get());
            for (std::size_t queue = 0; queue < parts_.receivers[port].size(); ++queue) {
                if (bed_.cores.receive[port][queue] == core) receiving.push_back(parts_.receivers[port][queue].get());
            }
        }
        loops_.push_back(std::make_unique<Loop>(std::move(sending), std::move(receiving), core));
    }
}

void RunningTrial::start() {
    for (std::size_t side = 0; side < bed_.ports.size(); ++side) {
        parts_.before[side] = bed_.ports[side]->counters();
        parts_.answered_before[side] = bed_.hosts[side]->sent();
        parts_.media_mbps[side] = bed_.ports[side]->link().mbps;
    }
    plan_sending();
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

// With many paths this takes longer than the time until the start.
void RunningTrial::plan_sending() {
    const std::uint64_t usual_grace_ns = std::max(kSendingGraceNs, spec_.duration_ns / kSendingGraceShare);
    for (const Direction direction : spec_.active()) {
        // at the media's rate frames are late by its clock, and none can leave in a burst
        const std::uint32_t mbps = parts_.media_mbps[bed_.sending_port(direction)];
        const auto media = media_limit(spec_, direction, mbps, share_of_others(bed_, spec_, direction, mbps));
        const std::uint64_t tolerance_ns = media ? media->tolerance_ns : 0;
        const StreamSpec& stream = *spec_.streams[index_of(direction)];
        const std::uint64_t late_ns = LateBursts::late_ns(stream.highest_rate_fps());
        sending_times_[index_of(direction)] = {
            .start = 0,
            .begin = ticks_of(stream.interval.begin_ns, bed_.clock_hz),
            .end = ticks_of(spec_.duration_ns, bed_.clock_hz),
            .deadline = ticks_of(spec_.duration_ns + stream.interval.grace_ns.value_or(usual_grace_ns), bed_.clock_hz),
            .burst_threshold = ticks_of(LateBursts::kBurstThresholdNs + tolerance_ns, bed_.clock_hz),
            .late = ticks_of(late_ns + tolerance_ns, bed_.clock_hz)};
    }
}

void RunningTrial::begin() {
    // the learning frames (ARP, NDP) have been answered by then
    const double until_start_s =
        kStartDelayS + kStartOfSenderS * sending_.load() + static_cast<double>(spec_.rest_ns) / 1e9;
    parts_.start = now_ticks() + static_cast<Ticks>(until_start_s * static_cast<double>(bed_.clock_hz));
    began_s_ = monotonic_s(parts_.start, bed_.clock_hz);
    began_ns_ = wall_clock_ns(parts_.start, bed_.clock_hz);
    if (sending_.load() == 0)
        end_.set_after_drain(parts_.start + ticks_of(spec_.duration_ns, bed_.clock_hz) +
                             ticks_of(spec_.drain_ns, bed_.clock_hz));
    const Ticks lead = longest_lead();
    for (const Direction direction : spec_.active()) {
        const SendingTime time = sending_times_[index_of(direction)].later(parts_.start);
        for (const auto& sender : parts_.senders[index_of(direction)]) sender->start(time);
        if (const auto& log = parts_.lengths[index_of(direction)]) log->start(time.begin - lead);
    }
    for (const auto& receivers : parts_.receivers) {
        for (const auto& receiver : receivers) receiver->start(parts_.start - lead);
    }
}

// How long before its time a frame may leave, at most.
Ticks RunningTrial::longest_lead() const {
    const double lead_s = spec_.fill ? kLineLeadS : bed_.offloads.contains(Offload::send_at) ? kMaxLeadS : 0;
    return static_cast<Ticks>(lead_s * static_cast<double>(bed_.clock_hz));
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
    const bool only_receives = spec_.active().empty();  // else the last sender sets the end
    if (only_receives && drains_) end_.set_at(now_ticks() + ticks_of(spec_.drain_ns, bed_.clock_hz));
}

void RunningTrial::look_after() {
    for (FollowedClock* clock : bed_.clocks) {
        if (clock != nullptr) clock->follow();
    }
    stamps_.look_after();
}

bool RunningTrial::done() {
    if (!loops_have_ended()) return false;
    const bool waited =
        now_ticks() - last_sent() > static_cast<Ticks>(kCountsLateS * static_cast<double>(bed_.clock_hz));
    if (!drains_ || waited || spec_.drain_ns == 0 ||
        std::ranges::all_of(spec_.active(), [this](Direction direction) { return is_counted(direction); }))
        return true;
    for (PortHosts* hosts : bed_.hosts) hosts->serve();
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

// Whether the loops receive beyond the drain: of some path no frame came, so all of them may still be on their way.
bool RunningTrial::listens_on(Ticks now) const {
    const std::uint64_t more_ns = kSilentDrains * std::min(spec_.drain_ns, kLongestSilentDrainNs);
    return now < end_.at() + ticks_of(more_ns, bed_.clock_hz) && !stopped_ &&
           std::ranges::any_of(spec_.active(), [this](Direction direction) { return is_silent(direction); });
}

bool RunningTrial::is_silent(Direction direction) const { return received(direction) == 0 && sent(direction) != 0; }

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
    for (const std::size_t port : bed_.receiving_ports(direction)) received += received_at(direction, port);
    return received;
}

std::uint64_t RunningTrial::received_at(Direction direction, std::size_t port) const {
    std::uint64_t received = 0;
    for (const auto& receiver : parts_.receivers[port])
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
    const std::size_t out = bed_.sending_port(direction);
    so_far.tester_drops = now[out].interface_transmit_drops - parts_.before[out].interface_transmit_drops;
    std::vector<std::size_t> sides = bed_.receiving_ports(direction);
    for (const std::size_t in : sides) {
        const PortCounters &in1 = now[in], &in0 = parts_.before[in];
        so_far.tester_drops += (in1.nic_missed - in0.nic_missed) + (in1.no_buffer - in0.no_buffer) +
                               (in1.receive_errors - in0.receive_errors) + (in1.kernel_socket - in0.kernel_socket) +
                               (in1.kernel_backlog - in0.kernel_backlog);
    }
    if (sides.size() > 1) {
        for (const std::size_t in : sides) so_far.received_at[bed_.ports[in]->side()] = received_at(direction, in);
    }
    sides.push_back(out);
    for (const std::size_t side : sides) {
        if (bed_.clocks[side] != nullptr)
            so_far.nic_clock_uncertainty = std::max(so_far.nic_clock_uncertainty, bed_.clocks[side]->uncertainty());
    }
    return so_far;
}

// An interface of the kernel that was taken down may send frames later than they were handed to it, without any loss.
bool RunningTrial::was_down(std::size_t side, const PortCounters& now) const {
    const Port& port = *bed_.ports[side];
    const PortCounters& before = parts_.before[side];
    return now.taken_down != before.taken_down ||
           (port.owns_link() && (!port.link().up || now.carrier_changes != before.carrier_changes));
}

std::vector<bool> RunningTrial::links_down(const std::vector<PortCounters>& now) const {
    std::vector<bool> down;
    for (std::size_t side = 0; side < bed_.ports.size(); ++side) down.push_back(was_down(side, now[side]));
    return down;
}

TrialResult RunningTrial::finish(const FrameGroups::Alive& alive) {
    for (const auto& loop : loops_) loop->thread.join();
    if (spec_.server) parts_.answer_sender->send_rest();
    for (FollowedClock* clock : bed_.clocks) {
        if (clock != nullptr) clock->end();
    }
    stamps_.match();
    TrialResult result;
    std::vector<std::vector<std::string>> switched_on;
    result.number = spec_.number;
    result.stopped = stopped_;
    result.began_s = began_s_;
    result.loop_stamps_because = stamps_.loop_stamps_because();
    for (std::size_t side = 0; side < bed_.ports.size(); ++side) {
        parts_.after[side] = bed_.ports[side]->counters();
        parts_.answered_after[side] = bed_.hosts[side]->sent();
        PortResult& port = result.ports.emplace_back();
        port.link_changes = parts_.after[side].carrier_changes - parts_.before[side].carrier_changes;
        port.link_up = bed_.ports[side]->link().up;
        port.link_down = was_down(side, parts_.after[side]);
        port.dut_answered = hosts_.answered(side);
        port.change = parts_.after[side].change;
        port.neighbours = hosts_.conflicts(side);
        for (const auto& receiver : parts_.receivers[side]) port.neighbours.add(receiver->neighbours());
        bed_.hosts[side]->remember(port.neighbours);
    }
    // Asking the kernel may take its time: only after the counters of all ports.
    for (const auto& port : bed_.ports) switched_on.push_back(port->switched_on());
    for (const auto& loop : loops_) parts_.stalls.push_back(loop->stall);
    result.directions = collect(bed_, spec_, parts_, alive);
    for (const Direction direction : spec_.active())
        for (const std::size_t port : bed_.receiving_ports(direction))
            std::ranges::copy(switched_on[port],
                              std::back_inserter(result.directions[index_of(direction)]->switched_on));
    if (spec_.server) result.server = collect_server(bed_, spec_, parts_);
    if (spec_.capture) result.capture = capture_.write(parts_, began_ns_);
    if (spec_.connections) {
        const StateTable& table = **bed_.state;
        result.connections = {.learned = table.learned(), .remapped = table.remapped(), .lost = table.lost()};
    }
    return result;
}

}  // namespace dutperf
