// SPDX-License-Identifier: Apache-2.0
// Runs one trial on opened ports: places the roles on threads, starts all of them at one instant, and gathers what they counted.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "port/station.hpp"
#include "trial/cores.hpp"
#include "trial/joint.hpp"
#include "trial/receiver.hpp"
#include "trial/transmitter.hpp"
#include "trial/trial.hpp"

namespace dutperf {

// Everything that stays open between trials. Index 0 is left, 1 is right.
struct TestBed {
    std::array<Port*, 2> ports;
    std::array<Station*, 2> stations;
    std::array<rte_mempool*, 4> frame_pools;  // forward foreground and background, reverse foreground and background
    rte_mempool* control_pool;
    std::array<rte_ring*, 2> control_rings;  // answers that the port's senders are to send
    std::uint16_t queues;                    // of each port, each way; each direction has so many senders and receivers
    RoleCores cores;
    OtherCores other_cores;
    std::uint64_t clock_hz;
    Helps hardware;                        // that the ports are used with
    std::array<FollowedClock*, 2> clocks;  // of the ports; nullptr where none is needed
};

class RunningTrial {
public:
    // Starts sending within milliseconds. The calling thread is the one that is to look after the trial: it leaves the loops' cores to them. Throws Error
    // where the trial does not fit the ports.
    RunningTrial(const TestBed& bed, const TrialSpec& spec);
    ~RunningTrial();
    RunningTrial(const RunningTrial&) = delete;
    RunningTrial& operator=(const RunningTrial&) = delete;

    void stop();
    // To be called every few milliseconds while the trial runs.
    void follow_clocks();
    [[nodiscard]] bool done() const;
    [[nodiscard]] double elapsed_s() const;
    // By now. A frame that came to several receivers counts with each.
    [[nodiscard]] std::uint64_t sent(Direction direction) const;
    [[nodiscard]] std::uint64_t received(Direction direction) const;
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
    DirectionResult gather(Direction direction) const;
    void gather_sent(Direction direction, DirectionResult& into) const;
    void gather_received(Direction direction, DirectionResult& into) const;
    void limit_rates();
    [[nodiscard]] NicSending nic_sending(Direction direction) const;
    void gather_departures(Direction direction, DirectionResult& into) const;
    void gather_stamps(Direction direction, DirectionResult& into) const;
    void gather_away(Direction direction, DirectionResult& into) const;
    void gather_port_counters(Direction direction, DirectionResult& into) const;
    [[nodiscard]] std::uint64_t unaccounted(Direction direction, const DirectionResult& result) const;
    [[nodiscard]] std::uint64_t kept_waiting(std::size_t side, std::uint64_t handed_over, std::uint64_t lost) const;
    [[nodiscard]] SentFrames sent_frames(Direction direction) const;

    TestBed bed_;
    TrialSpec spec_;
    std::vector<std::unique_ptr<FramePool>> frame_pools_;
    PerDirection<std::unique_ptr<DelayFile>> delay_files_;
    PerDirection<std::vector<std::unique_ptr<Sender>>> senders_;  // in the order of their queues
    PerDirection<std::vector<std::unique_ptr<Receiver>>> receivers_;
    std::vector<std::unique_ptr<Loop>> loops_;
    std::array<PortCounters, 2> before_{}, after_{};
    std::array<bool, 2> answered_{};
    PerDirection<std::uint32_t> rate_limits_{};  // Mbit/s of each queue; 0: none
    Ticks start_ = 0;
    std::atomic<Ticks> end_;                            // the loops end when it has passed; unknown until all senders have sent
    std::atomic<int> sending_;                          // senders that still send
    pid_t caretaker_;                                   // the thread that prepares the trial and looks after it
    std::atomic<std::size_t> unready_{0}, running_{0};  // loops
    std::atomic<bool> go_{false}, stopped_{false};
};

}  // namespace dutperf
