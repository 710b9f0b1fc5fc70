// SPDX-License-Identifier: Apache-2.0
// Ports that a socket connects to another process: a driver with arguments, or an error message about the socket.
#include "port/socket_device.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "platform/error.hpp"

namespace dutperf {
namespace {

PortOptions options_of(const std::string& text) {
    return {.side = "left",
            .spec = parse_port_spec(text, "left.port"),
            .mac = {},
            .receive_ring = 1024,
            .max_frame_size = 1522,
            .queues = 2};
}

std::string error_message(const std::string& text) {
    try {
        prepare_socket(options_of(text));
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

class Sockets : public testing::Test {
protected:
    Sockets() { std::filesystem::create_directory(folder_); }
    ~Sockets() override {
        if (fd_ >= 0) close(fd_);
        std::filesystem::remove_all(folder_);
    }
    void make_socket(bool listening) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::ranges::copy(path_, address.sun_path);
        fd_ = socket(AF_UNIX, SOCK_STREAM, 0);
        ASSERT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        if (listening) {
            ASSERT_EQ(listen(fd_, 1), 0);
        }
    }
    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("dutperf-sockets-" + std::to_string(getpid()));
    std::string path_ = folder_ / "s";
    int fd_ = -1;
};

TEST(SocketDevice, IsMadeOfThePortsOptionsAndTheUsersArguments) {
    EXPECT_EQ(socket_device(options_of("virtio_user:/s")).arguments, "path=/s,queue_size=1024,queues=2");
    EXPECT_EQ(socket_device(options_of("virtio_user:/s,packed_vq=1,server=1")).arguments,
              "packed_vq=1,path=/s,queue_size=1024,queues=2,server=1");
    EXPECT_EQ(socket_device(options_of("vhost_user:/s,client=1")).arguments, "client=1,iface=/s,queues=2");
    EXPECT_EQ(socket_device(options_of("memif:/s")).arguments,
              "bsize=2048,role=client,rsize=10,socket=/s,socket-abstract=no");
    EXPECT_EQ(socket_device(options_of("memif:/s,role=server,id=3")).arguments,
              "bsize=2048,id=3,role=server,rsize=10,socket=/s,socket-abstract=no");
    EXPECT_EQ(socket_device(options_of("virtio_user:/s")).name, "net_virtio_user_left");
    EXPECT_THROW((void)socket_device(options_of("virtio_user:/s,queue_size=64")), Error);
    EXPECT_THROW((void)socket_device(options_of("vhost_user:/s,iface=/t")), Error);
}

// The client of a memif link makes the queues, however large.
TEST(SocketDevice, TheQueuesOfAMemifServerAreAsLargeAsTheUserSays) {
    const auto queue = [](const std::string& text) { return peer_queue(options_of(text), 0); };
    EXPECT_TRUE(queue("memif:/s").is_known);
    EXPECT_EQ(queue("memif:/s").room, 1024U);
    EXPECT_FALSE(queue("memif:/s,role=server").is_known);
    EXPECT_GE(queue("memif:/s,role=server").room, 16384U) << "as large as may be: a turn empties it";
    EXPECT_TRUE(queue("memif:/s,role=server,rsize=9").is_known);
    EXPECT_EQ(queue("memif:/s,role=server,rsize=9").room, 512U);
    EXPECT_FALSE(queue("memif:/s,role=server,rsize=many").is_known);
    EXPECT_NE(socket_device(options_of("memif:/s,role=server,rsize=9")).arguments.find("rsize=9"), std::string::npos);
    EXPECT_THROW((void)socket_device(options_of("memif:/s,rsize=9")), Error);
}

TEST(SocketDevice, ListensOrConnects) {
    EXPECT_FALSE(listens(parse_port_spec("virtio_user:/s", "")));
    EXPECT_TRUE(listens(parse_port_spec("virtio_user:/s,server=1", "")));
    EXPECT_TRUE(listens(parse_port_spec("vhost_user:/s", "")));
    EXPECT_FALSE(listens(parse_port_spec("vhost_user:/s,client=1", "")));
    EXPECT_FALSE(listens(parse_port_spec("memif:/s,id=1", "")));
    EXPECT_TRUE(listens(parse_port_spec("memif:/s,role=server", "")));
}

TEST_F(Sockets, MustExistBeforeThePortConnects) {
    EXPECT_NE(error_message("virtio_user:" + path_).find("no socket " + path_), std::string::npos);
    EXPECT_NE(error_message("memif:" + path_).find(",role=server"), std::string::npos)
        << "the message names the swapped roles";
    EXPECT_EQ(error_message("vhost_user:" + path_ + ",client=1"), "") << "it connects once there is one";
    std::ofstream(path_) << "text";
    EXPECT_NE(error_message("virtio_user:" + path_).find("is not a socket"), std::string::npos);
}

TEST_F(Sockets, OfOtherProgramsAreNotRemoved) {
    make_socket(true);
    EXPECT_NE(error_message("vhost_user:" + path_).find("another program listens"), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(path_));
    EXPECT_EQ(error_message("virtio_user:" + path_), "");
}

TEST_F(Sockets, OfDeadProcessesAreRemoved) {
    make_socket(false);
    close(fd_);
    fd_ = -1;
    EXPECT_EQ(error_message("vhost_user:" + path_), "");
    EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Sockets, AreNotMadeOverAFileOrWithoutAFolder) {
    EXPECT_NE(error_message("vhost_user:" + (folder_ / "none" / "s").string()).find("no folder"), std::string::npos);
    std::ofstream(path_) << "text";
    EXPECT_NE(error_message("virtio_user:" + path_ + ",server=1").find("is a file"), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(Sockets, AreWaitedForUntilTheDeadline) {
    make_socket(true);
    const SocketDeadline deadline(path_, std::chrono::milliseconds(50));
    EXPECT_LT(accept(fd_, nullptr, nullptr), 0);
    EXPECT_TRUE(deadline.passed());
}

}  // namespace
}  // namespace dutperf
