// SPDX-License-Identifier: Apache-2.0
// The body of the sending hot loop. Each turn sends the frames that are due, at most a burst, in one call: a slow loop
// catches up in bursts, a fast one sends frame by frame. With a LineFiller each turn hands over what comes next on the
// line instead, ahead of its time.
#pragma once

#include <rte_ring.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "measure/histogram.hpp"
#include "measure/late_bursts.hpp"
#include "measure/tester_time.hpp"
#include "pace/full_queue.hpp"
#include "pace/schedule.hpp"
#include "platform/clock.hpp"
#include "port/burst.hpp"
#include "port/stamp_socket.hpp"
#include "trial/additional.hpp"
#include "trial/described_source.hpp"
#include "trial/frame_source.hpp"
#include "trial/line_filler.hpp"
#include "trial/ptp_message.hpp"
#include "trial/question_source.hpp"
#include "trial/replay_source.hpp"
#include "trial/responder_source.hpp"

namespace dutperf {

// The counts of a sender. Only its core writes them; other threads may read the atomic ones for progress.
struct SenderCounts {
    std::atomic<std::uint64_t> sent{0};
    std::atomic<Ticks> max_lateness{0};  // of a frame, in ticks
    std::uint64_t not_accepted = 0;
    std::uint64_t control_sent = 0;  // ARP and NDP replies
    std::uint64_t input_drops = 0;   // of `sent`: frames lost at the DUT's full input queue
    Ticks last_call_end = 0;
    Histogram lateness;
    LateBursts late_bursts;
    std::vector<TesterTime> tester_time = std::vector<TesterTime>(1);  // in the delays of each part of the sending time
};

// When a sender sends: from `begin`, within the trial's sending time from `start` to `end`. After `deadline` it stops;
// unsent frames are then the tester's fault.
struct SendingTime {
    Ticks start, begin, end, deadline;
    Ticks burst_threshold;  // lateness from which a frame begins a late burst
    Ticks late;             // ... from which it counts as late

    // The same so much later.
    [[nodiscard]] SendingTime later(Ticks by) const {
        return {.start = start + by,
                .begin = begin + by,
                .end = end + by,
                .deadline = deadline + by,
                .burst_threshold = burst_threshold,
                .late = late};
    }
};

// What a sender is made of, beside its schedule and its source of frames.
struct SenderParts {
    PortQueue queue{};
    rte_ring* control = nullptr;  // ARP and NDP replies from the receivers of this port; one of its senders sends each
    std::uint64_t delay_parts = 1;  // parts of the trial's sending time that have delays of their own
    // The port writes to the DUT's input queue itself: frames that do not fit are lost there. 0: it does not.
    std::uint64_t into_dut_hz = 0;
    std::unique_ptr<AdditionalSender> additional{};  // sends the direction's additional frames
    std::unique_ptr<LineFiller> line{};              // fills the line: the clock of the schedule is then the line's
    StampSocket* stamps = nullptr;                   // by which frames with a stamp leave...
    std::optional<PtpMessage> ptp{};                 // ... or a message in place of each
};

// A sender of one direction or of a share of it. It costs one virtual call a turn, none a frame.
class Sender {
public:
    explicit Sender(SenderParts parts)
        : queue_(parts.queue),
          control_(parts.control),
          additional_(std::move(parts.additional)),
          line_(std::move(parts.line)),
          stamps_(parts.stamps),
          ptp_(std::move(parts.ptp)) {
        counts_.tester_time.resize(std::max<std::uint64_t>(1, parts.delay_parts));
        if (parts.into_dut_hz != 0) full_queue_.use(parts.into_dut_hz);
    }
    virtual ~Sender() { rte_pktmbuf_free(reply_); }
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;

    // Sends the frames that are due at `now`. Returns the time at the end if it read the clock, otherwise 0. Reading
    // the clock costs as much as sending two frames.
    virtual Ticks turn(Ticks now) = 0;

    // When it needs the next turn, if not in each: its next frame is due, or it is to end. 0: in each.
    [[nodiscard]] virtual Ticks next_turn() const { return 0; }

    virtual void start(const SendingTime& time) {
        counts_.late_bursts.start(time.start, time.end, time.burst_threshold, time.late);
        start_ = time.start;
        duration_ = time.end - time.start;
        if (additional_ && !line_) additional_->start(time.begin);
    }
    // Histograms that the trial writes.
    [[nodiscard]] virtual std::size_t histograms() const { return line_ ? 2 : 1; }
    // Of the lateness, see Blocks::take_whole.
    void take_whole() { counts_.lateness.take_whole(); }
    [[nodiscard]] const AdditionalSender* additional() const { return additional_.get(); }
    [[nodiscard]] const LineFiller* line() const { return line_.get(); }
    void stop() { stopped_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }
    [[nodiscard]] const SenderCounts& counts() const { return counts_; }
    [[nodiscard]] const rte_ring* control() const { return control_; }
    // Frames sent with a time stamp. Valid after the trial.
    [[nodiscard]] virtual std::uint64_t stamped() const { return 0; }
    // Counts of timed sending (send_at). Valid after the trial.
    [[nodiscard]] virtual DepartureCounts departures() const { return {}; }
    // Makes the sender's frame j a second time, without its time stamp; nullptr: no buffer is free. After the trial,
    // when nothing else is asked any more.
    virtual rte_mbuf* make_again(std::uint64_t /*j*/) { return nullptr; }

protected:
    // Sends the replies that wait. One that finds no room is tried again: the DUT drops frames until it has it.
    void send_control();
    [[nodiscard]] bool has_control() const { return rte_ring_empty(control_) == 0 || reply_ != nullptr; }

