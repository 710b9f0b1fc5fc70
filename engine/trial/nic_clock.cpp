// SPDX-License-Identifier: Apache-2.0
#include "trial/nic_clock.hpp"

#include <chrono>
#include <thread>

#include "platform/error.hpp"

namespace dutperf {

namespace {

constexpr int kReadings = 5;  // the tightest is used: an interrupt may separate the two clocks of a reading
constexpr std::uint64_t kFollowsPerS = 50;
constexpr std::chrono::milliseconds kFirstStretch{100};

}  // namespace

NicClock::NicClock(const ClockPair& first, const ClockPair& second, Ticks second_ticks)
    : second_(second_ticks), older_(first), newer_(first) {
    continue_from(second, 0);
}

void NicClock::follow(const ClockPair& now) {
    const double off = disagreement(now);
    worst_ = std::max(worst_, off + static_cast<double>(now.width) / 2);
    continue_from(now, off);
}

void NicClock::begin(const ClockPair& now) {
    continue_from(now, disagreement(now));
    worst_ = static_cast<double>(now.width) / 2;
}

double NicClock::disagreement(const ClockPair& now) const {
    return std::abs(static_cast<double>(static_cast<std::int64_t>(mapping_.ticks_of(now.nic) - now.ticks)));
}

void NicClock::continue_from(const ClockPair& now, double disagreement) {
    mapping_.ticks = now.ticks;
    mapping_.nic = now.nic;
    const auto passed = static_cast<std::int64_t>(now.nic - older_.nic);
    if (passed <= 0 ||
        disagreement >
            max_uncertainty()) {  // the clock was set, or not read for long: a rate across this would be wrong
        older_ = newer_ = now;
        return;
    }
    mapping_.ticks_per_nic = static_cast<double>(now.ticks - older_.ticks) / static_cast<double>(passed);
    if (now.ticks - newer_.ticks < second_) return;
    older_ = newer_;
    newer_ = now;
}

FollowedClock::FollowedClock(ReadClock read, std::uint64_t clock_hz)
    : read_(std::move(read)), clock_hz_(clock_hz), clock_(started()) {
    share();
}

void FollowedClock::begin() {
    clock_.begin(require_both());
    share();
}

void FollowedClock::follow() {
    if (now_ticks() - clock_.last() < clock_hz_ / kFollowsPerS) return;
    end();
}

void FollowedClock::end() {
    if (const auto pair = read_both()) {
        clock_.follow(*pair);
    } else {
        clock_.raise_uncertainty(now_ticks() - clock_.last());
    }
    share();
}

void FollowedClock::share() {
    ClockMapping mapping = clock_.mapping();
    mapping.uncertainty = clock_.uncertainty();
    mapping.max_uncertainty = clock_.max_uncertainty();
    shared_.prepare(mapping);
    shared_.publish();
}

std::optional<ClockPair> FollowedClock::read_both() const {
    std::optional<ClockPair> best;
    for (int i = 0; i < kReadings; ++i) {
        const Ticks before = now_ticks();
        const auto nic = read_();
        const Ticks width = now_ticks() - before;
        if (nic && (!best || width < best->width))
            best = ClockPair{.ticks = before + width / 2, .nic = *nic, .width = width};
    }
    return best;
}

ClockPair FollowedClock::require_both() const {
    if (const auto pair = read_both()) return *pair;
    throw Error("port_unavailable", "the clock of a port can no longer be read", "offloads");
}

NicClock FollowedClock::started() const {
    const ClockPair first = require_both();
    std::this_thread::sleep_for(kFirstStretch);
    const ClockPair second = require_both();
    if (static_cast<std::int64_t>(second.nic - first.nic) <= 0)
        throw Error("port_unavailable", "the clock of a port does not advance", "offloads");
    return {first, second, clock_hz_};
}

}  // namespace dutperf
