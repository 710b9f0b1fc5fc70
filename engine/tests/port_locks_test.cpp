// SPDX-License-Identifier: Apache-2.0
// One engine at a time has a port, by what the port is.
#include "port/port_locks.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "platform/error.hpp"

namespace dutperf {
namespace {

class Locking : public testing::Test {
protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "locks-XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    [[nodiscard]] std::string at(const std::string& name) const { return folder_ + "/" + name; }
    [[nodiscard]] std::vector<LockedPort> left(const std::string& text) const {
        return {{.side = "left", .spec = parse_port_spec(text, "left.port")}};
    }
    // Empty: the port can be had.
    [[nodiscard]] std::string refusal(const std::string& text) const {
        try {
            const PortLocks locks(left(text), folder_);
            return locks.warning();
        } catch (const Error& error) {
            return error.code() + " " + error.field() + " " + error.what();
        }
    }

    std::string folder_;
};

TEST_F(Locking, RefusesAPortOfAnotherRunAndNamesIt) {
    {
        const PortLocks locks(left("af_packet:lo"), folder_);
        const std::string refused = refusal("af_packet:lo");
        EXPECT_TRUE(refused.starts_with("port_away left.port the left port (lo) is in use")) << refused;
        EXPECT_NE(refused.find("process " + std::to_string(getpid()) + " ("), std::string::npos) << refused;
    }
    EXPECT_EQ(refusal("af_packet:lo"), "");
}

TEST_F(Locking, AfterAKilledProcessThePortIsFree) {
    std::array<int, 2> ready{};
    ASSERT_EQ(pipe(ready.data()), 0);
    const pid_t child = fork();
    if (child == 0) {
        const PortLocks locks(left("lo"), folder_);
        if (write(ready[1], "x", 1) == 1) pause();
        _exit(1);
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    EXPECT_NE(refusal("lo"), "");
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_EQ(refusal("lo"), "");
    close(ready[0]);
    close(ready[1]);
}

TEST_F(Locking, TellsPortsByWhatTheyAre) {
    const std::string socket = at("s"), same = folder_ + "/./s", other = at("t");
    struct Row {
        std::string held, wanted;
        bool is_free;
    };
    const std::vector<Row> rows{
        {"lo", "af_xdp:lo", false},
        {"lo", "vdev:net_pcap0,iface=lo", false},
        {"vdev:net_pcap7,rx_iface=lo,tx_pcap=/dev/null", "af_packet:lo", false},
        {"0000:01:00.0", "01:00.0,key=value", false},
        {"0000:01:00.0", "0000:01:00.1", true},
        {"memif:" + socket, "memif:" + same + ",role=server", false},
        {"memif:" + socket + ",id=0", "memif:" + socket + ",id=1", true},
        {"virtio_user:" + socket, "virtio_user:" + other, true},
        {"vhost_user:" + socket, "vdev:net_vhost0,iface=" + same, false},
        {"vdev:net_pcap0,tx_pcap=" + socket, "vdev:net_pcap1,tx_pcap=" + socket, false},
        {"vdev:net_pcap0,rx_pcap=" + socket, "vdev:net_pcap1,rx_pcap=" + socket, true},
        {"vdev:net_pcap0,tx_pcap=/dev/null", "vdev:net_pcap0,tx_pcap=/dev/null", true},
        {"ring", "ring", true},
        {"null", "null", true},
        {"vdev:net_null0", "vdev:net_null0", true},
    };
    for (const Row& row : rows) {
        const PortLocks locks(left(row.held), folder_);
        EXPECT_EQ(refusal(row.wanted).empty(), row.is_free) << row.held << " and " << row.wanted;
    }
}

TEST_F(Locking, RefusesOnePortAsTwoOfARun) {
    const std::string socket = at("s");
    struct Row {
        std::string left, right;
        bool is_one;
    };
    const std::vector<Row> rows{
        {"lo", "lo", true},
        {"af_packet:lo", "af_xdp:lo", true},
        {"0000:01:00.0", "01:00.0", true},
        {"memif:" + socket, "memif:" + socket, true},
        {"memif:" + socket + ",id=0", "memif:" + socket + ",id=1", false},
        {"memif:" + socket, "memif:" + socket + ",role=server", false},
        {"virtio_user:" + socket, "vhost_user:" + socket, false},
        {"vdev:net_pcap0,rx_iface=lo", "vdev:net_pcap1,tx_iface=lo", false},
        {"ring", "ring", false},
        {"null", "null", false},
    };
    for (const Row& row : rows) {
        std::vector<LockedPort> both = left(row.left);
        both.push_back({.side = "right", .spec = parse_port_spec(row.right, "right.port")});
        std::string refused;
        try {
            const PortLocks locks(both, folder_);
        } catch (const Error& error) {
            refused = error.code() + " " + error.field() + " " + error.what();
        }
        EXPECT_EQ(refused.starts_with("bad_request right.port left and right are the same port"), row.is_one)
            << row.left << " and " << row.right << ": " << refused;
        EXPECT_EQ(refused.empty(), !row.is_one) << refused;
    }
}

TEST(ShortCommand, IsCutBetweenTwoCharacters) {
    const std::string half = std::string(199, 'a') + "\xC3\xA9 and more";
    EXPECT_EQ(short_command(half), std::string(199, 'a') + "...");
    EXPECT_EQ(short_command(std::string("dutperf\0run\n-x\0", 15)), "dutperf run -x");
    EXPECT_EQ(short_command("\xC3\xA9"), "\xC3\xA9");
}

TEST_F(Locking, FollowsNoLink) {
    std::ofstream(at("victim")) << "precious";
    const std::string lock = resources_of(parse_port_spec("lo", "left.port")).at(0);
    std::filesystem::create_symlink(at("victim"), at(lock));
    EXPECT_NE(refusal("lo"), "");
    std::string word;
    std::ifstream(at("victim")) >> word;
    EXPECT_EQ(word, "precious");
}

TEST_F(Locking, WithoutAPlaceForLocksThereIsAWarning) {
    const PortLocks locks(left("lo"), folder_ + "/missing");
    EXPECT_NE(locks.warning().find("not locked against other runs"), std::string::npos) << locks.warning();
}

}  // namespace
}  // namespace dutperf
