// SPDX-License-Identifier: Apache-2.0
// A card's clock for tests: it has an offset and a drift, may be set while it runs, answers only some requests, and
// loses some answers.
#pragma once

#include <linux/ptp_clock.h>

#include <cerrno>
#include <cmath>
#include <ctime>
#include <memory>
#include <set>

#include "port/ptp_clock.hpp"

namespace dutperf {

struct FakeOscillator {
    std::uint64_t hz;  // of the tester's counter
    double drift_ppm = 0;
    std::int64_t offset_ns = 0, step_ns = 0;
    Ticks begin = now_ticks(), steps_at = ~Ticks{0};

    [[nodiscard]] std::int64_t ns_at(Ticks at) const {
        const double own_ns =
            static_cast<double>(static_cast<std::int64_t>(at - begin)) * 1e9 / static_cast<double>(hz);
        return std::llround(own_ns * (1 + drift_ppm * 1e-6)) + offset_ns + (at >= steps_at ? step_ns : 0);
    }
};

class FakeCard : public PtpRequests {
public:
    FakeCard(std::shared_ptr<FakeOscillator> oscillator, std::set<unsigned long> answers, int loses_every = 0)
        : oscillator_(std::move(oscillator)), answers_(std::move(answers)), loses_every_(loses_every) {}

    bool ask(unsigned long request, void* argument) override {
        errno = EOPNOTSUPP;
        if (!answers_.contains(request)) return false;
        errno = EBUSY;
        if (loses_every_ != 0 && ++asked_ % loses_every_ == 0) return false;
        if (request == PTP_SYS_OFFSET_PRECISE) answer(*static_cast<ptp_sys_offset_precise*>(argument));
        if (request == PTP_SYS_OFFSET_EXTENDED) answer(*static_cast<ptp_sys_offset_extended*>(argument));
        if (request == PTP_SYS_OFFSET) answer(*static_cast<ptp_sys_offset*>(argument));
        return true;
    }

private:
    static ptp_clock_time time_of(std::int64_t ns) {
        return {.sec = ns / 1'000'000'000, .nsec = static_cast<__u32>(ns % 1'000'000'000), .reserved = 0};
    }
    static ptp_clock_time system() {
        timespec now{};
        clock_gettime(CLOCK_REALTIME, &now);
        return {.sec = now.tv_sec, .nsec = static_cast<__u32>(now.tv_nsec), .reserved = 0};
    }
    [[nodiscard]] ptp_clock_time own() const { return time_of(oscillator_->ns_at(now_ticks())); }

    void answer(ptp_sys_offset_precise& times) const {
        const ClockInstant now = instant_by(CLOCK_MONOTONIC_RAW);
        times.device = time_of(oscillator_->ns_at(now.ticks));
        times.sys_monoraw = time_of(now.ns);
    }
    void answer(ptp_sys_offset_extended& times) const {
        for (unsigned i = 0; i < times.n_samples; ++i) {
            times.ts[i][0] = system();
            times.ts[i][1] = own();
            times.ts[i][2] = system();
        }
    }
    void answer(ptp_sys_offset& times) const {
        for (unsigned i = 0; i < times.n_samples; ++i) {
            times.ts[2 * i] = system();
            times.ts[2 * i + 1] = own();
        }
        times.ts[2 * times.n_samples] = system();
    }

    std::shared_ptr<FakeOscillator> oscillator_;
    std::set<unsigned long> answers_;
    int loses_every_, asked_ = 0;
};

}  // namespace dutperf
