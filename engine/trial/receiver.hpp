// SPDX-License-Identifier: Apache-2.0
// The receiving hot loop's body: poll, classify, account. Test frames of this trial are told from late ones of another (stale), duplicates from
// originals, foreground from background, and damaged ones; ARP and NDP are answered; all else is counted by kind as evidence.
#pragma once

#include <rte_mbuf.h>
#include <rte_ring.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>

#include "frame/arrival.hpp"
#include "measure/histogram.hpp"
#include "measure/sequence_window.hpp"
#include "port/neighbour.hpp"
#include "trial/delay_file.hpp"
#include "trial/transmitter.hpp"
#include "trial/trial.hpp"

namespace dutperf {

// Written by the receiver's core alone; `received` may be read by others for progress.
struct ReceiverCounts {
    std::atomic<std::uint64_t> received{0};
    std::uint64_t background = 0, duplicates = 0, out_of_order = 0, stale = 0, damaged = 0, stamped = 0, late = 0;
    std::array<std::uint64_t, kOtherKinds> other{};
};

// When frames that count as received came, by this core's clock: the first and the last, and the longest time between two of them.
struct ArrivalTimes {
    Ticks first = 0, last = 0, silence_from = 0, silence_to = 0;

    void note(Ticks arrival) {
        if (first == 0) [[unlikely]]
            first = last = silence_from = silence_to = arrival;
        if (arrival - last > silence_to - silence_from) [[unlikely]] {
            silence_from = last;
            silence_to = arrival;
        }
        last = arrival;
    }
};

struct Expected {
    std::uint16_t trial;
    Direction direction;
    std::uint64_t frames;          // sequence numbers are below it
    MissingFrames::Bounds bounds;  // of the parts of the sending time, in sequence numbers
    Stamping stamping;
    Ticks frame_timeout;  // a stamped frame that took longer is late; 0: none is
    DelayFile* delays;    // nullptr: delays are not written
};

class Receiver {
public:
    Receiver(std::uint16_t port, const Host& host, const Expected& expected, rte_mempool* control_pool, rte_ring* control)
        : port_(port), host_(host), expected_(expected), control_pool_(control_pool), control_(control), window_(expected.frames, expected.bounds) {
        if (expected.stamping != Stamping::none) delay_.emplace();
        if (expected.stamping == Stamping::every) delay_change_.emplace();
    }

    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;

    // Takes what has arrived, at most a burst. Whether there was anything.
    bool turn() {
        const std::uint16_t count = receive_burst(port_, burst_.data(), kBurst);
        if (count == 0) return false;
        Burst taken{.arrival = now_ticks()};
        for (std::uint16_t i = 0; i < std::min(count, kBufferAhead); ++i) prefetch_buffer(burst_[i]);
        for (std::uint16_t i = 0; i < count; ++i) {
            if (i + kBufferAhead < count) prefetch_buffer(burst_[i + kBufferAhead]);
            if (i + kFrameAhead < count) __builtin_prefetch(rte_pktmbuf_mtod(burst_[i + kFrameAhead], const void*));
            take(rte_pktmbuf_mtod(burst_[i], const std::uint8_t*), rte_pktmbuf_data_len(burst_[i]), taken);
        }
        add(taken);
        rte_pktmbuf_free_bulk(burst_.data(), count);
        return true;
    }

    [[nodiscard]] const ReceiverCounts& counts() const { return counts_; }
    [[nodiscard]] const ArrivalTimes& arrivals() const { return arrivals_; }  // where any frame was received
    // See SequenceWindow. After the trial, once.
    const MissingFrames& missing_of(std::uint64_t sent) { return window_.missing_of(sent); }
    [[nodiscard]] const std::optional<Histogram>& delay() const { return delay_; }
    [[nodiscard]] const std::optional<SignedHistogram>& delay_change() const { return delay_change_; }

private:
    static constexpr std::uint16_t kBurst = 64;
    // How many frames before its turn the processor is asked for a buffer's description, and then for what it holds.
    static constexpr std::uint16_t kBufferAhead = 12, kFrameAhead = 6;

    // Both halves: the driver's part, and what freeing looks at.
    static void prefetch_buffer(const rte_mbuf* buffer) {
        __builtin_prefetch(buffer);
        __builtin_prefetch(&buffer->next);
    }

    // What is counted for most frames, of one burst: it stays in registers, while a member might be what any store changes.
    struct Burst {
        Ticks arrival;
        std::uint64_t received = 0, background = 0, stamped = 0;
    };

    void add(const Burst& taken) {
        counts_.background += taken.background;
        counts_.stamped += taken.stamped;
        if (taken.received == 0) return;
        counts_.received.store(counts_.received.load(std::memory_order_relaxed) + taken.received, std::memory_order_relaxed);
        arrivals_.note(taken.arrival);
    }

    void take(const std::uint8_t* frame, std::size_t length, Burst& taken) {
        const std::uint8_t* payload = find_tag(frame, length);
        if (payload == nullptr) [[unlikely]]
            return take_other(frame, length);
        if (!is_intact(frame, length, payload)) [[unlikely]] {
            ++counts_.damaged;
            return;
        }
        take_test_frame(read_tag(payload), taken);
    }

    void take_test_frame(const Tag& tag, Burst& taken) {
        if (tag.trial != expected_.trial) [[unlikely]] {
            ++counts_.stale;
        } else if ((tag.stream & kStreamReverse) != (expected_.direction == Direction::reverse ? kStreamReverse : 0)) [[unlikely]] {
            ++counts_.other[static_cast<std::size_t>(OtherKind::wrong_direction)];
        } else if (tag.sequence >= expected_.frames) [[unlikely]] {
            ++counts_.damaged;
        } else {
            account(tag, taken);
        }
    }

    void account(const Tag& tag, Burst& taken) {
        const auto how = window_.insert(tag.sequence);
        if (how == SequenceWindow::Arrival::duplicate) [[unlikely]] {
            ++counts_.duplicates;
            return;
        }
        if (how == SequenceWindow::Arrival::overtaken) [[unlikely]]
            ++counts_.out_of_order;
        if (delay_ && tag.stamp != 0 && !record_delay(tag, taken)) [[unlikely]] {
            ++counts_.late;
            return;
        }
        ++taken.received;
        taken.background += (tag.stream & kStreamBackground) != 0 ? 1U : 0U;
    }

    // Whether the frame came in time.
    bool record_delay(const Tag& tag, Burst& taken) {
        const std::uint64_t delay = (taken.arrival - tag.stamp) & kMask40;
        ++taken.stamped;
        delay_->record(delay);
        if (expected_.delays != nullptr) [[unlikely]]
            expected_.delays->record(tag.sequence, delay);
        if (delay_change_) {
            if (tag.sequence == last_number_ + 1) delay_change_->record(static_cast<std::int64_t>(delay) - static_cast<std::int64_t>(last_delay_));
            last_number_ = tag.sequence;
            last_delay_ = delay;
        }
        return expected_.frame_timeout == 0 || delay <= expected_.frame_timeout;
    }

    void take_other(const std::uint8_t* frame, std::size_t length);

    std::uint16_t port_;
    Host host_;
    Expected expected_;
    rte_mempool* control_pool_;
    rte_ring* control_;
    SequenceWindow window_;
    ArrivalTimes arrivals_;
    std::optional<Histogram> delay_;
    std::optional<SignedHistogram> delay_change_;
    std::uint64_t last_number_ = ~std::uint64_t{1}, last_delay_ = 0;  // of the frame before; none follows the first value
    ReceiverCounts counts_;
    std::array<rte_mbuf*, kBurst> burst_{};
};

}  // namespace dutperf
