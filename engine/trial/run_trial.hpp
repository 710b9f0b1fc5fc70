// SPDX-License-Identifier: Apache-2.0
// Runs one trial on opened ports: places the roles on threads, starts all of them at one instant, and waits for their
// end.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trial/collect.hpp"
#include "trial/test_bed.hpp"
#include "trial/trial.hpp"
#include "trial/trial_end.hpp"

namespace dutperf {

// Of a direction, while the trial runs.
struct SoFar {
    std::uint64_t sent = 0, received = 0;  // a frame that came to several receivers counts with each
    Ticks max_lateness = 0;                // most that a frame was late
    std::uint64_t tester_drops =
        0;  // by the counters of ports and kernel that only grow: what is known only at the end is missing
    double nic_clock_uncertainty = 0;  // in ticks, of the clocks that have a part in the direction
};

class RunningTrial {
public:
    // Starts sending within milliseconds. The calling thread is the one that is to look after the trial: it leaves the
    // loops' cores to them. Throws Error where the trial does not fit the ports.
    RunningTrial(const TestBed& bed, const TrialSpec& spec);
    ~RunningTrial();
    RunningTrial(const RunningTrial&) = delete;
    RunningTrial& operator=(const RunningTrial&) = delete;

    // At once, without a drain.
    void stop();
    // Nothing more is sent; what is under way is waited for as at the end of a whole trial, so that it does not come
    // into the next one.
    void stop_sending();
    // To be called every few milliseconds while the trial runs.
    void look_after();
    // Whether the loops have ended, and the ports have had time to count what they did.
    [[nodiscard]] bool done();
    [[nodiscard]] double elapsed_s() const;
    // By now. A frame that came to several receivers counts with each.
    [[nodiscard]] std::uint64_t sent(Direction direction) const;
    [[nodiscard]] std::uint64_t received(Direction direction) const;
    // Of the ports, by now: left, right.
    [[nodiscard]] std::array<PortCounters, 2> read_counters();
    // ... with these counters.
    [[nodiscard]] SoFar so_far(Direction direction, const std::array<PortCounters, 2>& now) const;
    // Whether the tester's own links were down, by these counters: left, right.
    [[nodiscard]] std::array<bool, 2> links_down(const std::array<PortCounters, 2>& now) const;
    [[nodiscard]] const TrialSpec& spec() const { return spec_; }

    // Waits for the loops to end and gathers their counts.
    TrialResult finish();

private:
    struct Loop;  // one thread with its roles

    void make_senders(Direction direction);
    void make_receivers(Direction direction);
    FrameSourceParts frame_parts(Direction direction);
    void make_loops();
    void start();
    void begin();
    void loop_is_ready();
    void loop_is_done();
    [[nodiscard]] bool loops_have_ended() const { return running_.load() == 0; }
    [[nodiscard]] bool is_counted(Direction direction) const;
    [[nodiscard]] Ticks last_sent() const;
    void read_counters_in_time();
    void limit_rates();
    [[nodiscard]] NicSending nic_sending(Direction direction) const;

    TestBed bed_;
    TrialSpec spec_;
    std::vector<std::unique_ptr<FramePool>> frame_pools_;
    TrialParts parts_;
    std::vector<std::unique_ptr<Loop>> loops_;
    std::array<bool, 2> answered_{};
    std::array<std::uint64_t, 2> sent_at_reading_{};    // frames that a port had sent when its counters were read last
    TrialEnd end_;                                      // of the loops
    std::atomic<int> sending_;                          // senders that still send
    pid_t caretaker_;                                   // the thread that prepares the trial and looks after it
    std::atomic<std::size_t> unready_{0}, running_{0};  // loops
    std::atomic<bool> go_{false}, stopped_{false};      // the latter: before its time
    std::atomic<bool> drains_{true};                    // ... and it does without the drain
};

}  // namespace dutperf
