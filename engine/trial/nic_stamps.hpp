// SPDX-License-Identifier: Apache-2.0
// When frames arrived by the NIC's receive time stamps, in the tester's ticks.
#pragma once

#include "frame/tag.hpp"
#include "port/hardware.hpp"
#include "trial/nic_clock.hpp"

namespace dutperf {

// What a port needs for it; without a clock its frames have the time of their poll.
struct NicStamps {
    FollowedClock* clock = nullptr;
    TimeField field;
};

// Of stamped frames, whose arrival decides a delay.
struct StampCounts {
    std::uint64_t by_nic = 0;      // arrived when the NIC says
    std::uint64_t by_poll = 0;     // the NIC said nothing: arrived when polled
    std::uint64_t impossible = 0;  // of those by the NIC: before they were sent, or after they were polled; the nearest possible time counts
};

// The arrivals of one burst of frames, which was polled at `polled`.
class BurstArrivals {
public:
    BurstArrivals(const NicStamps& nic, Ticks polled, StampCounts& counts)
        : field_(nic.field), mapping_(nic.clock->mapping()), polled_(polled), counts_(counts) {}

    [[nodiscard]] Ticks of(const rte_mbuf& buffer, const Tag& tag) {
        if (tag.stamp == 0) return polled_;
        if (!field_.is_set(&buffer)) {
            ++counts_.by_poll;
            return polled_;
        }
        ++counts_.by_nic;
        const Ticks sent = polled_ - ((polled_ - tag.stamp) & kMask40), arrived = mapping_.ticks_of(field_.time(&buffer));
        if (arrived >= sent && arrived <= polled_) return arrived;
        ++counts_.impossible;
        return arrived < sent ? sent : polled_;
    }

private:
    const TimeField& field_;
    ClockMapping mapping_;
    Ticks polled_;
    StampCounts& counts_;
};

}  // namespace dutperf
