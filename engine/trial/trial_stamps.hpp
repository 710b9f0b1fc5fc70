// SPDX-License-Identifier: Apache-2.0
// Delays between the time stamps of the kernel or of cards, instead of the tester's loops (SO_TIMESTAMPING).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "trial/collect.hpp"

namespace dutperf {

class TrialStamps {
public:
    // Has kernel or cards stamp frames, if `spec` wants it. Where the trial may choose, `spec` has it stamped by the
    // loops if that is not possible. Throws Error if it is not, and the trial may not choose.
    TrialStamps(const TestBed& bed, TrialSpec& spec, TrialParts& parts);

    // Tries it with a frame. The MAC addresses of the DUT are known by then. Throws as the constructor does.
    void prove();
    // Call this every few milliseconds while the trial runs.
    void look_after();
    // The receivers took the frames; their delays follow from the stamps of both ports.
    void match();
    // Why the loops stamp the frames although kernel or cards were to do so where they can; empty: they do not.
    [[nodiscard]] const std::string& loop_stamps_because() const { return loop_stamps_because_; }

private:
    template <class Step>
    void unless_loops_stamp(const Step& step);
    void open();
    void prove_all();
    [[nodiscard]] bool may_share_queue() const;
    void stamp_by_card(Port& port);
    [[nodiscard]] StampedFrames stamped_by_cards() const;
    void read(std::chrono::milliseconds longest);
    void follow_clocks();
    void match_path(Direction direction, const std::vector<ClockRecord>& of_cards);

    const TestBed& bed_;
    TrialSpec& spec_;
    TrialParts& parts_;
    ClockInstant wall_clock_began_{};
    std::int64_t wall_clock_ahead_ns_ = 0, clock_step_ns_ = 0;  // of the stamps' clock: at first; the largest since
    std::string loop_stamps_because_;
};

}  // namespace dutperf
