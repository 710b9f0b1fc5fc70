// SPDX-License-Identifier: Apache-2.0
// Converts a NIC's clock to the tester's ticks. Both clocks are read together at intervals while a trial runs, and the
// NIC's clock is taken as linear between readings. The uncertainty is measured, not assumed: it is the difference
// between each reading and its prediction.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "pace/due_after.hpp"
#include "platform/clock.hpp"
#include "port/offloads.hpp"
#include "trial/published.hpp"

namespace dutperf {

// Two clocks that are followed never disagree by more; a larger difference means that the NIC's clock was set.
inline constexpr double kMaxUncertaintyS = 100e-6;

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

// Follows one clock by readings.
class NicClock {
public:
    // Both readings give the rate; the further apart, the better. Their NIC times must differ. Later the rate spans at
    // least a second of readings, unless the clock is set: then only the rate of older readings is kept.
    NicClock(const ClockPair& first, const ClockPair& second, Ticks second_ticks);

    // Compares a reading with its prediction and continues the mapping from it.
    void follow(const ClockPair& now);
    // Continues from a reading and resets the uncertainty; a disagreement does not count.
    void begin(const ClockPair& now);

    [[nodiscard]] const ClockMapping& mapping() const { return mapping_; }
    [[nodiscard]] double max_uncertainty() const { return static_cast<double>(second_) * kMaxUncertaintyS; }
    [[nodiscard]] Ticks last() const { return mapping_.ticks; }

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

// Reads a clock at intervals and publishes the mapping: one thread calls follow(), any thread may call mapping().
class FollowedClock {
public:
    // Takes 100 ms. Throws Error "port_unavailable" for the field "offloads" if the clock does not advance or cannot be
    // read.
    FollowedClock(ReadClock read, std::uint64_t clock_hz);

    // At the start of a trial: reads the clock and resets the uncertainty.
    void begin();
    // To be called every few milliseconds; reads the clock every 20.
    void follow();
    // At the end of a trial: reads the clock once more.
    void end();

    // Never waits for the thread that calls follow().
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
