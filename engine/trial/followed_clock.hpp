// SPDX-License-Identifier: Apache-2.0
// Clocks beside the tester's: a DPDK card's, or a PTP hardware clock. Such a clock is read together with the tester's
// at intervals. The readings have two uses. While a trial runs, ClockMapping converts times from the last reading on.
// After it, ClockRecord interpolates between all readings. Errors are measured, not assumed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pace/due_after.hpp"
#include "platform/clock.hpp"
#include "port/offloads.hpp"
#include "port/ptp_clock.hpp"
#include "trial/published.hpp"
#include "trial/stamps.hpp"

namespace dutperf {

// How such a clock is read.
struct ForeignClock {
    std::string name;
    std::function<std::optional<ClockPair>()> read;  // nothing: it was not read, which may happen now and then
    std::string field, advice;  // for errors: the request's member that needs it, and what to do without it
    bool is_recorded = false;   // whether all readings of a trial are kept, for its ClockRecord
};
// A DPDK card's, in its own units, for offloads.
ForeignClock dpdk_clock(std::string name, ReadClock read);
// A PTP hardware clock, in ns, for the stamps of cards.
ForeignClock ptp_clock(std::string name, PtpClock clock);

// Conversion between both clocks, near the last reading.
struct ClockMapping {
    Ticks ticks = 0;
    std::uint64_t nic = 0;
    double ticks_per_nic = 1;
    double uncertainty = 0;      // in ticks: the possible error of a conversion
    double max_uncertainty = 0;  // in ticks: the mapping is usable up to this

    [[nodiscard]] bool is_usable() const { return uncertainty <= max_uncertainty; }
    [[nodiscard]] Ticks ticks_of(std::uint64_t nic_time) const {
        const auto since = static_cast<double>(static_cast<std::int64_t>(nic_time - nic));
        return ticks + static_cast<Ticks>(whole(since * ticks_per_nic));
    }
    [[nodiscard]] std::uint64_t nic_at_or_after(Ticks at) const {
        const auto since = static_cast<double>(static_cast<std::int64_t>(at - ticks));
        return nic + static_cast<std::uint64_t>(whole(std::ceil(since / ticks_per_nic)));
    }

private:
    // Clamps values that do not fit.
    static std::int64_t whole(double value) {
        constexpr double kFits = 0x1p62;
        return std::llround(std::clamp(value, -kFits, kFits));
    }
};

// Continues a mapping from reading to reading. Its uncertainty is the difference between readings and their prediction.
class LiveMapping {
public:
    // Both readings give the rate; the further apart, the better. Their NIC times must differ. Later the rate spans at
    // least a second of readings, unless the clock is set: then only the rate of older readings is kept.
    LiveMapping(const ClockPair& first, const ClockPair& second, Ticks second_ticks);

    // Compares a reading with its prediction and continues the mapping from it.
    void follow(const ClockPair& now);
    // Continues from a reading and resets the uncertainty; a disagreement does not count.
    void begin(const ClockPair& now);

    [[nodiscard]] const ClockMapping& mapping() const { return mapping_; }
    [[nodiscard]] double max_uncertainty() const;

    // In ticks: the largest disagreement including half the width of its reading, plus one tick of the NIC.
    [[nodiscard]] double uncertainty() const { return worst_ + mapping_.ticks_per_nic; }
    // The clock could not be read for `ticks`.
    void raise_uncertainty(Ticks ticks) { worst_ = std::max(worst_, static_cast<double>(ticks)); }

private:
    void continue_from(const ClockPair& now, double disagreement);
    [[nodiscard]] double disagreement(const ClockPair& now) const;

    Ticks second_;
    ClockPair older_, newer_;  // the rate is measured since `older_`
    ClockMapping mapping_;
    double worst_ = 0;
};

// How a clock with ns ran against the tester's.
class ClockRecord {
public:
    // At least two readings, in their order. `end`: until when times are asked for.
    ClockRecord(std::vector<ClockPair> pairs, Ticks end, std::uint64_t clock_hz);

    // A time of the card's clock in ns after `base` by the tester's.
    [[nodiscard]] std::int64_t own_ns(std::int64_t card_ns, Ticks base) const;
    // What the card's clock says at a time of the tester's, by its rate since the first reading.
    [[nodiscard]] std::int64_t card_ns(Ticks at) const;

    [[nodiscard]] Ticks begin() const { return pairs_.front().ticks; }
    // ns of the card's clock in a ns of the tester's.
    [[nodiscard]] double rate() const { return rate_; }
    // Largest error of own_ns: half the width of a reading, and what the clock left its rate beyond that; after the
    // last reading, what its rate may be wrong.
    [[nodiscard]] double error_ns() const { return error_ns_; }
    // The same of the time between two of its times, at most so far apart.
    [[nodiscard]] double error_between_ns(double apart_ns) const {
        return std::min(2 * error_ns_, apart_ns * worst_rate_error_);
    }
    // The largest jump between two readings that neither their width nor an oscillator explains, in ns; 0: none.
    [[nodiscard]] double step_ns() const { return step_ns_; }
    // The longest time without a reading, in ns.
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
    double rate_ = 1, unsure_rate_ = 0, worst_rate_error_ = 0;
    double error_ns_ = 0, step_ns_ = 0, unread_ns_ = 0;
};

// How the cards' clocks of a path's two ends compare, by their names. Ports of one card may have the same clock, whose
// error follows from how long delays are (ClockRecord::error_between_ns).
Clocks compared(const std::string& sending, const ClockRecord& of_sending, const std::string& receiving,
                const ClockRecord& of_receiving);

// Reads a clock at intervals: one thread calls what reads it, any thread may call mapping().
class FollowedClock {
public:
    // Takes 0.1 s, or 0.2. Throws Error "port_unavailable" if the clock does not advance or cannot be read.
    FollowedClock(ForeignClock clock, std::uint64_t clock_hz);

    [[nodiscard]] const std::string& name() const { return clock_.name; }
    // At the start of a trial, for a clock that is followed over several: reads it and forgets what was before. Throws
    // as the constructor does.
    void begin();
    // To be called every few milliseconds; reads the clock every 20.
    void follow();
    // At the end of a trial: reads the clock once more.
    void end();

    // Never waits for the thread that calls follow().
    [[nodiscard]] ClockMapping mapping() const { return shared_.read(); }
    [[nodiscard]] double uncertainty() const { return live_.uncertainty(); }
    // After a trial, instead of end(). Takes 0.1 s, in which the clock is read as often as at first.
    [[nodiscard]] ClockRecord record();

private:
    [[noreturn]] void refuse(const std::string& why) const;
    bool read();
    void read_repeatedly();
    [[nodiscard]] LiveMapping started();
    void share();

    ForeignClock clock_;
    std::uint64_t clock_hz_;
    Ticks last_ = 0;                // when it was read, or could not be
    std::vector<ClockPair> pairs_;  // since the trial began
    LiveMapping live_;
    Published<ClockMapping> shared_;
};

}  // namespace dutperf
