// SPDX-License-Identifier: Apache-2.0
// Pools of frames: memory that a device can reach, or memory that only this process reads.
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

// Who reads and writes the frames. A device that does so by itself (DMA) needs the bus address (IOVA) of each; a driver
// that copies does not.
enum class Reach : std::uint8_t { processor, device };

struct PoolOptions {
    std::string name;
    unsigned count;            // of frames
    std::uint32_t frame_size;  // bytes that each has room for
    Reach reach = Reach::processor;
    int numa_node = SOCKET_ID_ANY;  // that the memory is taken from where it has some left
};

inline constexpr std::uint64_t kSmallPageBytes = 4096, kHugePageBytes = 2 * 1024 * 1024;

// Memory that a frame's buffer takes at most. One that a device reaches begins a small page where several would not fit
// into one.
std::uint64_t buffer_bytes(std::uint32_t frame_size, Reach reach, std::uint64_t page_bytes);

// Throws Error "no_memory", or "internal" where a device could not reach the frames.
Pool make_pool(const PoolOptions& options);

// That the bus address of every frame belongs to it, from its first byte to its last. Throws Error "internal".
void require_reachable(rte_mempool* pool);

}  // namespace dutperf
