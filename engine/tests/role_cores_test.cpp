// SPDX-License-Identifier: Apache-2.0
#include "trial/role_cores.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "platform/cores.hpp"
#include "platform/error.hpp"

namespace dutperf {
namespace {

using Cores = std::vector<unsigned>;

struct Row {
    const char* name;
    Cores allowed;
    std::optional<Cores> wanted;
    Cores dut;
    Cores expected;  // forward send, forward receive, reverse send, reverse receive; of the first queue, of the second,
                     // ...
    std::size_t queues = 1;
    bool kernel_ports = false;
};

TEST(Cores, PlacesByTheTable) {
    const std::vector<Row> rows{
        {"one core does everything", {0}, {}, {}, {0, 0, 0, 0}},
        {"two cores, one is the DUT's", {0, 1}, {}, {1}, {0, 0, 0, 0}},
        {"two cores, no DUT here: never both", {0, 1}, {}, {}, {1, 1, 1, 1}},
        {"two cores, both are the DUT's: never both", {0, 1}, {}, {0, 1}, {1, 1, 1, 1}},
        {"the DUT has the only core: shared", {0}, {}, {0}, {0, 0, 0, 0}},
        {"four cores, one is the system's: a core a port", {0, 1, 2, 3}, {}, {}, {1, 2, 2, 1}},
        {"four cores without the DUT's: a core a role", {0, 1, 2, 3, 4}, {}, {4}, {0, 1, 2, 3}},
        {"ports of the kernel: one core", {0, 1, 2, 3}, {}, {}, {1, 1, 1, 1}, 1, true},
        {"ports of the kernel beside their DUT: one core", {0, 1, 2, 3}, {}, {0, 2}, {1, 1, 1, 1}, 1, true},
        {"ports of the kernel with two queues: a core a queue",
         {0, 1, 2, 3},
         {},
         {0},
         {1, 1, 1, 1, 2, 2, 2, 2},
         2,
         true},
        {"ports of the kernel on the user's cores", {0, 1, 2, 3}, Cores{2, 3}, {}, {2, 3, 3, 2}, 1, true},
        {"many cores: the first is left to the system", {0, 1, 2, 3, 4, 5, 6}, {}, {6}, {1, 2, 3, 4}},
        {"the user's order", {0, 1, 2, 3, 4}, Cores{4, 2, 1, 3}, {}, {4, 2, 1, 3}},
        {"two queues on eight cores: a core a role",
         {0, 1, 2, 3, 4, 5, 6, 7},
         Cores{0, 1, 2, 3, 4, 5, 6, 7},
         {},
         {0, 1, 2, 3, 4, 5, 6, 7},
         2},
        {"two queues on four cores: a core a queue of a port", {0, 1, 2, 3, 4}, {}, {4}, {0, 1, 1, 0, 2, 3, 3, 2}, 2},
        {"two queues on two cores: a core a queue of both ports", {0, 1, 2}, {}, {2}, {0, 0, 0, 0, 1, 1, 1, 1}, 2},
        {"three queues on two cores: a core a port", {0, 1, 2}, {}, {2}, {0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0}, 3},
        {"two queues on a core", {0}, {}, {}, {0, 0, 0, 0, 0, 0, 0, 0}, 2},
        {"the user's only core, though the DUT has it", {0, 1}, Cores{1}, {1}, {1, 1, 1, 1}},
    };
    for (const Row& row : rows) {
        const RoleCores cores = place_roles(row.allowed, {row.wanted, row.dut, row.queues, row.kernel_ports});
        Cores placed;
        for (std::size_t queue = 0; queue < row.queues; ++queue) {
            for (std::size_t direction = 0; direction < 2; ++direction) {
                placed.push_back(cores.send[direction].at(queue));
                placed.push_back(cores.receive[1 - direction].at(queue));
            }
        }
        EXPECT_EQ(placed, row.expected) << row.name;
    }
}

// Two senders of a port must not run on two cores: they share its queue.
TEST(Cores, SeveralPortsArePlacedByPort) {
    Cores many(40);
    std::iota(many.begin(), many.end(), 0U);
    for (const std::size_t ports : {3U, 4U, 16U}) {
        const CoreWishes wishes{.cores = many, .dut_cores = {}, .queues = 1, .ports = ports};
        const RoleCores placed = place_roles(many, wishes);
        ASSERT_EQ(placed.send.size(), ports);
        ASSERT_EQ(placed.receive.size(), ports);
        EXPECT_EQ(placed.distinct().size(), 2 * ports);
        const RoleCores few = place_roles({0, 1, 2}, {.cores = {}, .dut_cores = {}, .queues = 1, .ports = ports});
        EXPECT_EQ(few.distinct(), (Cores{1, 2}));
        EXPECT_EQ(few.send, few.receive);
    }
}

TEST(Cores, OtherThreadsAvoidTheDutsCoresAndInTrialsTheLoopsToo) {
    const OtherCores three = other_cores({0, 1, 2}, {0}, {2});
    EXPECT_EQ(three.between_trials, (Cores{0, 1}));
    EXPECT_EQ(three.during_trials, Cores{1});
    const OtherCores two = other_cores({0, 1}, {0}, {1});
    EXPECT_EQ(two.between_trials, Cores{0});
    EXPECT_EQ(two.during_trials, Cores{1});
    const OtherCores none_is_left = other_cores({0, 1}, {0, 1}, {});
    EXPECT_EQ(none_is_left.between_trials, (Cores{0, 1}));
    EXPECT_EQ(none_is_left.during_trials, (Cores{0, 1}));
    EXPECT_EQ(other_cores({0}, {0}, {0}).between_trials, Cores{0});
}

TEST(Cores, AThreadRunsWhereItIsPut) {
    std::thread([] {
        const Cores before = allowed_cores();
        run_on(0, {before.back()});
        EXPECT_EQ(allowed_cores(), Cores{before.back()});
        run_on(0, {});
        EXPECT_EQ(allowed_cores(), Cores{before.back()});
    }).join();
}

TEST(Cores, AMissingCoreIsNamed) {
    try {
        place_roles({0, 1}, {.cores = Cores{0, 7}, .dut_cores = {}});
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), "cores");
        EXPECT_NE(std::string(error.what()).find("core 7"), std::string::npos);
    }
}

}  // namespace
}  // namespace dutperf
