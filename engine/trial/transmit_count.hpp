// SPDX-License-Identifier: Apache-2.0
// Finds frames that a driver accepted and never sent: these are losses of the tester, not of the DUT. The frames handed
// over are compared with those that the kernel or the driver counted as sent, unless more frames arrived than were
// counted.
#pragma once

#include <cstdint>

#include "port/port.hpp"
#include "port/transmit_ledger.hpp"

namespace dutperf {

// Who counts sent frames. A card's driver may count a frame when the card has sent it or when the card accepted it. In
// the second case the count shows no loss in the card.
enum class CountedBy : std::uint8_t { kernel, driver, nobody };

inline const char* name_of(CountedBy by) {
    return by == CountedBy::kernel ? "kernel" : by == CountedBy::driver ? "driver" : "nobody";
}

// The counts of a sending port at the end of a trial.
struct TransmitEvidence {
    const PortCounters &before, &after;
    std::uint64_t handed_over = 0;  // frames of the trial, fillers, and ARP and NDP replies
    std::uint64_t came = 0;         // frames of the trial that arrived at the other port, in time or late
    std::uint64_t lost = 0;         // frames of the trial that never arrived
    bool may_keep = false;          // the NIC controls the time or rate of sending and may hold frames
    bool tx_was_full = false;       // frames were offered to the driver again, which it may count as errors
};

struct TransmitCount {
    std::uint64_t handed_over = 0, counted = 0;
    CountedBy by = CountedBy::nobody;
    std::uint64_t errors = 0;  // frames that the driver says it could not send
    // frames not counted as sent; if nobody counts and the NIC may hold frames: every lost frame
    std::uint64_t unaccounted = 0;
};

// Frames that left the port between two readings, including those that the kernel counted as dropped.
std::uint64_t transmitted_since(const PortCounters& before, const PortCounters& now);

// To be called once a trial; `ledger` is the port's.
TransmitCount count_transmitted(const TransmitEvidence& of, TransmitLedger& ledger);

}  // namespace dutperf
