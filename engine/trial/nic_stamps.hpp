// SPDX-License-Identifier: Apache-2.0
// When frames arrived by the NIC's receive time stamps, in the tester's ticks.
#pragma once

#include <algorithm>

#include "frame/tag.hpp"
#include "port/offloads.hpp"
#include "trial/nic_clock.hpp"

namespace dutperf {

// What a port needs for it; without a clock its frames have the time of their poll.
struct NicStamps {
    FollowedClock* clock = nullptr;
    TimeField field;
};

// Of frames with a stamp that have a delay.
struct StampCounts {
    std::uint64_t by_nic = 0;   // arrived when the NIC says
    std::uint64_t by_poll = 0;  // the NIC said nothing: arrived when polled
    std::uint64_t impossible =
        0;  // of both: before they were sent or after they were polled, by more than the clock may be wrong

    void add(const StampCounts& other) {
        by_nic += other.by_nic;
        by_poll += other.by_poll;
        impossible += other.impossible;
    }
};

// The arrivals of one burst of frames, which was polled at `polled`.
class BurstArrivals {
public:
    BurstArrivals(const NicStamps& nic, Ticks polled)
        : field_(nic.field), mapping_(nic.clock->mapping()), polled_(polled) {}

    // What cannot be stands for the nearest time that can.
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

    // What the last one with a stamp counts as.
    [[nodiscard]] const StampCounts& last() const { return last_; }

private:
    // A stamp may lie ahead where it says when the NIC was to send.
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