    Ticks record(std::uint32_t accepted, Ticks oldest) {
        const Ticks end = now_ticks();
        counts_.lateness.record(end - oldest, accepted);
        if (end - oldest > counts_.max_lateness.load(std::memory_order_relaxed)) [[unlikely]]
            counts_.max_lateness.store(end - oldest, std::memory_order_relaxed);
        counts_.late_bursts.record(oldest, end, accepted);
        if (stamped_in_hand_ != 0 && pending_ == 0) record_tester_time(oldest, end);
        counts_.last_call_end = end;
        counts_.sent.store(counts_.sent.load(std::memory_order_relaxed) + accepted, std::memory_order_relaxed);
        return end;
    }

    // Hands over the first of these frames, each by its way. Returns how many.
    std::uint32_t transmit(rte_mbuf** frames, std::uint32_t count) {
        if (stamps_ != nullptr) [[unlikely]]
            return transmit_marked(frames, count);
        return transmit_burst(queue_, frames, static_cast<std::uint16_t>(count));
    }
    std::uint32_t transmit_marked(rte_mbuf** frames, std::uint32_t count);
    // `oldest`: when the first frame that was not accepted yet was due. Both return the time at the end, or 0 if no
    // frame was accepted or dropped.
    Ticks hand_over(std::uint32_t count, Ticks oldest);
    Ticks retry(Ticks oldest);
    // The stamped frames in hand have left by `end`. Those of a late burst may have waited in the DUT behind each
    // other, and as many after them behind the burst.
    void record_tester_time(Ticks oldest, Ticks end);
    // Hands over the rest of a burst that was laid out for the line. Returns the time at the end.
    Ticks hand_over_line();
    void finish();
    // Whether a frame leaves by the socket that stamps it.
    static void mark_for_stamp(rte_mbuf& frame, bool stamped) {
        frame.ol_flags =
            stamped ? frame.ol_flags | RTE_MBUF_F_TX_IEEE1588_TMST : frame.ol_flags & ~RTE_MBUF_F_TX_IEEE1588_TMST;
    }

    PortQueue queue_;
    rte_ring* control_;
    rte_mbuf* reply_ = nullptr;  // of the ring, in hand
    std::atomic<bool> stopped_{false}, done_{false};
    SenderCounts counts_;
    FullQueue full_queue_;
    std::unique_ptr<AdditionalSender> additional_;
    std::unique_ptr<LineFiller> line_;
    StampSocket* stamps_ = nullptr;
    std::optional<PtpMessage> ptp_;
    std::uint32_t pending_ = 0, pending_from_ = 0;  // frames in burst_ that the driver did not accept
    std::uint64_t stamped_in_hand_ = 0;             // frames in burst_ with a stamp
    Ticks stamp_ = 0;                               // of these; 0: they leave at their stamps, or get others
    Ticks start_ = 0, duration_ = 1;
    std::array<rte_mbuf*, kMaxBurst> burst_{};
};

// `Source` makes the frames: a FrameSource, a DescribedSource, a QuestionSource, a ReplaySource or a
// ResponderSource.
template <Schedule S, class Source>
class Transmitter final : public Sender {
public:
    Transmitter(SenderParts sender, const S& schedule, const typename Source::Parts& parts)
        : Sender(std::move(sender)), schedule_(schedule), source_(parts), departures_(parts.nic) {}

    void start(const SendingTime& time) override {
        Sender::start(time);
        schedule_.start(line_ ? line_->start(time.begin) : time.begin);
        deadline_ = time.deadline;
    }

    Ticks turn(Ticks now) override {
        const bool done = done_.load(std::memory_order_relaxed);
        if (has_control() && (done || !line_)) [[unlikely]]
            send_control();
        if (done) return 0;
        const Ticks end = line_ ? send_next(now) : send_due(now);
        if ((schedule_.finished() && pending_ == 0 && is_last_sent()) || now > deadline_ ||
            stopped_.load(std::memory_order_relaxed)) [[unlikely]]
            finish();
        return end;
    }

    // Where the DUT's input queue is the port's own, the time since the last turn tells a stall.
    [[nodiscard]] Ticks next_turn() const override {
        if (pending_ != 0 || reply_ != nullptr || additional_ || line_ || full_queue_.is_used() || schedule_.finished())
            return 0;
        return std::min(schedule_.next_due() - departures_.lead(), deadline_ + 1);
    }

