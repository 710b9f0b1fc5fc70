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

constexpr std::int64_t kLeastCalibrationNs = 100'000'000;
constexpr int kPingPongs = 2000;

// One shared word: even = first core's turn, odd = second core's.
struct alignas(64) Court {
    std::atomic<std::uint32_t> turn{0};
    std::atomic<Ticks> returned{0};
};

void return_balls(Court& court, unsigned core) {
    run_on(0, {core});
    for (std::uint32_t round = 0; round < kPingPongs; ++round) {
        while (court.turn.load(std::memory_order_acquire) != 2 * round + 1) rte_pause();
        court.returned.store(now_ticks(), std::memory_order_relaxed);
        court.turn.store(2 * round + 2, std::memory_order_release);
    }
}

// Offset of the other core's counter, from the exchange with the shortest round trip: there the middle of the trip is
// known best.
double offset_to(unsigned first, unsigned other) {
    Court court;
    std::thread partner(return_balls, std::ref(court), other);
    double offset = 0;
    std::thread([&] {
        run_on(0, {first});
        Ticks shortest = std::numeric_limits<Ticks>::max();
        for (std::uint32_t round = 0; round < kPingPongs; ++round) {
            const Ticks sent = now_ticks();
            court.turn.store(2 * round + 1, std::memory_order_release);
            while (court.turn.load(std::memory_order_acquire) != 2 * round + 2) rte_pause();
            const Ticks back = now_ticks();
            if (back - sent >= shortest) continue;
            shortest = back - sent;
            const double middle = static_cast<double>(sent) + static_cast<double>(back - sent) / 2;
            offset = static_cast<double>(court.returned.load(std::memory_order_relaxed)) - middle;
        }
    }).join();
    partner.join();
    return offset;
}

}  // namespace

ClockCalibration::ClockCalibration() : begin_(read_both()) {}

// The tightest of several readings: a pair that an interruption has torn apart is not used.
ClockCalibration::Instant ClockCalibration::read_both() {
    Instant best{};
    Ticks tightest = std::numeric_limits<Ticks>::max();
    for (int i = 0; i < 20; ++i) {
        timespec time{};
        const Ticks before = now_ticks();
        clock_gettime(CLOCK_MONOTONIC_RAW, &time);
        const Ticks after = now_ticks();
        if (after - before >= tightest) continue;
        tightest = after - before;
        best = {before + tightest / 2, std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec};
    }
    return best;
}

std::uint64_t ClockCalibration::hertz() const {
    Instant end = read_both();
    while (end.ns - begin_.ns < kLeastCalibrationNs) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(kLeastCalibrationNs - (end.ns - begin_.ns)));
        end = read_both();
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
