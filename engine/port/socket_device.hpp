// SPDX-License-Identifier: Apache-2.0
// Ports that a UNIX socket connects to another process: a virtual switch or a virtual machine. The socket carries the
// control protocol (vhost-user or memif); frames are in shared-memory queues. A queue belongs to its receiver: it is
// full because the receiver did not empty it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "port/port_options.hpp"

namespace dutperf {

struct DeviceName {
    std::string name, arguments;  // in DPDK's form
};

// The device of a virtio_user, vhost_user or memif port, from the port's options and the user's arguments. Throws Error
// "port_unavailable" for an argument that the options set.
DeviceName socket_device(const PortOptions& options);

// Whether the tester listens on the socket; otherwise the other process does.
bool listens(const PortSpec& spec);

// Removes a socket that a dead process left where the tester will listen. Throws Error "port_away" if there is no
// socket to connect to, or if another program listens on it; "port_unavailable" if the path is of something else.
void prepare_socket(const PortOptions& options);

// Why the connection failed: a sentence.
std::string connection_error(const PortOptions& options);

// A queue that the other process fills.
struct PeerQueue {
    std::uint32_t room = 0;  // frames that fit into it; 0: there is none
    bool is_known = true;    // otherwise they may be fewer
};

// The client of a memif link makes its queues, and DPDK does not say how large they are: of a server they are known
// only if the user says so, with DPDK's argument rsize.
PeerQueue peer_queue(const PortOptions& options, std::uint16_t port);

// Limits how long DPDK waits on sockets of this path. On its own, DPDK waits forever for another process to connect or
// to answer.
class SocketDeadline {
public:
    SocketDeadline(std::string path, std::chrono::milliseconds timeout);
    ~SocketDeadline();
    SocketDeadline(const SocketDeadline&) = delete;
    SocketDeadline& operator=(const SocketDeadline&) = delete;

    [[nodiscard]] bool passed() const { return passed_; }

private:
    void watch(std::chrono::milliseconds timeout);

    std::string path_;
    std::atomic<bool> passed_{false};
    bool finished_ = false;
    std::mutex mutex_;
    std::condition_variable ends_;
    std::thread thread_;
};

}  // namespace dutperf
