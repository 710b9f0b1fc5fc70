// SPDX-License-Identifier: Apache-2.0
// What times the delays of stamped frames. A delay is between the stamps of two clocks, which may be one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace dutperf {

// The tester's loops, or the kernel or a card at both ends; automatic: the kernel where it can.
enum class Stamps : std::uint8_t { loop, kernel, card, automatic };

// Whose clock stamps the frames at one end of a path.
struct StampClock {
    std::string name = "TSC";
    Stamps at = Stamps::loop;
    bool only_ptp = false;  // it stamps no received frames but messages of PTP

    bool operator==(const StampClock&) const = default;
};

// The clocks at both ends of a path.
struct Clocks {
    StampClock sending, receiving;
    double error_ns = 0;            // of a delay, by how the clocks were compared
    std::optional<double> step_ns;  // the largest by which somebody set one; absent: the loops' or DPDK cards'
    // Of PTP hardware clocks: the receiving one against the other when the trial began, and since; the longest time in
    // which one of them was not read.
    std::optional<double> offset_ns, drift_ppm, unread_ns;
};

// Frames that arrived, by their stamps of the kernel or of cards.
struct StampsMatched {
    std::uint64_t both = 0;         // frames with both stamps, which have a delay
    std::uint64_t no_transmit = 0;  // that have only the one of their arrival
    std::uint64_t no_receive = 0;   // that have none of their arrival
    std::uint64_t impossible = 0;   // of those with both: they arrived before they left; their delay counts as 0
};

}  // namespace dutperf
