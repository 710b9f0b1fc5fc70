// SPDX-License-Identifier: Apache-2.0
#include "platform/clock.hpp"

#include <rte_pause.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <limits>
#include <thread>

#include "platform/cores.hpp"

namespace dutperf {

namespace {

constexpr std::int64_t kMinCalibrationNs = 100'000'000;
constexpr int kPingPongs = 2000;

// One cache line that both cores share. `turn` is even for the first core and odd for the second.
struct alignas(64) PingPong {
    std::atomic<std::uint32_t> turn{0};
    std::atomic<Ticks> answered{0};
};

void answer_pings(PingPong& shared, unsigned core) {
    run_on(0, {core});
    for (std::uint32_t round = 0; round < kPingPongs; ++round) {
        while (shared.turn.load(std::memory_order_acquire) != 2 * round + 1) rte_pause();
        shared.answered.store(now_ticks(), std::memory_order_relaxed);
        shared.turn.store(2 * round + 2, std::memory_order_release);
    }
}

// TSC offset of the other core, from the exchange with the shortest round trip, whose midpoint is known best.
double offset_to(unsigned first, unsigned other) {
    PingPong shared;
    std::thread partner(answer_pings, std::ref(shared), other);
    double offset = 0;
    std::thread([&] {
        run_on(0, {first});
        Ticks shortest = std::numeric_limits<Ticks>::max();
        for (std::uint32_t round = 0; round < kPingPongs; ++round) {
            const Ticks sent = now_ticks();
            shared.turn.store(2 * round + 1, std::memory_order_release);
            while (shared.turn.load(std::memory_order_acquire) != 2 * round + 2) rte_pause();
            const Ticks back = now_ticks();
            if (back - sent >= shortest) continue;
            shortest = back - sent;
            const double middle = static_cast<double>(sent) + static_cast<double>(back - sent) / 2;
            offset = static_cast<double>(shared.answered.load(std::memory_order_relaxed)) - middle;
        }
    }).join();
    partner.join();
    return offset;
}

}  // namespace

// Uses the tightest of several readings, because an interrupt may separate the two clocks of a reading.
ClockInstant instant_by(int clock) {
    ClockInstant best{.ticks = 0, .ns = 0, .width = std::numeric_limits<Ticks>::max()};
    for (int i = 0; i < 20; ++i) {
        timespec time{};
        const Ticks before = now_ticks();
        clock_gettime(clock, &time);
        const Ticks width = now_ticks() - before;
        if (width >= best.width) continue;
        best = {before + width / 2, std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec, width};
    }
    return best;
}

double monotonic_s(Ticks at, std::uint64_t clock_hz) {
    const ClockInstant now = instant_by(CLOCK_MONOTONIC);
    const auto later = static_cast<std::int64_t>(at - now.ticks);  // negative: earlier
    return static_cast<double>(now.ns) / 1e9 + static_cast<double>(later) / static_cast<double>(clock_hz);
}

std::uint64_t wall_clock_ns(Ticks at, std::uint64_t clock_hz) {
    const ClockInstant now = instant_by(CLOCK_REALTIME);
    const auto later = static_cast<double>(static_cast<std::int64_t>(at - now.ticks));  // negative: earlier
    return static_cast<std::uint64_t>(now.ns + std::llround(later * 1e9 / static_cast<double>(clock_hz)));
}

std::int64_t wall_clock_ahead_ns(std::uint64_t clock_hz) {
    const ClockInstant wall = instant_by(CLOCK_REALTIME), monotonic = instant_by(CLOCK_MONOTONIC);
    const auto later = static_cast<double>(static_cast<std::int64_t>(monotonic.ticks - wall.ticks));
    return wall.ns - monotonic.ns + std::llround(later * 1e9 / static_cast<double>(clock_hz));
}

ClockCalibration::ClockCalibration() : begin_(instant_by(CLOCK_MONOTONIC_RAW)) {}

std::uint64_t ClockCalibration::hertz() const {
    ClockInstant end = instant_by(CLOCK_MONOTONIC_RAW);
    while (end.ns - begin_.ns < kMinCalibrationNs) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(kMinCalibrationNs - (end.ns - begin_.ns)));
        end = instant_by(CLOCK_MONOTONIC_RAW);
    }
    return static_cast<std::uint64_t>(
        std::llround(static_cast<double>(end.ticks - begin_.ticks) * 1e9 / static_cast<double>(end.ns - begin_.ns)));
}

std::optional<double> counter_skew(const std::vector<unsigned>& cores) {
    if (cores.size() < 2) return std::nullopt;
    double worst = 0;
    for (std::size_t i = 1; i < cores.size(); ++i) worst = std::max(worst, std::abs(offset_to(cores[0], cores[i])));
    return worst;
}

}  // namespace dutperf
