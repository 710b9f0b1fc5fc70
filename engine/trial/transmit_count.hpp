// SPDX-License-Identifier: Apache-2.0
// Frames that a driver took and that never left: the tester's own loss, not the DUT's. What was handed over is compared
// with what the kernel or the driver counted as sent, unless frames that arrived have shown that this count is too low.
#pragma once

#include <cstdint>

#include "port/port.hpp"
#include "port/transmit_ledger.hpp"

namespace dutperf {

// Who counts what leaves a port. A card's driver may count when the card has sent a frame, or when it took it: then its
// count shows no loss in the card.
enum class CountedBy : std::uint8_t { kernel, driver, nobody };

inline const char* name_of(CountedBy by) {
    return by == CountedBy::kernel ? "kernel" : by == CountedBy::driver ? "driver" : "nobody";
}

// What is known of a sending port at the end of a trial.
struct TransmitEvidence {
    const PortCounters &before, &after;
    std::uint64_t handed_over = 0;  // frames of the trial, and answers to ARP and NDP
    std::uint64_t came = 0;         // of the trial's, at the other port, in time or late
    std::uint64_t lost = 0;         // ... that never did
    bool may_keep = false;          // the NIC was told when or how fast to send: it may keep frames for itself
    bool tx_was_full = false;       // ... and got them again, which drivers may count as errors
};

struct TransmitCount {
    std::uint64_t handed_over = 0, counted = 0;
    CountedBy by = CountedBy::nobody;
    std::uint64_t errors = 0;  // frames that the driver says it could not send
    std::uint64_t unaccounted =
        0;  // ... that nobody has seen leave; where nobody counts and the NIC may keep frames, every lost one
};

// Frames that left the port between two readings, or that the kernel dropped and counted as that.
std::uint64_t transmitted_since(const PortCounters& before, const PortCounters& now);

// Once a trial; `ledger` is the port's.
TransmitCount count_transmitted(const TransmitEvidence& of, TransmitLedger& ledger);

}  // namespace dutperf
