// SPDX-License-Identifier: Apache-2.0
// Sending at a time stamp: frames are handed over ahead of time, each with the time by the NIC's clock at which it is to leave. It is due time and as much
// later as that clock is uncertain, so that no frame is early. A frame whose time has come before it is handed over leaves at once, as without this help.
#pragma once

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "flow/flow_source.hpp"
#include "pace/schedule.hpp"
#include "port/hardware.hpp"
#include "trial/nic_clock.hpp"

namespace dutperf {

// What a port needs for it; without a clock its frames leave when they are handed over.
struct NicSending {
    FollowedClock* clock = nullptr;
    TimeField field;
    Ticks lead = 0;  // so much ahead of time
};

// Of the frames that were made.
struct DepartureCounts {
    std::uint64_t timed = 0, at_once = 0;
};

class Departures {
public:
    explicit Departures(const NicSending& nic) : nic_(nic) {}

    [[nodiscard]] Ticks lead() const { return nic_.lead; }
    [[nodiscard]] const DepartureCounts& counts() const { return counts_; }

    // When the schedule's next `count` frames leave, none before `now`; nullptr where all leave at once.
    template <Schedule S>
    const Ticks* plan(const S& schedule, std::uint32_t count, Ticks now) {
        if (nic_.clock == nullptr) [[likely]]
            return nullptr;
        now_ = now;
        mapping_ = nic_.clock->mapping();
        const auto margin = static_cast<Ticks>(std::ceil(mapping_.uncertainty));
        for (std::uint32_t i = 0; i < count; ++i) times_[i] = std::max(now, schedule.due_of(schedule.number() + i) + margin);
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
    ClockMapping mapping_;
    Ticks now_ = 0;
    std::array<Ticks, kMaxBurst> times_{};
    DepartureCounts counts_;
};

}  // namespace dutperf
