// SPDX-License-Identifier: Apache-2.0
// What each counter of a kernel interface counts as.
#include "port/kernel_interface.hpp"

#include <gtest/gtest.h>

namespace dutperf {
namespace {

struct Row {
    const char* name;
    __u64 rtnl_link_stats64::*counter;
    std::uint64_t InterfaceCounters::*means;  // nullptr: nothing
};

TEST(KernelInterface, EachCounterCountsAsWhatItMeans) {
    const Row rows[] = {
        {"rx_dropped", &rtnl_link_stats64::rx_dropped, &InterfaceCounters::not_received},
        {"rx_missed_errors", &rtnl_link_stats64::rx_missed_errors, &InterfaceCounters::not_received},
        {"rx_fifo_errors (igb)", &rtnl_link_stats64::rx_fifo_errors, &InterfaceCounters::not_received},
        {"rx_over_errors", &rtnl_link_stats64::rx_over_errors, &InterfaceCounters::not_received},
        {"rx_errors", &rtnl_link_stats64::rx_errors, &InterfaceCounters::receive_errors},
        {"rx_crc_errors, which rx_errors includes", &rtnl_link_stats64::rx_crc_errors, nullptr},
        {"rx_nohandler, which the socket gets", &rtnl_link_stats64::rx_nohandler, nullptr},
        {"tx_packets", &rtnl_link_stats64::tx_packets, &InterfaceCounters::sent},
        {"tx_dropped", &rtnl_link_stats64::tx_dropped, &InterfaceCounters::not_sent},
        {"multicast", &rtnl_link_stats64::multicast, nullptr},
    };
    for (const Row& row : rows) {
        rtnl_link_stats64 statistics{};
        statistics.*row.counter = 7;
        const InterfaceCounters counters = counters_of(statistics);
        for (const auto member : {&InterfaceCounters::not_received, &InterfaceCounters::receive_errors,
                                  &InterfaceCounters::sent, &InterfaceCounters::not_sent})
            EXPECT_EQ(counters.*member, member == row.means ? 7U : 0U) << row.name;
    }
}

}  // namespace
}  // namespace dutperf
