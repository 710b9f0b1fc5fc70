// SPDX-License-Identifier: Apache-2.0
// The name server of a port: its receiver makes the answers, and a sender of its own sends them. A queue is between
// them, as they may run on different cores.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include <cstdlib>
#include <memory>

#include "dns/name_server.hpp"
#include "dns/tcp_connections.hpp"
#include "measure/histogram.hpp"
#include "platform/ticks.hpp"
#include "trial/transmitter.hpp"

namespace dutperf {

// Answers on their way from one core to another.
class AnswerQueue {
public:
    struct Answer {
        rte_mbuf* frame;
        Ticks since;  // the query may have arrived then
    };

    AnswerQueue();
    ~AnswerQueue();
    AnswerQueue(const AnswerQueue&) = delete;
    AnswerQueue& operator=(const AnswerQueue&) = delete;

    // False if it is full.
    bool put(Answer answer);
    // Returns how many there were, at most `most`.
    std::uint32_t take(Answer* to, std::uint32_t most);

private:
    struct Free {
        void operator()(rte_ring* ring) const { std::free(ring); }
    };
    std::unique_ptr<rte_ring, Free> ring_;
};

// The receiver's half. It copies each query into a buffer of its own: the driver's may be one that the other port
// sends from (ring), and none that it fills would be missing where a card keeps what was sent.
class Answering {
public:
    // `generation`: see FrameImage.
    Answering(dns::NameServerOptions options, dns::TcpConnections& connections, rte_mempool* pool,
              std::uint32_t generation)
        : server_(std::move(options)), connections_(connections), pool_(pool), generation_(generation) {
        connections_.begin_trial();
    }

    // Answers a query, or a segment of TCP, that may have arrived since then. Whether the frame was one.
    bool take(dns::Bytes frame, Ticks since);

    [[nodiscard]] AnswerQueue& queue() { return queue_; }
    [[nodiscard]] const dns::QueryCounts& queries() const { return server_.counts(); }
    // Answers that were made and, over UDP, have room in the queue.
    [[nodiscard]] std::uint64_t answered() const { return answered_ + connections_.answered(); }
    // Frames for which there was no buffer, or no room in the queue.
    [[nodiscard]] std::uint64_t unsent() const { return unsent_; }
    [[nodiscard]] std::uint64_t evicted_connections() const { return connections_.evicted(); }

private:
    bool take_segment(dns::Bytes frame, Ticks since);
    // nullptr: there is none, which is counted.
    rte_mbuf* new_buffer();
    // Whether a frame that was written into a buffer is in the queue. Of length 0 there is none.
    bool hand_over(rte_mbuf* buffer, std::size_t length, Ticks since);

    dns::NameServer server_;
    dns::TcpConnections& connections_;
    rte_mempool* pool_;
    std::uint32_t generation_;
    AnswerQueue queue_;
    std::uint64_t answered_ = 0, unsent_ = 0;
};

// The sender's half. It sends until the end of the trial, whatever the streams do.
class AnswerSender final : public Sender {
public:
    AnswerSender(PortQueue queue, rte_ring* control, AnswerQueue& answers)
        : Sender({.queue = queue, .control = control}), answers_(answers) {
        done_.store(true);
    }
    ~AnswerSender() override;
    AnswerSender(const AnswerSender&) = delete;
    AnswerSender& operator=(const AnswerSender&) = delete;

    Ticks turn(Ticks now) override;
    [[nodiscard]] std::size_t histograms() const override { return 1 + Sender::histograms(); }

    // Valid after the trial. From when the queries may have arrived until the port had the answers.
    [[nodiscard]] const Histogram& delays() const { return delays_; }
    // Offers what still waits to the driver a last time: the queries came in the last turn. When the loops have ended.
    void send_rest();
    // Gives up what still waits. Returns how many answers.
    std::uint64_t give_up();

private:
    void take_waiting();

    AnswerQueue& answers_;
    Histogram delays_;
    std::array<Ticks, kMaxBurst> since_{};  // of the frames in burst_
};

}  // namespace dutperf
