// SPDX-License-Identifier: Apache-2.0
// The receiving hot loop's body: poll, classify, account. Test frames of this trial are told from late ones of another (stale), duplicates from
// originals, foreground from background, and damaged ones; ARP and NDP are answered; all else is counted by kind as evidence.
#pragma once

#include <rte_mbuf.h>
#include <rte_ring.h>

#include <algorithm>
#include <array>

#include "port/burst.hpp"
#include "port/neighbour.hpp"
#include "trial/account.hpp"
#include "trial/clock.hpp"

namespace dutperf {

class Receiver {
public:
    Receiver(PortQueue queue, const Host& host, const Expected& expected, rte_mempool* control_pool, rte_ring* control)
        : queue_(queue), host_(host), control_pool_(control_pool), control_(control), account_(expected) {}

    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;

    // Takes what has arrived, at most a burst. Whether there was anything.
    bool turn() {
        const std::uint16_t count = receive_burst(queue_, burst_.data(), kBurst);
        if (count == 0) return false;
        Account::Burst taken{.arrival = now_ticks()};
        for (std::uint16_t i = 0; i < std::min(count, kBufferAhead); ++i) prefetch_buffer(burst_[i]);
        for (std::uint16_t i = 0; i < count; ++i) {
            if (i + kBufferAhead < count) prefetch_buffer(burst_[i + kBufferAhead]);
            if (i + kFrameAhead < count) __builtin_prefetch(rte_pktmbuf_mtod(burst_[i + kFrameAhead], const void*));
            take(rte_pktmbuf_mtod(burst_[i], const std::uint8_t*), rte_pktmbuf_data_len(burst_[i]), taken);
        }
        account_.add(taken);
        free_burst(burst_.data(), count);
        return true;
    }

    [[nodiscard]] Account& account() { return account_; }
    [[nodiscard]] const ReceiverCounts& counts() const { return account_.counts(); }

private:
    static constexpr std::uint16_t kBurst = 64;
    // How many frames before its turn the processor is asked for a buffer's description, and then for what it holds.
    static constexpr std::uint16_t kBufferAhead = 12, kFrameAhead = 6;

    static void prefetch_buffer(const rte_mbuf* buffer) {
        __builtin_prefetch(buffer);
    }

    void take(const std::uint8_t* frame, std::size_t length, Account::Burst& taken) {
        const std::uint8_t* payload = find_tag(frame, length);
        if (payload == nullptr) [[unlikely]]
            return take_other(frame, length);
        if (!is_intact(frame, length, payload)) [[unlikely]]
            return account_.take_damaged();
        account_.take(read_tag(payload), taken);
    }

    void take_other(const std::uint8_t* frame, std::size_t length);

    PortQueue queue_;
    Host host_;
    rte_mempool* control_pool_;
    rte_ring* control_;
    Account account_;
    std::array<rte_mbuf*, kBurst> burst_{};
};

}  // namespace dutperf
