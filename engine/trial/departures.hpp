// SPDX-License-Identifier: Apache-2.0
// Timed sending (offload send_at): frames are handed over ahead of time, each with its departure time by the NIC's
// clock. This is the due time plus the clock's uncertainty, so that no frame is early. A frame that is handed over
// after its departure time leaves at once, as without the offload. If the clock is found to have been set, all later
// frames leave at once: a wrong time would hold them and all frames behind them in the NIC.
#pragma once

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "flow/flow_source.hpp"
#include "pace/schedule.hpp"
#include "port/offloads.hpp"
#include "trial/followed_clock.hpp"

namespace dutperf {

// The clock and time stamp field of a port. Without a clock, frames leave when they are handed over.
struct NicSending {
    FollowedClock* clock = nullptr;
    TimeField field;
    Ticks lead = 0;  // how far ahead of time frames are handed over
};

// The longest lead; longer than a turn of the loop.
inline constexpr double kMaxLeadS = 0.0002;

// The lead of a queue: at most kMaxLeadS, and at most half of the driver's ring; the other half is for late frames.
constexpr Ticks lead_at(std::uint64_t rate_fps, std::uint32_t transmit_ring, std::uint64_t clock_hz) {
    const double half_s = static_cast<double>(transmit_ring) / 2 / static_cast<double>(rate_fps);
    return static_cast<Ticks>(std::min(kMaxLeadS, half_s) * static_cast<double>(clock_hz));
}

// Counts of the frames that were made.
struct DepartureCounts {
    std::uint64_t timed = 0, at_once = 0;

    void add(const DepartureCounts& other) {
        timed += other.timed;
        at_once += other.at_once;
    }
};

class Departures {
public:
    explicit Departures(const NicSending& nic) : nic_(nic), lead_(nic.lead) {}

    // 0 once the clock was found unusable.
    [[nodiscard]] Ticks lead() const { return lead_; }
    [[nodiscard]] const DepartureCounts& counts() const { return counts_; }

    // Departure times of the schedule's next `count` frames, none before `now`; nullptr if there is no clock.
    template <Schedule S>
    const Ticks* plan(const S& schedule, std::uint32_t count, Ticks now) {
        if (nic_.clock == nullptr) [[likely]]
            return nullptr;
        now_ = now;
        mapping_ = nic_.clock->mapping();
        if (!mapping_.is_usable()) [[unlikely]] {
            lead_ = 0;
            std::fill_n(times_.begin(), count, now);
            return times_.data();
        }
        const auto margin = static_cast<Ticks>(std::ceil(mapping_.uncertainty));
        for (std::uint32_t i = 0; i < count; ++i)
            times_[i] = std::max(now, schedule.due_of(schedule.number() + i) + margin);
        return times_.data();
    }

    // Writes the planned times into the frames.
    void write(rte_mbuf** frames, std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            const bool timed = times_[i] > now_;
            timed ? nic_.field.set(frames[i], mapping_.nic_at_or_after(times_[i])) : nic_.field.clear(frames[i]);
            ++(timed ? counts_.timed : counts_.at_once);
        }
    }

private:
    NicSending nic_;
    Ticks lead_;
    ClockMapping mapping_;
    Ticks now_ = 0;
    std::array<Ticks, kMaxBurst> times_{};
    DepartureCounts counts_;
};

}  // namespace dutperf
