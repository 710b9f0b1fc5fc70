// SPDX-License-Identifier: Apache-2.0
// What each counter of a kernel interface counts as, and what shows that it is no longer the one that was opened.
#include "port/kernel_interface.hpp"

#include <gtest/gtest.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <string>

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

constexpr unsigned kIndex = 7;

KernelInterface interface_like(const std::string& name, unsigned mtu) {
    KernelInterface interface;
    interface.index = kIndex;
    interface.name = name;
    interface.mtu = mtu;
    return interface;
}

TEST(KernelInterface, WhatIsNotThereOrDiffersIsAChange) {
    struct Change {
        const char* name;
        std::optional<KernelInterface> now;
        unsigned needed_mtu;
        std::string change;
    };
    const Change rows[] = {
        {"as it was", interface_like("r0", 1500), 1500, ""},
        {"deleted, moved, or unreadable", std::nullopt, 1500,
         "r0 is gone from the tester's network namespace: it was deleted, or moved to another one"},
        {"renamed", interface_like("rr0", 1500), 1500, "r0 was renamed to rr0"},
        {"shorter frames", interface_like("r0", 1499), 1500, "the MTU of r0 was lowered from 1500 to 1499"},
        {"longer frames", interface_like("r0", 9000), 1500, ""},
        {"shorter frames, which still pass", interface_like("r0", 1000), 1000, ""},
    };
    for (const Change& row : rows)
        EXPECT_EQ(change_since(interface_like("r0", 1500), row.now, row.needed_mtu), row.change) << row.name;
}

TEST(KernelInterface, FramesThatADisciplineHeldBackAreThoseBetweenTwoReadings) {
    struct Held {
        const char* name;
        QueueDiscipline before, after;
        HeldFrames held;
    };
    const Held rows[] = {
        {"none", {.requeues = 5, .waiting = 0}, {.requeues = 5, .waiting = 0}, {.times = 0, .waiting = 0}},
        {"some that left", {.requeues = 5, .waiting = 0}, {.requeues = 7, .waiting = 0}, {.times = 2, .waiting = 0}},
        {"some still there", {.requeues = 5, .waiting = 0}, {.requeues = 6, .waiting = 9}, {.times = 1, .waiting = 9}},
        {"some of before", {.requeues = 5, .waiting = 8}, {.requeues = 5, .waiting = 0}, {.times = 0, .waiting = 8}},
        {"replaced meanwhile",
         {.requeues = 5, .waiting = 0},
         {.requeues = 3, .waiting = 0},
         {.times = 3, .waiting = 0}},
    };
    for (const Held& row : rows) {
        const HeldFrames held = held_between(row.before, row.after);
        EXPECT_EQ(held.times, row.held.times) << row.name;
        EXPECT_EQ(held.waiting, row.held.waiting) << row.name;
    }
}

TEST(KernelInterface, EventsSayWhatHappenedToIt) {
    struct Row {
        const char* name;
        std::uint16_t type;
        unsigned char family;
        unsigned index, flags;
        std::uint64_t downs;
        bool removed;
    };
    const Row rows[] = {
        {"up", RTM_NEWLINK, AF_UNSPEC, kIndex, IFF_UP, 0, false},
        {"down", RTM_NEWLINK, AF_UNSPEC, kIndex, 0, 1, false},
        {"another one is down", RTM_NEWLINK, AF_UNSPEC, kIndex + 1, 0, 0, false},
        {"removed", RTM_DELLINK, AF_UNSPEC, kIndex, 0, 0, true},
        {"another one is removed", RTM_DELLINK, AF_UNSPEC, kIndex + 1, 0, 0, false},
        {"it left a bridge", RTM_DELLINK, AF_BRIDGE, kIndex, IFF_UP, 0, false},
    };
    InterfaceEvents together;
    for (const Row& row : rows) {
        struct {
            nlmsghdr header;
            ifinfomsg body;
        } message{};
        message.header.nlmsg_len = sizeof message;
        message.header.nlmsg_type = row.type;
        message.body.ifi_family = row.family;
        message.body.ifi_index = static_cast<int>(row.index);
        message.body.ifi_flags = row.flags;
        InterfaceEvents events;
        events.add(&message, sizeof message, kIndex);
        together.add(&message, sizeof message, kIndex);
        EXPECT_EQ(events.downs, row.downs) << row.name;
        EXPECT_EQ(events.removed, row.removed) << row.name;
    }
    EXPECT_EQ(together.downs, 1U);
    EXPECT_TRUE(together.removed);
}

}  // namespace
}  // namespace dutperf
