// SPDX-License-Identifier: Apache-2.0
#include "trial/cores.hpp"

#include <gtest/gtest.h>

#include "port/error.hpp"

namespace dutperf {
namespace {

using Cores = std::vector<unsigned>;

struct Row {
    const char* name;
    Cores allowed;
    std::optional<Cores> wanted;
    Cores dut;
    Cores expected;  // forward send, forward receive, reverse send, reverse receive
};

TEST(Cores, PlacesByTheTable) {
    const std::vector<Row> rows{
        {"one core does everything", {0}, {}, {}, {0, 0, 0, 0}},
        {"two cores, one is the DUT's", {0, 1}, {}, {1}, {0, 0, 0, 0}},
        {"two cores, no DUT here: a core a port", {0, 1}, {}, {}, {0, 1, 1, 0}},
        {"the DUT has the only core: shared", {0}, {}, {0}, {0, 0, 0, 0}},
        {"four cores: a core a role", {0, 1, 2, 3}, {}, {}, {0, 1, 2, 3}},
        {"many cores: the first is left to the system", {0, 1, 2, 3, 4, 5, 6}, {}, {6}, {1, 2, 3, 4}},
        {"the user's order", {0, 1, 2, 3, 4}, Cores{4, 2, 1, 3}, {}, {4, 2, 1, 3}},
        {"the user's only core, though the DUT has it", {0, 1}, Cores{1}, {1}, {1, 1, 1, 1}},
    };
    for (const Row& row : rows) {
        const RoleCores cores = place_roles(row.allowed, row.wanted, row.dut);
        EXPECT_EQ((Cores{cores.send[0], cores.receive[0], cores.send[1], cores.receive[1]}), row.expected) << row.name;
    }
}

TEST(Cores, AMissingCoreIsNamed) {
    try {
        place_roles({0, 1}, Cores{0, 7}, {});
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), "cores");
        EXPECT_NE(std::string(error.what()).find("core 7"), std::string::npos);
    }
}

}  // namespace
}  // namespace dutperf
