// SPDX-License-Identifier: Apache-2.0
// Sending at a time stamp: frames are handed over ahead of time, each with the time by the NIC's clock at which it is
// to leave. It is due time and as much later as that clock is uncertain, so that no frame is early. A frame whose time
// has come before it is handed over leaves at once, as without this help; so do all from where the clock turns out to
// have been set, for a wrong time would keep them in the NIC, and all that come after them.
#pragma once

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "flow/flow_source.hpp"
#include "pace/schedule.hpp"
#include "port/offloads.hpp"
#include "trial/nic_clock.hpp"

namespace dutperf {

// What a port needs for it; without a clock its frames leave when they are handed over.
struct NicSending {
    FollowedClock* clock = nullptr;
    TimeField field;
    Ticks lead = 0;  // so much ahead of time
};

// That frames are handed over ahead of time, at most: longer than a turn.
inline constexpr double kMostLeadS = 0.0002;

// ... and for a queue no more of them than half of the driver's ring holds, whose other half is for what is late.
constexpr Ticks lead_at(std::uint64_t rate_fps, std::uint32_t transmit_ring, std::uint64_t clock_hz) {
    const double half_s = static_cast<double>(transmit_ring) / 2 / static_cast<double>(rate_fps);
    return static_cast<Ticks>(std::min(kMostLeadS, half_s) * static_cast<double>(clock_hz));
}

// Of the frames that were made.
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

    // None from where the clock cannot be trusted.
    [[nodiscard]] Ticks lead() const { return lead_; }
    [[nodiscard]] const DepartureCounts& counts() const { return counts_; }

    // When the schedule's next `count` frames leave, none before `now`; nullptr where all leave at once.
    template <Schedule S>
    const Ticks* plan(const S& schedule, std::uint32_t count, Ticks now) {
        if (nic_.clock == nullptr) [[likely]]
            return nullptr;
        now_ = now;
        mapping_ = nic_.clock->mapping();
        if (!mapping_.is_sure()) [[unlikely]] {
            lead_ = 0;
            std::fill_n(times_.begin(), count, now);
            return times_.data();
        }
        const auto margin = static_cast<Ticks>(std::ceil(mapping_.uncertainty));
        for (std::uint32_t i = 0; i < count; ++i)
            times_[i] = std::max(now, schedule.due_of(schedule.number() + i) + margin);
        return times_.data();
    }

    // Writes what was planned into the frames.
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
