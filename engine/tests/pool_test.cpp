// SPDX-License-Identifier: Apache-2.0
// A card accesses a buffer by the bus address in its descriptor, and nothing stops it if that address is wrong: such a
// pool is rejected when it is made.
#include "port/pool.hpp"

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include "platform/eal.hpp"
#include "platform/error.hpp"

namespace dutperf {
namespace {

constexpr unsigned kFrames = 511;
constexpr std::uint32_t kFrameSize = 1522;

class PoolTest : public testing::Test {
protected:
    static void SetUpTestSuite() { start_eal({.memory = MemoryChoice::no_huge_pages, .pci_devices = {}}); }

    static Pool pool_for(Reach reach, std::uint32_t frame_size = kFrameSize) {
        return make_pool({.name = "pool_test", .count = kFrames, .frame_size = frame_size, .reach = reach});
    }

    static void change_first(rte_mempool* pool, rte_iova_t iova) {
        const auto change = [](rte_mempool* /*pool*/, void* to, void* buffer, unsigned i) {
            if (i == 0) rte_mbuf_iova_set(static_cast<rte_mbuf*>(buffer), *static_cast<rte_iova_t*>(to));
        };
        rte_mempool_obj_iter(pool, change, &iova);
    }
};

TEST_F(PoolTest, OfFramesThatADeviceReachesHasTheirBusAddresses) {
    for (const std::uint32_t size : {64U, kFrameSize, 9216U})
        EXPECT_NO_THROW(require_reachable(pool_for(Reach::device, size).get())) << size;
}

TEST_F(PoolTest, ThatMayCrossPagesIsNotForDevices) {
    const Pool pool = pool_for(Reach::processor);
    EXPECT_THROW(require_reachable(pool.get()), Error);
}

TEST_F(PoolTest, WithOneWrongBusAddressIsRejected) {
    for (const rte_iova_t wrong : {rte_iova_t{0}, rte_iova_t{0x1000}, static_cast<rte_iova_t>(RTE_BAD_IOVA)}) {
        const Pool pool = pool_for(Reach::device);
        change_first(pool.get(), wrong);
        EXPECT_THROW(require_reachable(pool.get()), Error) << wrong;
    }
}

TEST_F(PoolTest, TakesNoMoreMemoryThanWasReserved) {
    for (const Reach reach : {Reach::processor, Reach::device}) {
        const Pool pool = pool_for(reach);
        std::uint64_t bytes = 0;
        const auto add = [](rte_mempool* /*pool*/, void* sum, rte_mempool_memhdr* chunk, unsigned) {
            *static_cast<std::uint64_t*>(sum) += chunk->len;
        };
        rte_mempool_mem_iter(pool.get(), add, &bytes);
        EXPECT_LE(bytes, kFrames * buffer_bytes(kFrameSize, reach, kSmallPageBytes) + kSmallPageBytes);
    }
}

}  // namespace
}  // namespace dutperf
