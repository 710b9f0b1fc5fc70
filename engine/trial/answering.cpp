// SPDX-License-Identifier: Apache-2.0
#include "trial/answering.hpp"

#include <algorithm>
#include <new>

namespace dutperf {

namespace {

constexpr unsigned kAnswers = 4096;  // that may wait for a driver
constexpr std::uint32_t kAnswersAtOnce = 64;

}  // namespace

AnswerQueue::AnswerQueue() {
    const auto size = static_cast<std::size_t>(rte_ring_get_memsize_elem(sizeof(Answer), kAnswers));
    ring_.reset(
        static_cast<rte_ring*>(std::aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(size, RTE_CACHE_LINE_SIZE))));
    if (!ring_) throw std::bad_alloc();
    rte_ring_init(ring_.get(), "answers", kAnswers, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

AnswerQueue::~AnswerQueue() {
    for (Answer answer{}; take(&answer, 1) != 0;) rte_pktmbuf_free(answer.frame);
}

bool AnswerQueue::put(Answer answer) { return rte_ring_sp_enqueue_elem(ring_.get(), &answer, sizeof answer) == 0; }

std::uint32_t AnswerQueue::take(Answer* to, std::uint32_t most) {
    return rte_ring_sc_dequeue_burst_elem(ring_.get(), to, sizeof *to, most, nullptr);
}

bool Answering::take(dns::Bytes frame, Ticks since) {
    const auto datagram = server_.datagram_in(frame);
    if (!datagram) return take_segment(frame, since);
    rte_mbuf* const buffer = new_buffer();
    if (buffer == nullptr) return true;
    const std::size_t length =
        server_.answer(frame, *datagram, {begin_of_frame(buffer), dns::NameServer::kMostAnswerSize});
    answered_ += hand_over(buffer, length, since) ? 1U : 0U;
    return true;
}

// A segment that is not sent is sent again when the DUT repeats its own.
bool Answering::take_segment(dns::Bytes frame, Ticks since) {
    if (!connections_.take(frame, server_)) return false;
    while (connections_.has_next()) {
        rte_mbuf* const buffer = new_buffer();
        if (buffer == nullptr) break;
        const std::size_t length =
            connections_.write_next({begin_of_frame(buffer), dns::TcpConnections::kMostFrameSize});
        hand_over(buffer, length, since);
    }
    return true;
}

rte_mbuf* Answering::new_buffer() {
    rte_mbuf* buffer = nullptr;
    if (rte_mempool_get(pool_, reinterpret_cast<void**>(&buffer)) != 0) ++unsent_;
    return buffer;
}

bool Answering::hand_over(rte_mbuf* buffer, std::size_t length, Ticks since) {
    const std::size_t on_line = std::max(length, kMinEthernetLength);
    if (length < on_line) [[unlikely]]
        std::fill_n(begin_of_frame(buffer) + length, on_line - length, std::uint8_t{0});
    FrameImage::describe(*buffer, RTE_PKTMBUF_HEADROOM, static_cast<std::uint32_t>(on_line), generation_);
    buffer->ol_flags = 0;
    const bool is_queued = length != 0 && queue_.put({buffer, since});
    if (!is_queued) rte_mempool_put(pool_, buffer);
    unsent_ += length != 0 && !is_queued ? 1U : 0U;
    return is_queued;
}

AnswerSender::~AnswerSender() { give_up(); }

void AnswerSender::take_waiting() {
    std::array<AnswerQueue::Answer, kAnswersAtOnce> waiting;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled
    pending_ = answers_.take(waiting.data(), kAnswersAtOnce);
    pending_from_ = 0;
    for (std::uint32_t i = 0; i < pending_; ++i) {
        burst_[i] = waiting[i].frame;
        since_[i] = waiting[i].since;
    }
}

Ticks AnswerSender::turn(Ticks /*now*/) {
    if (has_control()) [[unlikely]]
        send_control();
    if (pending_ == 0) take_waiting();
    if (pending_ == 0) return 0;
    const std::uint32_t accepted = transmit_burst(queue_, &burst_[pending_from_], static_cast<std::uint16_t>(pending_));
    const Ticks end = now_ticks();
    for (std::uint32_t i = pending_from_; i < pending_from_ + accepted; ++i) delays_.record(end - since_[i]);
    pending_ -= accepted;
    pending_from_ += accepted;
    return end;
}

void AnswerSender::send_rest() {
    while (turn(0) != 0 && pending_ == 0) {
    }
}

std::uint64_t AnswerSender::give_up() {
    std::uint64_t given_up = 0;
    for (; pending_ != 0; take_waiting()) {
        rte_pktmbuf_free_bulk(&burst_[pending_from_], pending_);
        given_up += pending_;
    }
    return given_up;
}

}  // namespace dutperf
