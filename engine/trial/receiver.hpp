// SPDX-License-Identifier: Apache-2.0
// The receiving hot loop's body: poll, classify, account. Test frames of this trial are told from late ones of another
// (stale), duplicates from originals, foreground from background, and corrupted ones; ARP and NDP are answered; all
// else is counted by kind as evidence.
#pragma once

#include <rte_mbuf.h>
#include <rte_ring.h>

#include <algorithm>
#include <array>

#include "frame/batch_match.hpp"
#include "platform/clock.hpp"
#include "port/burst.hpp"
#include "port/neighbour.hpp"
#include "trial/nic_stamps.hpp"
#include "trial/rx_statistics.hpp"

namespace dutperf {

class Receiver {
public:
    Receiver(PortQueue queue, const Host& host, const Expected& expected, rte_mempool* control_pool, rte_ring* control)
        : queue_(queue), host_(host), control_pool_(control_pool), control_(control), statistics_(expected) {}

    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;

    // Delays end when the NIC says that a frame arrived, not when it is polled. Before the trial.
    void stamp_by(const NicStamps& nic) { nic_ = nic; }

    // The queue has room for so many frames, and nobody on this side counts those that find it full: each turn takes
    // all that wait. Before the trial.
    void watch_room(std::uint32_t frames) { room_ = frames; }

    // The queue has room for so many frames, and the kernel counts those that find it full: how many wait is only
    // looked at. Before the trial.
    void watch_ring(std::uint32_t frames) { ring_ = frames; }

    // Takes what has arrived, at most a burst. Whether there was anything.
    bool turn() {
        std::uint16_t count = take_burst();
        const bool any = count != 0;
        std::uint32_t waited = left_from_ + count;
        while (count >= kNearlyBurst && waited < room_) [[unlikely]] waited += count = take_burst();
        if (waited > most_waiting_) [[unlikely]]
            most_waiting_ = waited;
        left_from_ = count >= kNearlyBurst && room_ == 0 ? std::min(waited, kVeryMany)
                                                         : 0;  // there may be more, which waited together with these
        return any;
    }

    // Frames that came at one time. They stay the caller's.
    void take(rte_mbuf* const* frames, std::uint16_t count, Ticks arrival) {
        RxStatistics::Burst taken{.arrival = arrival};
        if (nic_.clock != nullptr) [[unlikely]] {
            take_stamped(frames, count, taken);
        } else if (count < kWorthwhile) {
            for (std::uint16_t i = 0; i < count; ++i) take_one(*frames[i], taken);
        } else {
            prefetch_first(frames, count);
            is_ipv6(*frames[0]) ? take_many(match6_, frames, count, taken) : take_many(match4_, frames, count, taken);
        }
        statistics_.add(taken);
    }

    // The trial is over; `away`: and the loop was away until now, so that nobody knows what waits.
    void end(bool away) { saw_all_ = !away && left_from_ == 0; }

    [[nodiscard]] RxStatistics& statistics() { return statistics_; }
    [[nodiscard]] const ReceiverCounts& counts() const { return statistics_.counts(); }
    [[nodiscard]] const StampCounts& stamp_counts() const { return stamp_counts_; }
    // Of the queue, where that is watched: frames that it has room for, and that waited there at once, at most. The
    // latter is no less than what it was.
    [[nodiscard]] std::uint32_t room() const { return room_ != 0 ? room_ : ring_; }
    [[nodiscard]] bool counts_overruns() const { return room_ == 0; }
    // Whether the queue was seen empty at the end: else more may wait than ever did.
    [[nodiscard]] bool saw_all() const { return saw_all_; }
    [[nodiscard]] std::uint32_t most_waiting() const { return most_waiting_; }

private:
    static constexpr std::uint16_t kBurst = 64;
    static constexpr std::uint16_t kNearlyBurst =
        kBurst - 8;  // a driver may leave some of what waits, to keep in step with cache lines
    static_assert(kBurst <= BatchMatch<kIpv4Layout>::kMost);
    static constexpr std::uint32_t kVeryMany = std::uint32_t{1} << 30U;
    static constexpr std::uint16_t kWorthwhile = 4;  // so many are faster together than one by one
    // How many frames before its turn the processor is asked for a buffer's description, and then for what it holds.
    static constexpr std::uint16_t kBufferAhead = 24, kFrameAhead = 12;

    std::uint16_t take_burst() {
        const std::uint16_t count = receive_burst(queue_, burst_.data(), kBurst);
        if (count == 0) return 0;
        take(burst_.data(), count, now_ticks());
        free_burst(burst_.data(), count);
        return count;
    }

    static const std::uint8_t* begin_of(const rte_mbuf& frame) { return rte_pktmbuf_mtod(&frame, const std::uint8_t*); }
    static bool is_ipv6(const rte_mbuf& frame) {
        return rte_pktmbuf_data_len(&frame) >= kEthernetPayloadAt && type_of(begin_of(frame)) == kIpv6Layout.type();
    }

