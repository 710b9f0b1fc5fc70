// SPDX-License-Identifier: Apache-2.0
#include "trial/transmitter.hpp"

namespace dutperf {

namespace {

class IdleSender final : public Sender {
public:
    IdleSender(PortQueue queue, rte_ring* control) : Sender({.queue = queue, .control = control}) { done_.store(true); }

    Ticks turn(Ticks /*now*/) override {
        if (has_control()) send_control();
        return 0;
    }
};

template <Schedule S>
struct Making {
    SenderParts& sender;
    const S& schedule;
    const FrameSourceParts& parts;
};

// Turns run-time options into template arguments, one after the other.
template <bool... Chosen, Schedule S>
std::unique_ptr<Sender> choose(const Making<S>& making) {
    return std::make_unique<Transmitter<S, FrameSource<Varies<Chosen...>>>>(std::move(making.sender), making.schedule,
                                                                            making.parts);
}
template <bool... Chosen, Schedule S, class... Rest>
std::unique_ptr<Sender> choose(const Making<S>& making, bool next, Rest... rest) {
    return next ? choose<Chosen..., true>(making, rest...) : choose<Chosen..., false>(making, rest...);
}

}  // namespace

void Sender::send_control() {
    for (;;) {
        void* next = nullptr;
        if (reply_ == nullptr && rte_ring_dequeue(control_, &next) == 0) reply_ = static_cast<rte_mbuf*>(next);
        if (reply_ == nullptr || transmit_burst(queue_, &reply_, 1) == 0) return;
        reply_ = nullptr;
        ++counts_.control_sent;
    }
}

std::uint32_t Sender::transmit_marked(rte_mbuf** frames, std::uint32_t count) {
    const auto is_marked = [](const rte_mbuf* frame) { return (frame->ol_flags & RTE_MBUF_F_TX_IEEE1588_TMST) != 0; };
    std::uint32_t done = 0;
    while (done < count) {
        rte_mbuf* first = frames[done];
        if (is_marked(first)) {
            const std::span frame(rte_pktmbuf_mtod(first, const std::uint8_t*), rte_pktmbuf_data_len(first));
            const std::span sent = ptp_ ? ptp_->in_place_of(frame) : frame;
            if (!stamps_->send(sent.data(), sent.size())) break;
            rte_pktmbuf_free(first);
            ++done;
            continue;
        }
        const auto end = static_cast<std::uint32_t>(std::find_if(frames + done, frames + count, is_marked) - frames);
        done += transmit_burst(queue_, frames + done, static_cast<std::uint16_t>(end - done));
        if (done != end) break;
    }
    return done;
}

Ticks Sender::retry(Ticks oldest) {
    const std::uint32_t accepted = transmit(&burst_[pending_from_], pending_);
    pending_ -= accepted;
    pending_from_ += accepted;
    const bool lost = pending_ != 0 && full_queue_.is_dut_loss(oldest, now_ticks());
    const std::uint32_t gone = accepted + (lost ? pending_ : 0);
    if (lost) {
        rte_pktmbuf_free_bulk(&burst_[pending_from_], pending_);
        counts_.input_drops += pending_;
        pending_ = 0;
    }
    return gone != 0 ? record(gone, oldest) : 0;
}

void Sender::record_tester_time(Ticks oldest, Ticks end) {
    const bool late = counts_.late_bursts.in_burst();
    const Ticks own = std::max(late ? end - oldest : 0, stamp_ != 0 ? end - stamp_ : 0);
    const std::uint64_t parts = counts_.tester_time.size(), due = oldest > start_ ? oldest - start_ : 0;
    const std::uint64_t part = parts == 1 ? 0 : std::min(due / (duration_ / parts + 1), parts - 1);
    counts_.tester_time[part].record(own, late ? 2 * stamped_in_hand_ : stamped_in_hand_);
    stamped_in_hand_ = 0;
}

Ticks Sender::hand_over_line() {
    const Ticks began = now_ticks();
    const std::uint32_t accepted = transmit_burst(queue_, &burst_[pending_from_], static_cast<std::uint16_t>(pending_));
    const Ticks end = now_ticks();
    const auto record_frame = [&](Ticks due, Ticks late) {
        counts_.lateness.record(late);
        if (late > counts_.max_lateness.load(std::memory_order_relaxed)) [[unlikely]]
            counts_.max_lateness.store(late, std::memory_order_relaxed);
        counts_.late_bursts.record(due, due + late, 1);
    };
    const LineFiller::Taken taken =
        line_->taken(pending_from_, accepted, accepted != pending_, began, end, record_frame);
    pending_ -= accepted;
    pending_from_ += accepted;
    counts_.control_sent += taken.replies;
    if (taken.frames != 0) counts_.last_call_end = end;
    counts_.sent.store(counts_.sent.load(std::memory_order_relaxed) + taken.frames, std::memory_order_relaxed);
    return end;
}

void Sender::finish() {
    if (line_) line_->drop_waiting();
    rte_pktmbuf_free_bulk(&burst_[pending_from_], pending_);
    pending_ = 0;
    done_.store(true, std::memory_order_release);
}

std::unique_ptr<Sender> make_transmitter(const StreamSpec& stream, bool stamps, SenderParts sender,
                                         const AnySchedule& schedule, const FrameSourceParts& parts) {
    const auto with = [&]<Schedule S>(const S& chosen) {
        return choose<>(Making<S>{sender, chosen, parts}, stream.varies_ports(), stream.varies_addresses(), stamps,
                        stream.is_mixed());
    };
    return std::visit(with, schedule);
}

std::unique_ptr<Sender> make_transmitter(bool stamps, SenderParts sender, const AnySchedule& schedule,
                                         const DescribedParts& parts) {
    const auto with = [&]<Schedule S>(const S& chosen) -> std::unique_ptr<Sender> {
        if (stamps) return std::make_unique<Transmitter<S, DescribedSource<true>>>(std::move(sender), chosen, parts);
        return std::make_unique<Transmitter<S, DescribedSource<false>>>(std::move(sender), chosen, parts);
    };
    return std::visit(with, schedule);
}

std::unique_ptr<Sender> make_transmitter(bool stamps, SenderParts sender, const AnySchedule& schedule,
                                         const ResponderParts& parts) {
    const auto with = [&]<Schedule S, bool Ipv6, bool Stamps>(const S& chosen, std::bool_constant<Ipv6>,
                                                              std::bool_constant<Stamps>) -> std::unique_ptr<Sender> {
        return std::make_unique<Transmitter<S, ResponderSource<Ipv6, Stamps>>>(std::move(sender), chosen, parts);
    };
    const auto flag = [](bool value) {
        return value ? std::variant<std::false_type, std::true_type>(std::true_type{}) : std::false_type{};
    };
    return std::visit(with, schedule, flag(parts.table->ipv6()), flag(stamps));
}

std::unique_ptr<Sender> make_transmitter(bool /*stamps*/, SenderParts sender, const AnySchedule& schedule,
                                         const ReplayParts& parts) {
    const auto with = [&]<Schedule S>(const S& chosen) -> std::unique_ptr<Sender> {
        return std::make_unique<Transmitter<S, ReplaySource>>(std::move(sender), chosen, parts);
    };
    return std::visit(with, schedule);
}

std::unique_ptr<Sender> make_transmitter(bool stamps, SenderParts sender, const AnySchedule& schedule,
                                         const QuestionParts& parts) {
    const auto with = [&]<Schedule S>(const S& chosen) -> std::unique_ptr<Sender> {
        if (stamps) return std::make_unique<Transmitter<S, QuestionSource<true>>>(std::move(sender), chosen, parts);
        return std::make_unique<Transmitter<S, QuestionSource<false>>>(std::move(sender), chosen, parts);
    };
    return std::visit(with, schedule);
}

std::unique_ptr<Sender> make_idle_sender(PortQueue queue, rte_ring* control) {
    return std::make_unique<IdleSender>(queue, control);
}

}  // namespace dutperf
