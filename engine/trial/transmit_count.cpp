// SPDX-License-Identifier: Apache-2.0
#include "trial/transmit_count.hpp"

#include <algorithm>

namespace dutperf {

namespace {

std::uint64_t beyond(std::uint64_t some, std::uint64_t others) { return some - std::min(some, others); }

// A frame that arrived was sent, whatever the count says. Frames that an earlier trial left in the NIC are in the count
// too, and delay this trial's.
std::uint64_t missing(const TransmitEvidence& of, const TransmitCount& count, TransmitLedger& ledger) {
    if (count.by == CountedBy::kernel) return std::min(of.lost, beyond(of.handed_over, count.counted));
    const std::uint64_t others = ledger.still_waiting(of.before.driver_sent);
    ledger.record_waiting(beyond(of.handed_over, count.counted), of.after.driver_sent);
    const std::uint64_t still_there = beyond(of.handed_over + others, count.counted);
    return of.may_keep ? std::max(others, still_there) : std::min(of.lost, still_there);
}

}  // namespace

std::uint64_t transmitted_since(const PortCounters& before, const PortCounters& now) {
    if (!now.counts_transmitted) return now.driver_sent - before.driver_sent;
    const auto all = [](const PortCounters& at) {
        return at.interface_sent + at.link_input_drops + at.interface_transmit_drops;
    };
    return all(now) - all(before);
}

TransmitCount count_transmitted(const TransmitEvidence& of, TransmitLedger& ledger) {
    const bool by_kernel = of.after.counts_transmitted;
    TransmitCount count{.handed_over = of.handed_over,
                        .counted = transmitted_since(of.before, of.after),
                        .by = by_kernel ? CountedBy::kernel : CountedBy::driver};
    if (count.counted < of.came) ledger.mark_inexact();
    if (!ledger.is_exact()) {
        count.by = CountedBy::nobody;
        count.unaccounted = of.may_keep ? of.lost : 0;
        return count;
    }
    count.unaccounted = missing(of, count, ledger);
    const std::uint64_t errors = of.after.driver_send_errors - of.before.driver_send_errors;
    count.errors = std::min(errors, of.tx_was_full ? count.unaccounted : std::max(of.lost, count.unaccounted));
    count.unaccounted = beyond(count.unaccounted, count.errors);
    return count;
}

}  // namespace dutperf