    static void prefetch_first(rte_mbuf* const* frames, std::uint16_t count) {
        for (std::uint16_t i = 0; i < std::min(count, kBufferAhead); ++i) __builtin_prefetch(frames[i]);
        for (std::uint16_t i = 0; i < std::min(count, kFrameAhead); ++i) __builtin_prefetch(begin_of(*frames[i]));
    }

    // Frames like the one that `alike` knows are judged together and counted in runs, all others one by one.
    template <Layout L>
    void take_many(BatchMatch<L>& batch, rte_mbuf* const* frames, std::uint16_t count, RxStatistics::Burst& taken) {
        const int last_buffer = std::max(count - kBufferAhead, 0), last_frame = std::max(count - kFrameAhead, 0);
        int i = 0;
        for (; i < last_buffer; ++i) read<true, true>(batch, frames, i);
        for (; i < last_frame; ++i) read<false, true>(batch, frames, i);
        for (; i < count; ++i) read<false, false>(batch, frames, i);
        count_matched(batch, frames, count, taken);
    }

    // Asks for what comes later, where it does.
    template <bool Buffer, bool Frame, Layout L>
    static void read(BatchMatch<L>& batch, rte_mbuf* const* frames, int i) {
        if constexpr (Buffer) __builtin_prefetch(frames[i + kBufferAhead]);
        if constexpr (Frame) __builtin_prefetch(begin_of(*frames[i + kFrameAhead]));
        batch.read(static_cast<std::size_t>(i), begin_of(*frames[i]), rte_pktmbuf_data_len(frames[i]));
    }

    template <Layout L>
    void count_matched(BatchMatch<L>& batch, rte_mbuf* const* frames, std::uint16_t count, RxStatistics::Burst& taken) {
        batch.match(count);
        const rte_mbuf* mismatch = nullptr;
        for (std::size_t i = 0; i < count;) {
            const std::span<const std::uint64_t> run = batch.run_from(i, count);
            if (!run.empty()) [[likely]] {
                statistics_.take(batch.tag(i), run, taken);
                i += run.size();
            } else if (const rte_mbuf* frame = frames[i++]; take_one(*frame, taken)) {
                mismatch = frame;
            }
        }
        if (mismatch != nullptr) [[unlikely]]
            set_reference(*mismatch);
    }

    // One by one, each at the time at which the NIC says that it arrived.
    void take_stamped(rte_mbuf* const* frames, std::uint16_t count, RxStatistics::Burst& taken) {
        const Ticks polled = taken.arrival;
        BurstArrivals arrivals(nic_, polled);
        for (std::uint16_t i = 0; i < count; ++i) take_one(*frames[i], taken, &arrivals);
        taken.arrival = polled;
    }

    // Whether it was an intact test frame.
    bool take_one(const rte_mbuf& one, RxStatistics::Burst& taken, BurstArrivals* arrivals = nullptr) {
        const std::uint8_t* frame = begin_of(one);
        const std::size_t length = rte_pktmbuf_data_len(&one);
        const std::uint8_t* payload = find_tag(frame, length);
        const bool intact = payload != nullptr && is_intact(frame, length);
        if (payload == nullptr) [[unlikely]] {
            take_other(frame, length);
        } else if (!intact) [[unlikely]] {
            statistics_.take_corrupted();
        } else {
            const Tag tag = read_tag(payload);
            if (arrivals != nullptr) [[unlikely]] {
                take_arrived(one, tag, taken, *arrivals);
            } else {
                statistics_.take(tag, taken);
            }
        }
        return intact;
    }

    // Only what has a delay counts among the stamps: neither stale frames nor duplicates.
    void take_arrived(const rte_mbuf& one, const Tag& tag, RxStatistics::Burst& taken, BurstArrivals& arrivals) {
        const std::uint64_t before = taken.stamped;
        taken.arrival = arrivals.of(one, tag);
        statistics_.take(tag, taken);
        if (taken.stamped != before) stamp_counts_.add(arrivals.last());
    }

    // The frames that come next are expected to be like this one.
    void set_reference(const rte_mbuf& frame) {
        is_ipv6(frame) ? match6_.set_reference(begin_of(frame), rte_pktmbuf_data_len(&frame))
                       : match4_.set_reference(begin_of(frame), rte_pktmbuf_data_len(&frame));
    }

    void take_other(const std::uint8_t* frame, std::size_t length);

    PortQueue queue_;
    Host host_;
    rte_mempool* control_pool_;
    rte_ring* control_;
    RxStatistics statistics_;
    BatchMatch<kIpv4Layout> match4_;
    BatchMatch<kIpv6Layout> match6_;
    NicStamps nic_;
    StampCounts stamp_counts_;
    std::uint32_t room_ = 0, ring_ = 0, most_waiting_ = 0;
    bool saw_all_ = false;
    std::uint32_t left_from_ = 0;  // frames taken in the turns just before, each of which left some
    std::array<rte_mbuf*, kBurst> burst_{};
};

}  // namespace dutperf