    [[nodiscard]] std::uint64_t stamped() const override { return source_.stamped(); }
    [[nodiscard]] DepartureCounts departures() const override { return departures_.counts(); }
    rte_mbuf* make_again(std::uint64_t j) override {
        rte_mbuf* frame = nullptr;
        return source_.make(j, 1, 0, &frame) ? frame : nullptr;
    }

private:
    [[nodiscard]] bool is_last_sent() const {
        return (!additional_ || additional_->finished()) && (!line_ || line_->waiting() == 0);
    }

    // Sends the frames that are due.
    Ticks send_due(Ticks now) {
        full_queue_.turn(now);
        if (additional_ && pending_ == 0) [[unlikely]]
            additional_->turn(queue_, now, schedule_.number());
        Ticks end = 0;
        if (pending_ != 0) [[unlikely]]
            end = retry(std::min(schedule_.due_of(schedule_.number() - pending_), now));
        const std::uint32_t count = pending_ != 0 ? 0 : schedule_.due(now + departures_.lead());
        if (count != 0) end = send(count, now);
        return end;
    }

    // Sends what comes next on the line.
    Ticks send_next(Ticks now) {
        if (now < line_->begins()) return 0;
        if (pending_ == 0) lay_out();
        return pending_ != 0 ? hand_over_line() : 0;
    }

    void lay_out() {
        line_->begin();
        while (!line_->is_full()) {
            if (line_->place_reply(control_, burst_.data())) [[unlikely]]
                continue;
            const bool ends = line_->waiting() == 0 && !make_next();
            if (ends && !(schedule_.finished() && line_->has_additional())) break;
            if (!line_->place_next(schedule_.number() - line_->waiting(), burst_.data())) {
                ++counts_.not_accepted;  // the driver holds all buffers
                break;
            }
        }
        pending_ = line_->count();
        pending_from_ = 0;
    }

    // Makes test frames before they have a place: their lengths decide on the places.
    bool make_next() {
        const std::uint32_t count = schedule_.due(std::numeric_limits<Ticks>::max());
        if (count == 0) return false;
        if (!source_.make(schedule_.number(), count, 0, line_->made())) {
            ++counts_.not_accepted;
            return false;
        }
        for (std::uint32_t i = 0; i < count; ++i) line_->set_due(i, schedule_.due_of(schedule_.number() + i));
        schedule_.advance(count);
        line_->set_made(count);
        return true;
    }

    Ticks send(std::uint32_t count, Ticks now) {
        const Ticks oldest = std::min(schedule_.next_due(), now);  // a frame handed over ahead of time is not late
        const Ticks stamp = Source::kStamps ? now_ticks() : 0;
        const Ticks* times = departures_.plan(schedule_, count, std::max(now, stamp));
        const std::uint64_t stamped = Source::kStamps ? source_.stamped() : 0;
        if (!source_.make(schedule_.number(), count, stamp, burst_.data(), times)) {
            ++counts_.not_accepted;  // the driver holds all buffers
            return 0;
        }
        if (times != nullptr) [[unlikely]]
            departures_.write(burst_.data(), count);
        schedule_.advance(count);
        if constexpr (Source::kStamps) {
            stamped_in_hand_ += source_.stamped() - stamped;
            stamp_ = times == nullptr && stamps_ == nullptr ? stamp : 0;
            if (stamps_ != nullptr) [[unlikely]]
                mark(count);
        }
        return hand_over(count, oldest);
    }

    // Not for queries, which have no tag.
    void mark(std::uint32_t count) {
        if constexpr (requires { source_.has_stamp(0); }) {
            for (std::uint32_t i = 0; i < count; ++i) mark_for_stamp(*burst_[i], source_.has_stamp(i));
        }
    }

    S schedule_;
    Ticks deadline_ = 0;
    Source source_;
    Departures departures_;
};

// A transmitter composed for the stream.
std::unique_ptr<Sender> make_transmitter(const StreamSpec& stream, bool stamps, SenderParts sender,
                                         const AnySchedule& schedule, const FrameSourceParts& parts);

std::unique_ptr<Sender> make_transmitter(bool stamps, SenderParts sender, const AnySchedule& schedule,
                                         const DescribedParts& parts);

std::unique_ptr<Sender> make_transmitter(bool stamps, SenderParts sender, const AnySchedule& schedule,
                                         const ResponderParts& parts);
std::unique_ptr<Sender> make_transmitter(bool stamps, SenderParts sender, const AnySchedule& schedule,
                                         const ReplayParts& parts);
std::unique_ptr<Sender> make_transmitter(bool stamps, SenderParts sender, const AnySchedule& schedule,
                                         const QuestionParts& parts);

// For a port without a stream, which must still answer ARP and NDP.
std::unique_ptr<Sender> make_idle_sender(PortQueue queue, rte_ring* control);

inline Ticks Sender::hand_over(std::uint32_t count, Ticks oldest) {
    const std::uint32_t accepted = transmit(burst_.data(), count);
    if (accepted != count) [[unlikely]] {
        counts_.not_accepted += count - accepted;
        pending_ = count - accepted;
        pending_from_ = accepted;
    }
    return accepted != 0 ? record(accepted, oldest) : 0;
}

}  // namespace dutperf
