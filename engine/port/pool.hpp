// SPDX-License-Identifier: Apache-2.0
// Pools of frame buffers, in memory that a device can reach or that only this process uses.
#pragma once

#include <rte_mempool.h>

#include <cstdint>
#include <memory>
#include <string>

namespace dutperf {

struct PoolDeleter {
    void operator()(rte_mempool* pool) const { rte_mempool_free(pool); }
};
using Pool = std::unique_ptr<rte_mempool, PoolDeleter>;

// Who accesses the frames. A device that uses DMA needs the bus address (IOVA) of each frame; a driver that copies does
// not.
enum class Reach : std::uint8_t { processor, device };

struct PoolOptions {
    std::string name;
    unsigned count;            // of frames
    std::uint32_t frame_size;  // bytes of room in each
    Reach reach = Reach::processor;
    int numa_node = SOCKET_ID_ANY;  // preferred for the memory
};

inline constexpr std::uint64_t kSmallPageBytes = 4096, kHugePageBytes = 2 * 1024 * 1024;

// The most memory that a frame's buffer takes. With small pages, a buffer that a device reaches takes whole pages.
std::uint64_t buffer_bytes(std::uint32_t frame_size, Reach reach, std::uint64_t page_bytes);

// What a pool of so many buffers takes beside them: a cache for each core that DPDK might know, and a ring.
std::uint64_t pool_overhead_bytes(unsigned count);

// Throws Error "no_memory", or "internal" if a device could not reach the frames.
Pool make_pool(const PoolOptions& options);

// Requires that the bus address of every frame is valid from its first byte to its last. Throws Error "internal".
void require_reachable(rte_mempool* pool);

}  // namespace dutperf
