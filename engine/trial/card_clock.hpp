// SPDX-License-Identifier: Apache-2.0
// Converts the time stamps of cards to the tester's clock, and so to one clock for two cards. A card's clock is
// compared with the tester's before, during and after a trial. Afterwards times are interpolated between comparisons.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "port/ptp_clock.hpp"
#include "trial/trial.hpp"

namespace dutperf {

// How a card's clock ran against the tester's.
class ClockRecord {
public:
    // At least two comparisons, in their order. `end`: until when times are asked for.
    ClockRecord(std::vector<ClockPair> pairs, Ticks end, std::uint64_t clock_hz);

    // A time of the card's clock in ns after `base` by the tester's.
    [[nodiscard]] std::int64_t own_ns(std::int64_t card_ns, Ticks base) const;
    // What the card's clock says at a time of the tester's, by its rate since the first comparison.
    [[nodiscard]] std::int64_t card_ns(Ticks at) const;

    [[nodiscard]] Ticks begin() const { return pairs_.front().ticks; }
    // ns of the card's clock in a ns of the tester's.
    [[nodiscard]] double rate() const { return rate_; }
    // Largest error of own_ns: half the width of a comparison, and what the clock left its rate beyond that; after the
    // last comparison, what its rate may be wrong.
    [[nodiscard]] double error_ns() const { return error_ns_; }
    // The largest jump between two comparisons that neither their width nor an oscillator explains, in ns; 0: none.
    [[nodiscard]] double step_ns() const { return step_ns_; }
    // The longest time without a comparison, in ns.
    [[nodiscard]] double unread_ns() const { return unread_ns_; }

private:
    [[nodiscard]] double ns(Ticks ticks) const { return static_cast<double>(ticks) * ns_per_tick_; }
    [[nodiscard]] double own_ns_between(std::size_t i) const { return ns(pairs_[i + 1].ticks - pairs_[i].ticks); }
    [[nodiscard]] double card_ns_between(std::size_t i) const;
    [[nodiscard]] double unsure_ns(std::size_t i) const;
    void find_rate();
    void find_errors(Ticks end);

    std::vector<ClockPair> pairs_;
    double ns_per_tick_;
    double rate_ = 1, unsure_rate_ = 0;
    double error_ns_ = 0, step_ns_ = 0, unread_ns_ = 0;
};

// How the clocks of a path's two ends compare, by their names. Ports of one card may have the same clock, which has
// no error against itself.
CardClocks compared(const std::string& sending, const ClockRecord& of_sending, const std::string& receiving,
                    const ClockRecord& of_receiving);

// A card's clock during a trial. For one thread at a time.
class CardClock {
public:
    CardClock(std::string name, PtpClock clock, std::uint64_t clock_hz);

    [[nodiscard]] const std::string& name() const { return name_; }
    // Before a trial. Takes 0.1 s. Throws Error "port_unavailable" for the field "params.stamps" if it is not read.
    void begin();
    // To be called every few milliseconds; compares every 20.
    void follow();
    // After a trial. Takes 0.1 s.
    [[nodiscard]] ClockRecord end();

private:
    void compare();
    void compare_repeatedly();

    std::string name_;
    PtpClock clock_;
    std::uint64_t clock_hz_;
    Ticks last_ = 0;
    std::vector<ClockPair> pairs_;
};

}  // namespace dutperf
