// SPDX-License-Identifier: Apache-2.0
// Transmit and receive calls of the hot loops. Ownership of a transmitted frame passes to the driver, ownership of a
// received frame to the caller.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dutperf {

// One queue of a port. It has one owner at a time: the driver's calls for a queue must not run concurrently.
struct PortQueue {
    std::uint16_t port, index = 0;
};

inline std::uint16_t transmit_burst(PortQueue queue, rte_mbuf** frames, std::uint16_t count) {
    return rte_eth_tx_burst(queue.port, queue.index, frames, count);
}
inline std::uint16_t receive_burst(PortQueue queue, rte_mbuf** frames, std::uint16_t count) {
    return rte_eth_rx_burst(queue.port, queue.index, frames, count);
}

// Returns at least one frame to the pools. rte_pktmbuf_free_bulk() reads the second cache line of every buffer to look
// for a next segment, which single-segment frames do not have. Nothing else reads that line, and a line that is never
// read costs no time and no cache.
inline void free_burst(rte_mbuf** frames, std::uint16_t count) {
    rte_mempool* const pool = frames[0]->pool;
    static_assert(offsetof(rte_mbuf, nb_segs) == offsetof(rte_mbuf, refcnt) + 2);
    std::uint64_t flags = 0;
    std::uintptr_t special = 0;
    for (std::uint16_t i = 0; i < count; ++i) {
        const rte_mbuf& one = *frames[i];
        std::uint32_t references_and_segments = 0;
        std::memcpy(&references_and_segments, &one.refcnt, sizeof references_and_segments);
        flags |= one.ol_flags;
        special |= (references_and_segments ^ 0x10001U) |
                   (reinterpret_cast<std::uintptr_t>(one.pool) ^ reinterpret_cast<std::uintptr_t>(pool));
    }
    if ((flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)) == 0 && special == 0) [[likely]]
        return rte_mempool_put_bulk(pool, reinterpret_cast<void* const*>(frames), count);
    rte_pktmbuf_free_bulk(frames, count);
}

}  // namespace dutperf
