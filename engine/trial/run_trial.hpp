// SPDX-License-Identifier: Apache-2.0
// Runs one trial on open ports: assigns the roles to threads, starts all of them at one instant, and waits until they
// end.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "trial/collect.hpp"
#include "trial/test_bed.hpp"
#include "trial/trial.hpp"
#include "trial/trial_end.hpp"
#include "trial/trial_hosts.hpp"
#include "trial/trial_receivers.hpp"
#include "trial/trial_senders.hpp"
#include "trial/trial_stamps.hpp"

namespace dutperf {

// Counts of a direction while the trial runs.
struct SoFar {
    std::uint64_t sent = 0, received = 0;  // a frame that reached several receivers counts for each
    Ticks max_lateness = 0;                // largest lateness of a frame
    std::uint64_t tester_drops =
        0;  // by counters of ports and kernel that only grow; drops that are known only at the end are missing
    double nic_clock_uncertainty = 0;                    // in ticks, of the clocks that the direction uses
    std::map<std::string, std::uint64_t> received_at{};  // by port, if the path has several
};

class RunningTrial {
public:
    // Starts sending within milliseconds. The calling thread must also call look_after(): it moves away from the loops'
    // cores. Throws Error if the trial does not fit the ports.
    RunningTrial(const TestBed& bed, const TrialSpec& spec);
    ~RunningTrial();
    RunningTrial(const RunningTrial&) = delete;
    RunningTrial& operator=(const RunningTrial&) = delete;

    // Stops at once, without a drain.
    void stop();
    // Stops sending, then drains as at the end of a full trial, so that no frame arrives during the next one.
    void stop_sending();
    // Call this every few milliseconds while the trial runs.
    void look_after();
    // Whether the loops have ended, and the ports have had time to update their counters.
    [[nodiscard]] bool done();
    [[nodiscard]] double elapsed_s() const;
    // Counts so far. A frame that reached several receivers counts for each.
    [[nodiscard]] std::uint64_t sent(Direction direction) const;
    [[nodiscard]] std::uint64_t received(Direction direction) const;
    [[nodiscard]] std::uint64_t received_at(Direction direction, std::size_t port) const;
    // Current counters of the ports. Called for each progress event, which is often enough for 32-bit counters (see
    // Port::counters), many of which stop at their maximum.
    [[nodiscard]] std::vector<PortCounters> read_counters();
    // Counts so far, with these port counters.
    [[nodiscard]] SoFar so_far(Direction direction, const std::vector<PortCounters>& now) const;
    // Whether the tester's own links were down, by these counters.
    [[nodiscard]] bool was_down(std::size_t side, const PortCounters& now) const;
    [[nodiscard]] std::vector<bool> links_down(const std::vector<PortCounters>& now) const;
    [[nodiscard]] const TrialSpec& spec() const { return spec_; }
    [[nodiscard]] const TestBed& bed() const { return bed_; }

    // Waits for the loops to end and collects their counts.
    // `alive` is called meanwhile where it takes long.
    TrialResult finish(const FrameGroups::Alive& alive);

private:
    struct Loop;  // one thread with its roles

    void make_loops();
    void plan_sending();
    void start();
    void begin();
    [[nodiscard]] Ticks longest_lead() const;
    void loop_is_ready();
    void loop_is_done();
    [[nodiscard]] bool loops_have_ended() const { return running_.load() == 0; }
    [[nodiscard]] bool is_counted(Direction direction) const;
    [[nodiscard]] bool listens_on(Ticks now) const;
    [[nodiscard]] bool is_silent(Direction direction) const;
    [[nodiscard]] Ticks last_sent() const;

    TestBed bed_;
    TrialSpec spec_;
    TrialParts parts_;
    TrialStamps stamps_;
    TrialHosts hosts_;
    TrialConnections connections_;
    TrialDns dns_;
    TrialCapture capture_;
    TrialSenders senders_;
    TrialReceivers receivers_;
    std::vector<std::unique_ptr<Loop>> loops_;
    PerDirection<SendingTime> sending_times_;           // from the start of the trial
    std::uint64_t began_ns_ = 0;                        // when the first frame is due, since 1970
    double began_s_ = 0;                                // when the first frame is due, by CLOCK_MONOTONIC
    TrialEnd end_;                                      // of the loops
    std::atomic<int> sending_;                          // senders that still send
    pid_t caretaker_;                                   // the thread that prepares the trial and looks after it
    std::atomic<std::size_t> unready_{0}, running_{0};  // loops
    std::atomic<bool> go_{false}, stopped_{false};      // stopped_: before its end
    std::atomic<bool> drains_{true};                    // false: stopped without a drain
};

}  // namespace dutperf
