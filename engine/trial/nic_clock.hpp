// SPDX-License-Identifier: Apache-2.0
// A NIC's clock told in the tester's ticks. Both are read together again and again while a trial runs, and the NIC's
// time is taken to pass evenly from each reading to the next. How far the next reading is from what was foretold is
// what the times may be wrong by: it is measured, not assumed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "pace/due_after.hpp"
#include "port/offloads.hpp"
#include "trial/published.hpp"

namespace dutperf {

// One reading of both: the NIC's clock was `nic` within `width` / 2 of `ticks`.
struct ClockPair {
    Ticks ticks = 0;
    std::uint64_t nic = 0;
    Ticks width = 0;
};

// More than two clocks that are followed ever disagree by: a clock that does was set by somebody.
inline constexpr double kUncertainAtMostS = 100e-6;

// From one clock to the other, near the instant at which both were read last.
struct ClockMapping {
    Ticks ticks = 0;
    std::uint64_t nic = 0;
    double ticks_per_nic = 1;
    double uncertainty = 0;  // ticks by which what it says may be wrong
    double at_most = 0;      // ticks by which it may be so and still be of use

    [[nodiscard]] bool is_sure() const { return uncertainty <= at_most; }
    [[nodiscard]] Ticks ticks_of(std::uint64_t nic_time) const {
        const auto since = static_cast<double>(static_cast<std::int64_t>(nic_time - nic));
        return ticks + static_cast<Ticks>(whole(since * ticks_per_nic));
    }
    [[nodiscard]] std::uint64_t nic_at_or_after(Ticks at) const {
        const auto since = static_cast<double>(static_cast<std::int64_t>(at - ticks));
        return nic + static_cast<std::uint64_t>(whole(std::ceil(since / ticks_per_nic)));
    }

private:
    // What does not fit is as far away as can be told.
    static std::int64_t whole(double value) {
        constexpr double kFits = 0x1p62;
        return std::llround(std::clamp(value, -kFits, kFits));
    }
};

// Follows one clock by pairs.
class NicClock {
public:
    // The rate comes from both; the further apart they are, the better. Their NIC times must differ. It looks back a
    // second at least, unless somebody sets the clock: then what was before tells nothing but the rate.
    NicClock(const ClockPair& first, const ClockPair& second, Ticks second_ticks);

    // What was foretold for now is compared with what was read, from which the mapping goes on.
    void follow(const ClockPair& now);
    // A pair of which nothing was foretold.
    void begin(const ClockPair& now);

    [[nodiscard]] const ClockMapping& mapping() const { return mapping_; }
    [[nodiscard]] double uncertain_at_most() const { return static_cast<double>(second_) * kUncertainAtMostS; }
    [[nodiscard]] Ticks last() const { return mapping_.ticks; }

    // By how many ticks a time may be wrong: the largest disagreement, half the width of its reading, and one tick of
    // the NIC.
    [[nodiscard]] double uncertainty() const { return worst_ + mapping_.ticks_per_nic; }
    // The clock could not be read for so long.
    void doubt(Ticks ticks) { worst_ = std::max(worst_, static_cast<double>(ticks)); }

private:
    void go_on_from(const ClockPair& now, double disagreement);
    [[nodiscard]] double disagreement(const ClockPair& now) const;

    Ticks second_;
    ClockPair older_, newer_;  // the rate is that since `older_`
    ClockMapping mapping_;
    double worst_ = 0;
};

// Reads a clock in time and shares what comes of it: one thread follows, any may ask.
class FollowedClock {
public:
    // Takes 100 ms. Throws Error "port_unavailable", its field "offloads", where the clock stands still or cannot be
    // read.
    FollowedClock(ReadClock read, std::uint64_t clock_hz);

    // A trial begins: reads the clock, and counts how wrong it is from here on.
    void begin();
    // To be called every few milliseconds; reads the clock every 20.
    void follow();
    // The trial has ended.
    void end();

    // Never waits for the thread that follows.
    [[nodiscard]] ClockMapping mapping() const { return shared_.read(); }
    [[nodiscard]] double uncertainty() const { return clock_.uncertainty(); }

private:
    [[nodiscard]] std::optional<ClockPair> read_both() const;
    [[nodiscard]] ClockPair require_both() const;
    [[nodiscard]] NicClock started() const;
    void share();

    ReadClock read_;
    std::uint64_t clock_hz_;
    NicClock clock_;
    Published<ClockMapping> shared_;
};

}  // namespace dutperf
