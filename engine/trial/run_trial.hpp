// SPDX-License-Identifier: Apache-2.0
// Runs one trial on open ports: assigns the roles to threads, starts all of them at one instant, and waits until they
// end.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trial/collect.hpp"
#include "trial/test_bed.hpp"
#include "trial/trial.hpp"
#include "trial/trial_end.hpp"

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
    // Current counters of the ports.
    [[nodiscard]] std::vector<PortCounters> read_counters();
    // Counts so far, with these port counters.
    [[nodiscard]] SoFar so_far(Direction direction, const std::vector<PortCounters>& now) const;
    // Whether the tester's own links were down, by these counters.
    [[nodiscard]] bool was_down(std::size_t side, const PortCounters& now) const;
    [[nodiscard]] std::vector<bool> links_down(const std::vector<PortCounters>& now) const;
    [[nodiscard]] const TrialSpec& spec() const { return spec_; }
    [[nodiscard]] const TestBed& bed() const { return bed_; }

    // Waits for the loops to end and collects their counts.
    TrialResult finish();

private:
    struct Loop;  // one thread with its roles

    void answer_for_streams();
    void announce_ports();
    void make_senders(Direction direction);
    void make_receivers(std::size_t port);
    void prepare_to_receive(Direction direction);
    [[nodiscard]] Expected expected(Direction direction, std::size_t at, std::uint16_t queue) const;
    [[nodiscard]] Arriving arriving(Direction direction, std::size_t at) const;
    [[nodiscard]] AddressRanges sources_of_initiator() const;
    [[nodiscard]] bool has_several_receivers(Direction direction) const;
    [[nodiscard]] std::unique_ptr<AdditionalSender> make_additional(Direction direction, const Share& share) const;
    [[nodiscard]] std::vector<Marks> marks(std::size_t port) const;
    [[nodiscard]] std::optional<Direction> initiator_into(std::size_t port) const;
    void prepare_connections();
    void choose_entries(const StateTable& table);
    [[nodiscard]] ConnectionChoice connection_choice(Direction direction) const;
    [[nodiscard]] ConnectionChoice responder_choice(std::uint64_t seed) const;
    [[nodiscard]] bool replies(Direction direction) const;
    void watch_connections(Direction direction, Expected& expected) const;
    FramePool* make_pool_of(Direction direction, const FrameSpec& frame, bool foreground, bool ports_of_stream);
    FrameSourceParts frame_parts(Direction direction);
    [[nodiscard]] const StateTable& table_of_replies(Direction direction) const;
    [[nodiscard]] std::optional<ConnectionParts> connection_parts(Direction direction) const;
    ResponderParts responder_parts(Direction direction);
    DescribedParts described_parts(Direction direction);
    ReplayParts replay_parts(Direction direction);
    void turn_back_questions();
    QuestionParts question_parts(Direction direction);
    [[nodiscard]] std::unique_ptr<QueryTimes> make_query_times(Direction direction) const;
    [[nodiscard]] std::optional<AnswerWatch> answers_into(std::size_t port) const;
    [[nodiscard]] std::optional<ConnectionLearner> learner_at(std::size_t port) const;
    void make_server(std::size_t port);
    [[nodiscard]] std::size_t far_port(Direction direction) const;
    void note_lengths(Direction direction);
    void make_loops();
    void plan_sending();
    void start();
    void begin();
    void loop_is_ready();
    void loop_is_done();
    [[nodiscard]] bool loops_have_ended() const { return running_.load() == 0; }
    [[nodiscard]] bool is_counted(Direction direction) const;
    [[nodiscard]] bool listens_on(Ticks now) const;
    [[nodiscard]] bool is_silent(Direction direction) const;
    [[nodiscard]] Ticks last_sent() const;
    void read_counters_in_time();
    template <class Step>
    void unless_loops_stamp(const Step& step);
    void open_stamp_logs();
    [[nodiscard]] bool may_share_queue() const;
    void stamp_by_card(Port& port);
    [[nodiscard]] StampedFrames stamped_by_cards() const;
    [[nodiscard]] std::optional<PtpMessage> ptp_message(Direction direction) const;
    void prove_stamps();
    void read_stamps(std::chrono::milliseconds longest);
    void follow_stamp_clocks();
    void match_all_stamps();
    void match_stamps_of(Direction direction, const std::vector<ClockRecord>& of_cards);
    void limit_rates();
    [[nodiscard]] CaptureBuffer* make_capture();
    [[nodiscard]] CaptureWritten write_captured();
    void add_lost(Direction direction, std::vector<std::vector<std::uint8_t>>& made,
                  std::vector<CapturedFrame>& frames);
    [[nodiscard]] NicSending nic_sending(Direction direction) const;
    void require_fill_possible() const;
    void require_nobody(Direction direction) const;
    [[nodiscard]] bool shares_port(Direction direction) const;
    [[nodiscard]] std::unique_ptr<LineFiller> make_line_filler(Direction direction) const;
    // In the tags of the trial's frames.
    [[nodiscard]] TrialMark trial_mark() const { return mark_of_trial(bed_.run, spec_.number); }
    [[nodiscard]] Mac dut_mac(Direction direction, bool ipv6, std::uint16_t vlan = 0, std::size_t host = 0) const;

    TestBed bed_;
    TrialSpec spec_;
    std::vector<std::unique_ptr<FramePool>> frame_pools_;
    PerDirection<std::unique_ptr<DescribedFrames>> described_;
    // of a stream of DNS queries
    dns::TrialQuestions questions_;
    std::unique_ptr<dns::QueryFrame> query_frame_;
    std::unique_ptr<ImagePool> query_pool_;
    std::unique_ptr<QueryLog> query_log_;
    TrialParts parts_;
    std::vector<std::unique_ptr<Loop>> loops_;
    PerDirection<SendingTime> sending_times_;               // from the start of the trial
    std::vector<bool> answered_;                            // of each port
    std::vector<NeighbourEvidence> conflicts_;              // of each port, before the trial
    std::uint64_t sent_at_reading_ = 0;                     // frames of all paths, at the last reading of the counters
    std::vector<std::unique_ptr<CaptureBuffer>> captures_;  // of each receiver, in the order of ports and queues
    PerDirection<std::optional<LostNumbers>> lost_;
    std::vector<std::uint32_t> lost_connections_;  // that lost frames in the trial before
    std::vector<std::uint32_t> entries_;           // connections of the Responder's frames; empty: all
    std::uint64_t began_ns_ = 0;                   // when the first frame is due, since 1970
    ClockInstant wall_clock_began_{};
    std::int64_t wall_clock_ahead_ns_ = 0, clock_step_ns_ = 0;  // of the stamps' clock: at first; the largest since
    std::string loop_stamps_because_;
    double began_s_ = 0;                                // when the first frame is due, by CLOCK_MONOTONIC
    TrialEnd end_;                                      // of the loops
    std::atomic<int> sending_;                          // senders that still send
    pid_t caretaker_;                                   // the thread that prepares the trial and looks after it
    std::atomic<std::size_t> unready_{0}, running_{0};  // loops
    std::atomic<bool> go_{false}, stopped_{false};      // stopped_: before its end
    std::atomic<bool> drains_{true};                    // false: stopped without a drain
};

}  // namespace dutperf
