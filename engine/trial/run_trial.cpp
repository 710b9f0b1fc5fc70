// SPDX-License-Identifier: Apache-2.0
#include "trial/run_trial.hpp"

#include <rte_mempool.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "platform/cores.hpp"
#include "platform/error.hpp"
#include "trial/media.hpp"
#include "trial/sender_turns.hpp"

namespace dutperf {

namespace {

constexpr std::chrono::milliseconds kAnswerTimeout{500};
constexpr std::uint64_t kShortTurnNs = 1'000'000;  // after a longer turn, the backlog of a receive queue is unknown
constexpr double kStartDelayS = 0.002;             // so that every loop is running when the first frame is due
// Extra sending time before the rest is given up, 1 % and at least so much; the client's limit is far stricter.
constexpr std::uint64_t kSendingGraceShare = 100, kSendingGraceNs = 50'000'000;
constexpr std::uint64_t kMostStamps = 4'000'000;       // 32 bytes for each of both stamps are kept
constexpr std::chrono::milliseconds kStampsBegin{20};  // until the kernel stamps what it receives: a task does it
constexpr std::chrono::milliseconds kReadAtATime{5}, kReadAtTheEnd{5'000};  // stamps: the DUT may need the core
// Without the passing program (port/xdp.hpp) frames wait in the queue of the DUT's core, which takes 1,000
// (net.core.netdev_max_backlog): only so few may come while that core is stalled.
constexpr double kStalledS = 0.02, kShareOfQueue = 500;
constexpr std::uint64_t kSilentDrains = 2;  // further drains where no frame of a path came, each of up to...
constexpr std::uint64_t kLongestSilentDrainNs = 5'000'000'000;
constexpr double kCountsLateS = 1.5;  // some cards update their driver's counters once a second
constexpr std::uint64_t kFramesBetweenReadings = std::uint64_t{1} << 30U;
// So many histograms of a loop have all of their memory before the trial (0.9 MiB each). More have so many blocks each
// in stock, which is what frames that are not disturbed use at first.
constexpr std::size_t kFewHistograms = 64, kBlocksOfEach = 64;

// Stamps of a card's clock as ns after `base` by the tester's.
std::vector<StampLog::Stamp> on_one_clock(std::vector<StampLog::Stamp> stamps, const ClockRecord& clock, Ticks base) {
    for (auto& [number, at_ns] : stamps) at_ns = clock.own_ns(at_ns, base);
    return stamps;
}

// Both stamps of a frame are by one clock, but it may be set between them, and a program that follows another clock
// makes it run faster or slower: by its frequency (adjtimex(2)) by up to 500 ppm, otherwise by more. `slew`: by which
// it ran faster during the trial.
Clocks kernels_clock(std::int64_t step_ns, double slew, std::uint64_t longest_delay_ns) {
    const double most_slew = std::max(500e-6, 2 * std::abs(slew));
    Clocks both;
    both.sending = both.receiving = {.name = "CLOCK_REALTIME", .at = Stamps::kernel};
    both.step_ns = static_cast<double>(step_ns);
    both.error_ns = std::abs(*both.step_ns) + most_slew * static_cast<double>(longest_delay_ns);
    return both;
}

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
    : bed_(bed),
      spec_(spec),
      described_(bed.paths.size()),
      parts_(bed.paths.size(), bed.ports.size()),
      sending_times_(bed.paths.size()),
      lost_(bed.paths.size()),
      sending_(0),
      caretaker_(gettid()) {
    turn_back_questions();
    if (spec_.frame_timeout_ns && bed_.offloads.contains(Offload::rate_limit)) {
        throw Error("bad_request",
                    "with rate_limit frames wait in the tester's own port, which must not count as lateness of the "
                    "DUT's: leave out one of the two",
                    "params.frame_timeout_ns");
    }
    for (std::size_t port = 0; port < bed_.ports.size() && bed_.offloads.contains(Offload::send_at); ++port) {
        if (const auto paths = paths_from(bed_, spec_, port); paths.size() > 1) {
            throw Error("bad_request",
                        "several paths begin at the port " + bed_.ports[port]->side() +
                            ", whose NIC sends the frames of a queue in their order: leave out the offload send_at",
                        "params." + bed_.path(paths.back()).group);
        }
    }
    if (spec_.fill) require_fill_possible();
    unless_loops_stamp([this] { open_stamp_logs(); });
    answer_for_streams();
    for (PortHosts* hosts : bed_.hosts) answered_.push_back(hosts->resolve(kAnswerTimeout, first_of_each(bed_.hosts)));
    unless_loops_stamp([this] { prove_stamps(); });
    if (bed_.ports.size() > 2) announce_ports();
    for (PortHosts* hosts : bed_.hosts) conflicts_.push_back(hosts->take_conflicts());
    prepare_connections();
    for (const Direction direction : spec_.active()) {
        make_senders(direction);
        prepare_to_receive(direction);
    }
    for (std::size_t port = 0; port < bed_.ports.size(); ++port) {
        const bool serves = spec_.server && spec_.server->port == port;
        if (paths_from(bed_, spec_, port).empty() && !serves)
            parts_.idle_senders[port] = make_idle_sender(bed_.ports[port]->queue(0), bed_.control_rings[port]);
        if (serves) make_server(port);
        make_receivers(port);
    }
    limit_rates();
    make_loops();
    start();
}

// A DUT asks on the link for every address that frames have there, unless it has a route by way of the port's own.
void RunningTrial::answer_for_streams() {
    std::vector<AddressRanges> ranges(bed_.ports.size());
    for (const Direction direction : spec_.active()) {
        const StreamSpec& stream = *spec_.streams[index_of(direction)];
        ranges[bed_.sending_port(direction)].add(stream.answered_from);
        ranges[bed_.receiving_port(direction)].add(stream.answered_to);
        ranges[bed_.receiving_port(direction)].add(stream.translated);
    }
    for (std::size_t port = 0; port < ranges.size(); ++port) {
        bed_.hosts[port]->first().answer_for(ranges[port]);
        bed_.hosts[port]->report_groups();
    }
}

// Learning frames (RFC 2544 section 23) for a switch with more than two ports: it floods the frames to a port that has
// never sent any. ARP and NDP did it where there are gateways.
void RunningTrial::announce_ports() {
    constexpr std::chrono::milliseconds kArrival{20};
    const auto is_direct = [](const PortHosts* hosts) {
        const Gateway& gateway = hosts->first().gateway();
        return !gateway.ipv4 && !gateway.ipv6 && !gateway.mac;
    };
    if (std::ranges::none_of(bed_.hosts, is_direct)) return;
    for (PortHosts* hosts : bed_.hosts) hosts->announce();
    const auto end = std::chrono::steady_clock::now() + kArrival;
    while (std::chrono::steady_clock::now() < end) {
        for (PortHosts* hosts : bed_.hosts) hosts->serve();
    }
}

RunningTrial::~RunningTrial() {
    stop();
    for (const auto& loop : loops_) {
        if (loop->thread.joinable()) loop->thread.join();
    }
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
    const double until_start_s = kStartDelayS + static_cast<double>(spec_.rest_ns) / 1e9;
    parts_.start = now_ticks() + static_cast<Ticks>(until_start_s * static_cast<double>(bed_.clock_hz));
    began_s_ = monotonic_s(parts_.start, bed_.clock_hz);
    began_ns_ = wall_clock_ns(parts_.start, bed_.clock_hz);
    if (sending_.load() == 0)
        end_.set_after_drain(parts_.start + ticks_of(spec_.duration_ns, bed_.clock_hz) +
                             ticks_of(spec_.drain_ns, bed_.clock_hz));
    for (const Direction direction : spec_.active()) {
        const SendingTime time = sending_times_[index_of(direction)].later(parts_.start);
        for (const auto& sender : parts_.senders[index_of(direction)]) sender->start(time);
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
    const bool only_receives = spec_.active().empty();  // else the last sender sets the end
    if (only_receives && drains_) end_.set_at(now_ticks() + ticks_of(spec_.drain_ns, bed_.clock_hz));
}

void RunningTrial::look_after() {
    for (FollowedClock* clock : bed_.clocks) {
        if (clock != nullptr) clock->follow();
    }
    read_counters_in_time();
    read_stamps(kReadAtATime);
}

// Where the trial may choose, what keeps the kernel from it is no error, but the reason.
template <class Step>
void RunningTrial::unless_loops_stamp(const Step& step) {
    if (spec_.stamps == Stamps::loop) return;
    try {
        step();
    } catch (const Error& error) {
        if (spec_.stamps != Stamps::automatic) throw;
        const std::string message = error.what();
        loop_stamps_because_ = message.substr(0, message.rfind(": "));  // without what to do
        parts_.stamp_logs.clear();
        spec_.stamps = Stamps::loop;
    }
}

void RunningTrial::open_stamp_logs() {
    std::uint64_t stamped = 0;
    std::vector<StampLog::OfPath> paths(bed_.paths.size());
    for (const Direction direction : spec_.active()) {
        const StreamSpec& stream = *spec_.streams[index_of(direction)];
        if (stream.questions)
            throw Error("bad_request", "the kernel's stamps are not for questions, which have no tag: leave it at loop",
                        "params.stamps");
        StampLog::OfPath& path = paths[index_of(direction)];
        if (stream.described) path.unchecked_kinds = stream.described->unchecked_kinds();
        path.arriving = arriving(direction, bed_.receiving_port(direction));
        stamped += spec_.stamping == Stamping::every ? spec_.intended(direction) : spec_.tagging.count;
    }
    if (stamped > kMostStamps) {
        throw Error("bad_request",
                    "such stamps are for at most " + std::to_string(kMostStamps) + " frames, and the trial has " +
                        std::to_string(stamped) + ": take a shorter trial or a lower rate, or leave it at loop",
                    "params.stamps");
    }
    const StampedBy by = spec_.stamps == Stamps::card ? StampedBy::card : StampedBy::kernel;
    const bool shares_queue = may_share_queue();
    for (Port* port : bed_.ports) {
        if (port->spec().kind != PortSpec::Kind::af_packet) {
            throw Error("port_unavailable",
                        std::string(by == StampedBy::card ? "the cards'" : "the kernel's") +
                            " stamps need ports named af_packet:INTERFACE, and " + the_port(port->side()) +
                            " is none: leave it at loop",
                        "params.stamps");
        }
        if (by == StampedBy::kernel)
            require_stamps(port->spec().argument, port->side());
        else
            stamp_by_card(*port);
        parts_.stamp_logs.push_back(std::make_unique<StampLog>(
            by, *port, shares_queue ? port->passing_program() : nullptr, trial_mark(), paths, spec_.tags_from_end()));
    }
    std::this_thread::sleep_for(kStampsBegin);
    wall_clock_ahead_ns_ = wall_clock_ahead_ns(bed_.clock_hz);
    wall_clock_began_ = instant_by(CLOCK_REALTIME);
}

// Whether what all directions send while the DUT's core is stalled fits into its queue.
bool RunningTrial::may_share_queue() const {
    double frames = 0;
    for (const Direction direction : spec_.active()) {
        const StreamSpec& stream = *spec_.streams[index_of(direction)];
        const auto* bursts = std::get_if<Bursts>(&stream.pattern);
        frames += static_cast<double>(stream.highest_rate_fps()) * kStalledS;
        frames += bursts != nullptr ? static_cast<double>(bursts->frames) : 0;
    }
    return frames <= kShareOfQueue;
}

void RunningTrial::stamp_by_card(Port& port) {
    const std::string of_ptp = spec_.stamping == Stamping::tagged
                                   ? "which frames of connections, tunnels, queries and captures cannot be"
                                   : "which may be the tagged frames of latency";
    parts_.stamp_only_ptp.push_back(!port.card_stamping().stamp(stamped_by_cards(), of_ptp));
    const unsigned number = port.card_stamping().clock();
    const std::string whose = port.spec().argument + ", " + the_port(port.side());
    parts_.card_clocks.push_back(std::make_unique<FollowedClock>(
        ptp_clock("ptp" + std::to_string(number), open_ptp_clock(number, whose, bed_.clock_hz)), bed_.clock_hz));
    for (const auto& clock : parts_.card_clocks) clock->follow();  // the others waited for this one
}

// What the cards must stamp. Messages of PTP suffice if they may leave in place of all stamped frames, which may be few
// only: many cards take the next stamp when the driver has read the last one.
StampedFrames RunningTrial::stamped_by_cards() const {
    std::optional<StampedFrames> needed;
    for (const Direction direction : spec_.active()) {
        const std::vector<DescribedFrame>& messages = spec_.streams[index_of(direction)]->ptp;
        if (messages.empty() || spec_.stamping != Stamping::tagged) return StampedFrames::every;
        for (const DescribedFrame& message : messages) {
            const StampedFrames one = stamped_frames_of(message);
            if (needed.value_or(one) != one) return StampedFrames::every;
            needed = one;
        }
    }
    return needed.value_or(StampedFrames::every);
}

// Drivers that pass frames on to others promise the stamps of those, which some frames never get.
void RunningTrial::prove_stamps() {
    if (parts_.ptp()) return;  // the frame is no message of PTP
    for (const Direction direction : spec_.active()) {
        const std::size_t from = bed_.sending_port(direction);
        const Port& port = *bed_.ports[from];
        const Mac to = dut_mac(direction, false);
        if (parts_.stamp_logs[from]->socket().stamps_frames(port.mac(), to)) continue;
        throw Error("port_unavailable",
                    "the driver " + port.interface_driver() + " of " + port.spec().argument + ", " +
                        the_port(port.side()) + ", promises the " + (spec_.stamps == Stamps::card ? "card" : "kernel") +
                        "'s stamps, but a frame to " + to_string(to) + " left without one: leave stamps at loop",
                    "params.stamps");
    }
    for (PortHosts* hosts : bed_.hosts) hosts->serve();  // what came of it is no frame of the trial
}

// Reads some of each port in turn: none may wait until the others have no more.
void RunningTrial::read_stamps(std::chrono::milliseconds longest) {
    if (parts_.stamp_logs.empty()) return;
    const auto end = std::chrono::steady_clock::now() + longest;
    for (bool more = true; more && std::chrono::steady_clock::now() < end;) {
        more = false;
        for (const auto& log : parts_.stamp_logs) more |= log->read();
    }
    follow_stamp_clocks();
}

void RunningTrial::follow_stamp_clocks() {
    for (const auto& clock : parts_.card_clocks) clock->follow();
    if (spec_.stamps == Stamps::card) return;
    const std::int64_t step = wall_clock_ahead_ns(bed_.clock_hz) - wall_clock_ahead_ns_;
    if (std::abs(step) > std::abs(clock_step_ns_)) clock_step_ns_ = step;
}

void RunningTrial::match_all_stamps() {
    if (parts_.stamp_logs.empty()) return;
    read_stamps(kReadAtTheEnd);
    std::vector<ClockRecord> of_cards;
    for (const auto& clock : parts_.card_clocks) {
        of_cards.push_back(clock->record());
        follow_stamp_clocks();
    }
    for (const Direction direction : spec_.active()) match_stamps_of(direction, of_cards);
}

// The receivers took the frames; their delays follow from the stamps of both ports.
void RunningTrial::match_stamps_of(Direction direction, const std::vector<ClockRecord>& of_cards) {
    const std::size_t path = index_of(direction), from = bed_.sending_port(direction),
                      to = bed_.receiving_port(direction);
    RxStatistics& statistics = parts_.receivers[to].front()->statistics(direction);
    std::uint64_t longest_ns = 0;
    const auto record = [&](std::uint64_t number, std::uint64_t delay_ns) {
        longest_ns = std::max(longest_ns, delay_ns);
        statistics.record(number, ticks_of(delay_ns, bed_.clock_hz));
    };
    const auto& left = parts_.stamp_logs[from]->left(path);
    const auto& arrived = parts_.stamp_logs[to]->arrived(path);
    if (of_cards.empty()) {
        parts_.stamps[path] = match_stamps(left, arrived, record);
        const ClockInstant now = instant_by(CLOCK_REALTIME);
        const auto passed_ns = static_cast<double>(now.ns - wall_clock_began_.ns),
                   ticks_ns = static_cast<double>(now.ticks - wall_clock_began_.ticks) * 1e9 /
                              static_cast<double>(bed_.clock_hz);
        const double slew = (passed_ns - static_cast<double>(clock_step_ns_)) / ticks_ns - 1;
        parts_.clocks[path] = kernels_clock(clock_step_ns_, slew, longest_ns);
        return;
    }
    Clocks& clocks = parts_.clocks[path].emplace(
        compared(parts_.card_clocks[from]->name(), of_cards[from], parts_.card_clocks[to]->name(), of_cards[to]));
    const bool one_clock = clocks.sending == clocks.receiving;
    const ClockRecord &sending = of_cards[from], &receiving = one_clock ? sending : of_cards[to];
    parts_.stamps[path] =
        match_stamps(on_one_clock(left, sending, sending.begin()), on_one_clock(arrived, receiving, sending.begin()),
                     record, std::llround(clocks.error_ns));
    if (one_clock) clocks.error_ns = sending.error_between_ns(static_cast<double>(longest_ns));
    clocks.sending.only_ptp = parts_.stamp_only_ptp[from];
    clocks.receiving.only_ptp = parts_.stamp_only_ptp[to];
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

TrialResult RunningTrial::finish() {
    for (const auto& loop : loops_) loop->thread.join();
    if (spec_.server) parts_.answer_sender->send_rest();
    for (FollowedClock* clock : bed_.clocks) {
        if (clock != nullptr) clock->end();
    }
    match_all_stamps();
    TrialResult result;
    std::vector<std::vector<std::string>> switched_on;
    result.number = spec_.number;
    result.stopped = stopped_;
    result.began_s = began_s_;
    result.loop_stamps_because = loop_stamps_because_;
    for (std::size_t side = 0; side < bed_.ports.size(); ++side) {
        parts_.after[side] = bed_.ports[side]->counters();
        parts_.answered_after[side] = bed_.hosts[side]->sent();
        PortResult& port = result.ports.emplace_back();
        port.link_changes = parts_.after[side].carrier_changes - parts_.before[side].carrier_changes;
        port.link_up = bed_.ports[side]->link().up;
        port.link_down = was_down(side, parts_.after[side]);
        port.dut_answered = answered_[side];
        port.change = parts_.after[side].change;
        port.neighbours = conflicts_[side];
        for (const auto& receiver : parts_.receivers[side]) port.neighbours.add(receiver->neighbours());
        bed_.hosts[side]->remember(port.neighbours);
    }
    // Asking the kernel may take its time: only after the counters of all ports.
    for (const auto& port : bed_.ports) switched_on.push_back(port->switched_on());
    for (const auto& loop : loops_) parts_.stalls.push_back(loop->stall);
    result.directions = collect(bed_, spec_, parts_);
    for (const Direction direction : spec_.active())
        result.directions[index_of(direction)]->switched_on = switched_on[bed_.receiving_port(direction)];
    if (spec_.server) result.server = collect_server(bed_, spec_, parts_);
    if (spec_.capture) result.capture = write_captured();
    if (spec_.connections) {
        const StateTable& table = **bed_.state;
        result.connections = {.learned = table.learned(), .remapped = table.remapped(), .lost = table.lost()};
    }
    return result;
}

}  // namespace dutperf
