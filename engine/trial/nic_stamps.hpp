// SPDX-License-Identifier: Apache-2.0
// Arrival times of frames by the NIC's receive time stamps, in the tester's ticks.
#pragma once

#include <algorithm>

#include "frame/tag.hpp"
#include "port/offloads.hpp"
#include "trial/followed_clock.hpp"

namespace dutperf {

// The clock and time stamp field of a port. Without a clock, frames have the time of their poll.
struct NicStamps {
    FollowedClock* clock = nullptr;
    TimeField field;
};

// Counts of stamped frames that have a delay.
struct StampCounts {
    std::uint64_t by_nic = 0;   // arrival time from the NIC
    std::uint64_t by_poll = 0;  // no time from the NIC: time of the poll
    // of both: before the frame was sent or after it was polled, by more than the clock's uncertainty
    std::uint64_t impossible = 0;

    void add(const StampCounts& other) {
        by_nic += other.by_nic;
        by_poll += other.by_poll;
        impossible += other.impossible;
    }
};

// Arrival times of one burst of frames, polled at `polled`.
class BurstArrivals {
public:
    BurstArrivals(const NicStamps& nic, Ticks polled)
        : field_(nic.field), mapping_(nic.clock->mapping()), polled_(polled) {}

    // The arrival time of a frame. An impossible time is replaced by the nearest possible one.
    [[nodiscard]] Ticks of(const rte_mbuf& buffer, const Tag& tag) {
        if (tag.stamp == 0) return polled_;
        const Ticks sent = sent_at(tag);
        const auto in_future = static_cast<std::int64_t>(sent - polled_);
        const bool by_nic = field_.is_set(&buffer);
        const Ticks arrived = by_nic ? mapping_.ticks_of(field_.time(&buffer)) : polled_;
        const auto early = static_cast<std::int64_t>(sent - arrived),
                   late = static_cast<std::int64_t>(arrived - polled_);
        const bool possible = in_future <= 0 && static_cast<double>(std::max(early, late)) <= mapping_.uncertainty;
        last_ = {.by_nic = by_nic ? 1U : 0U, .by_poll = by_nic ? 0U : 1U, .impossible = possible ? 0U : 1U};
        return in_future > 0 || early > 0 ? sent : late > 0 ? polled_ : arrived;
    }

    // How the last stamped frame counts.
    [[nodiscard]] const StampCounts& last() const { return last_; }

private:
    // With send_at a stamp may be in the future: it is the time at which the NIC was to send.
    [[nodiscard]] Ticks sent_at(const Tag& tag) const {
        const std::uint64_t ago = (polled_ - tag.stamp) & kMask40;
        return ago <= kLongestDelay ? polled_ - ago : polled_ + ((tag.stamp - polled_) & kMask40);
    }

    const TimeField& field_;
    ClockMapping mapping_;
    Ticks polled_;
    StampCounts last_;
};

}  // namespace dutperf
