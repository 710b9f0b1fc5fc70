// SPDX-License-Identifier: Apache-2.0
// Counter names of DPDK's drivers (22.11).
#include "port/failed_allocations.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace dutperf {
namespace {

TEST(FailedAllocations, AreRecognisedByDriversNames) {
    for (const char* name : {"rx_q0_rx_buf_alloc_failure", "rx_q1_mbuf_alloc_fail", "rx_q0_mbuf_allocation_errors",
                             "rx_q3_mbuf_alloc_errors"}) {
        EXPECT_TRUE(counts_failed_allocations(name)) << name;
    }
}

TEST(FailedAllocations, ExcludeCountersThatAreCountedElsewhere) {
    for (const char* name : {"rx_mbuf_allocation_errors", "rx_fcoe_mbuf_allocation_errors", "rx_q0_drop_err",
                             "tx_q0_drop_total", "rx_good_packets"}) {
        EXPECT_FALSE(counts_failed_allocations(name)) << name;
    }
}

TEST(FailedAllocations, KeepTheLastValueWhereTheDriverReportsNone) {
    std::uint64_t each = 100;
    FailedAllocations counter(2, [&each](std::span<std::uint64_t> into) {
        std::ranges::fill(into, each);
        return each != 0;
    });
    EXPECT_EQ(counter.count(), 200U);
    each = 0;
    EXPECT_EQ(counter.count(), 200U);
    each = 101;
    EXPECT_EQ(counter.count(), 202U);
}

}  // namespace
}  // namespace dutperf
