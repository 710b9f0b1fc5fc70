// SPDX-License-Identifier: Apache-2.0
#include "port/pool.hpp"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memory.h>

#include <algorithm>
#include <bit>

#include "platform/error.hpp"

namespace dutperf {

namespace {

constexpr unsigned kPoolCache = 256;

// Buffers for DMA are within pages whose bus addresses are known. Other buffers may cross page boundaries and then have
// no bus address. If they could not, each would begin a 4 kB page, and all headers would fall into one set of the
// first-level cache.
unsigned flags_for(Reach reach) { return reach == Reach::device ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG; }

std::uint16_t room_for(std::uint32_t frame_size) {
    return static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM +
                                      std::max<std::uint32_t>(2048, RTE_ALIGN_CEIL(frame_size, 64U)));
}

// Like rte_pktmbuf_pool_create(), which has no option for the placement of buffers. Nothing, with rte_errno set, if the
// node lacks memory.
Pool make_on_node(const PoolOptions& options, int node) {
    const std::uint16_t room = room_for(options.frame_size);
    rte_pktmbuf_pool_private size{.mbuf_data_room_size = room, .mbuf_priv_size = 0, .flags = 0};
    Pool pool(rte_mempool_create_empty(options.name.c_str(), options.count,
                                       static_cast<unsigned>(sizeof(rte_mbuf)) + room, kPoolCache, sizeof size, node,
                                       flags_for(options.reach)));
    if (!pool || rte_mempool_set_ops_byname(pool.get(), rte_mbuf_best_mempool_ops(), nullptr) != 0) return nullptr;
    rte_pktmbuf_pool_init(pool.get(), &size);
    if (rte_mempool_populate_default(pool.get()) < 0) return nullptr;
    rte_mempool_obj_iter(pool.get(), rte_pktmbuf_init, nullptr);
    return pool;
}

}  // namespace

std::uint64_t buffer_bytes(std::uint32_t frame_size, Reach reach, std::uint64_t page_bytes) {
    constexpr std::uint64_t kHeaders = 256;  // headers of pool and frame, and the pool's padding
    const std::uint64_t bytes = room_for(frame_size) + kHeaders;
    return reach == Reach::device && page_bytes == kSmallPageBytes ? RTE_ALIGN_CEIL(bytes, kSmallPageBytes) : bytes;
}

std::uint64_t pool_overhead_bytes(unsigned count) {
    const std::uint64_t ring = sizeof(void*) * std::bit_ceil(std::uint64_t{count} + 1);
    return RTE_MEMPOOL_HEADER_SIZE(static_cast<rte_mempool*>(nullptr), kPoolCache) + ring;
}

Pool make_pool(const PoolOptions& options) {
    Pool pool = make_on_node(options, options.numa_node);
    if (!pool && options.numa_node != SOCKET_ID_ANY) pool = make_on_node(options, SOCKET_ID_ANY);
    if (!pool) {
        throw Error("no_memory", "no memory for " + std::to_string(options.count) + " frames of " +
                                     std::to_string(room_for(options.frame_size)) +
                                     " bytes: " + rte_strerror(rte_errno));
    }
    if (options.reach == Reach::device) require_reachable(pool.get());
    return pool;
}

void require_reachable(rte_mempool* pool) {
    std::uint64_t unreachable = 0;
    const auto check = [](rte_mempool* /*pool*/, void* count, void* buffer, unsigned /*index*/) {
        const auto* const frame = static_cast<const rte_mbuf*>(buffer);
        const auto* const first = static_cast<const std::uint8_t*>(frame->buf_addr);
        const std::uint64_t last = frame->buf_len - 1;
        const rte_iova_t iova = rte_mbuf_iova_get(frame);
        const bool reached =
            iova != RTE_BAD_IOVA && rte_mem_virt2iova(first) == iova && rte_mem_virt2iova(first + last) == iova + last;
        *static_cast<std::uint64_t*>(count) += reached ? 0 : 1;
    };
    rte_mempool_obj_iter(pool, check, &unreachable);
    if (unreachable == 0) return;
    throw Error("internal", std::to_string(unreachable) + " of the " + std::to_string(pool->size) +
                                " buffers of the pool " + pool->name +
                                " have a wrong bus address (IOVA): a device would send and overwrite other memory");
}

}  // namespace dutperf
