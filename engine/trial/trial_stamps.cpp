// SPDX-License-Identifier: Apache-2.0
#include "trial/trial_stamps.hpp"

#include <algorithm>
#include <thread>

#include "platform/error.hpp"
#include "trial/trial_paths.hpp"
#include "trial/trial_receivers.hpp"

namespace dutperf {

namespace {

constexpr std::uint64_t kMostStamps = 4'000'000;       // 32 bytes for each of both stamps are kept
constexpr std::chrono::milliseconds kStampsBegin{20};  // until the kernel stamps what it receives: a task does it
constexpr std::chrono::milliseconds kReadAtATime{5}, kReadAtTheEnd{5'000};  // stamps: the DUT may need the core
// Without the passing program (port/xdp.hpp) frames wait in the queue of the DUT's core, which takes 1,000
// (net.core.netdev_max_backlog): only so few may come while that core is stalled.
constexpr double kStalledS = 0.02, kShareOfQueue = 500;

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

TrialStamps::TrialStamps(const TestBed& bed, TrialSpec& spec, TrialParts& parts)
    : bed_(bed), spec_(spec), parts_(parts) {
    unless_loops_stamp([this] { open(); });
}

void TrialStamps::prove() {
    unless_loops_stamp([this] { prove_all(); });
}

void TrialStamps::look_after() { read(kReadAtATime); }

// Where the trial may choose, what keeps the kernel from it is no error, but the reason.
template <class Step>
void TrialStamps::unless_loops_stamp(const Step& step) {
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

void TrialStamps::open() {
    std::uint64_t stamped = 0;
    std::vector<StampLog::OfPath> paths(bed_.paths.size());
    for (const Direction direction : spec_.active()) {
        const StreamSpec& stream = *spec_.streams[index_of(direction)];
        if (stream.questions)
            throw Error("bad_request", "the kernel's stamps are not for questions, which have no tag: leave it at loop",
                        "params.stamps");
        if (!bed_.path(direction).also_to.empty())
            throw Error("bad_request",
                        "the kernel's stamps are for frames that arrive at one port, and those of " +
                            bed_.name_of(direction) + " may arrive at several: leave it at loop",
                        "params.stamps");
        StampLog::OfPath& path = paths[index_of(direction)];
        if (stream.described) path.unchecked_kinds = stream.described->unchecked_kinds();
        path.arriving = arriving(bed_, spec_, direction, bed_.receiving_port(direction));
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
        parts_.stamp_logs.push_back(std::make_unique<StampLog>(by, *port,
                                                               shares_queue ? port->passing_program() : nullptr,
                                                               mark_of(bed_, spec_), paths, spec_.tags_from_end()));
    }
    std::this_thread::sleep_for(kStampsBegin);
    wall_clock_ahead_ns_ = wall_clock_ahead_ns(bed_.clock_hz);
    wall_clock_began_ = instant_by(CLOCK_REALTIME);
}

// Whether what all directions send while the DUT's core is stalled fits into its queue.
bool TrialStamps::may_share_queue() const {
    double frames = 0;
    for (const Direction direction : spec_.active()) {
        const StreamSpec& stream = *spec_.streams[index_of(direction)];
        const auto* bursts = std::get_if<Bursts>(&stream.pattern);
        frames += static_cast<double>(stream.highest_rate_fps()) * kStalledS;
        frames += bursts != nullptr ? static_cast<double>(bursts->frames) : 0;
    }
    return frames <= kShareOfQueue;
}

void TrialStamps::stamp_by_card(Port& port) {
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
StampedFrames TrialStamps::stamped_by_cards() const {
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
void TrialStamps::prove_all() {
    if (parts_.ptp()) return;  // the frame is no message of PTP
    for (const Direction direction : spec_.active()) {
        const std::size_t from = bed_.sending_port(direction);
        const Port& port = *bed_.ports[from];
        const Mac to = dut_mac(bed_, spec_, direction, false);
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
void TrialStamps::read(std::chrono::milliseconds longest) {
    if (parts_.stamp_logs.empty()) return;
    const auto end = std::chrono::steady_clock::now() + longest;
    for (bool more = true; more && std::chrono::steady_clock::now() < end;) {
        more = false;
        for (const auto& log : parts_.stamp_logs) more |= log->read();
    }
    follow_clocks();
}

void TrialStamps::follow_clocks() {
    for (const auto& clock : parts_.card_clocks) clock->follow();
    if (spec_.stamps == Stamps::card) return;
    const std::int64_t step = wall_clock_ahead_ns(bed_.clock_hz) - wall_clock_ahead_ns_;
    if (std::abs(step) > std::abs(clock_step_ns_)) clock_step_ns_ = step;
}

void TrialStamps::match() {
    if (parts_.stamp_logs.empty()) return;
    read(kReadAtTheEnd);
    std::vector<ClockRecord> of_cards;
    for (const auto& clock : parts_.card_clocks) {
        of_cards.push_back(clock->record());
        follow_clocks();
    }
    for (const Direction direction : spec_.active()) match_path(direction, of_cards);
}

void TrialStamps::match_path(Direction direction, const std::vector<ClockRecord>& of_cards) {
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

}  // namespace dutperf
