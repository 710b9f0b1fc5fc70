// SPDX-License-Identifier: Apache-2.0
// Ports that a UNIX socket joins to another process: a virtual switch, a virtual machine. The socket carries the
// agreement (the vhost-user protocol, memif's), frames lie in queues of shared memory. A queue is the receiver's: what
// its sender finds full is full because the receiver did not fetch.
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
    std::string name, arguments;  // as DPDK has them
};

// The driver for a port of kind virtio_user, vhost_user or memif, with what the port's options and the user's arguments
// make of it. Throws Error "port_unavailable" for an argument that the options own.
DeviceName socket_device(const PortOptions& options);

// Whether the tester makes the socket and the other process comes, or the other way round.
bool listens(const PortSpec& spec);

// Takes away a socket that a dead process left where the tester is to listen. Throws Error "port_unavailable" where
// there is none to connect to, or another program's to listen on.
void prepare_socket(const PortOptions& options);

// Why no device could be made: a sentence.
std::string why_unjoined(const PortOptions& options);

// Frames that a queue holds which the other process fills; 0 while there is none.
std::uint32_t receive_room(const PortOptions& options, std::uint16_t port);

// While it lives, DPDK waits on sockets of this path for a limited time only; by itself it waits for ever for another
// process to connect or to answer.
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
    bool over_ = false;
    std::mutex mutex_;
    std::condition_variable ends_;
    std::thread thread_;
};

}  // namespace dutperf
