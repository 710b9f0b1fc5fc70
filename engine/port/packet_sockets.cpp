// SPDX-License-Identifier: Apache-2.0
#include "port/packet_sockets.hpp"

#include <linux/if_packet.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "platform/export.hpp"
#include "port/own_sockets.hpp"

namespace {

bool joins_groups = true;

constexpr std::uint32_t kDefragment = PACKET_FANOUT_FLAG_DEFRAG,
                        kIgnoreOutgoing = 0x4000;  // PACKET_FANOUT_FLAG_IGNORE_OUTGOING of later headers; unknown to
                                                   // older kernels, which ignore it

int real_setsockopt(int fd, int level, int name, const void* value, socklen_t size) {
    return static_cast<int>(syscall(SYS_setsockopt, fd, level, name, value, size));
}

int join_group(int fd, const void* value) {
    constexpr int kYes = 1;
    if (!joins_groups) return real_setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &kYes, sizeof kYes);
    std::uint32_t fanout = 0;
    std::memcpy(&fanout, value, sizeof fanout);
    fanout = (fanout & ~(kDefragment << 16U)) | (kIgnoreOutgoing << 16U);
    return real_setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &fanout, sizeof fanout);
}

}  // namespace

// DPDK's af_packet driver joins a fanout group with PACKET_FANOUT_FLAG_DEFRAG, and no argument of it says otherwise.
// The kernel then joins the fragments of a packet before the ring: frames that a DUT has fragmented seem to arrive
// whole. This definition takes the C library's place for the driver, which is built in or finds it in the program's
// dynamic symbols. It changes that one call (docs/decisions/0012-packet-sockets.md).
extern "C" DUTPERF_EXPORT int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
    if (level == SOL_PACKET && name == PACKET_FANOUT && size == sizeof(std::uint32_t)) return join_group(fd, value);
    return real_setsockopt(fd, level, name, value, size);
}

namespace dutperf {

namespace {

bool is_packet_socket_on(int fd, unsigned interface_index) {
    sockaddr_ll address{};
    socklen_t length = sizeof address;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return false;
    return address.sll_family == AF_PACKET && address.sll_ifindex == static_cast<int>(interface_index);
}

}  // namespace

void prepare_packet_sockets(std::uint16_t queues) { joins_groups = queues > 1; }

PacketSockets::PacketSockets(unsigned interface_index)
    : sockets_(own_sockets([&](int fd) { return is_packet_socket_on(fd, interface_index); })) {
    std::ranges::for_each(sockets_, widen_send_buffer);
}

std::uint64_t PacketSockets::take_drops() const {
    std::uint64_t drops = 0;
    for (const int fd : sockets_) {
        tpacket_stats statistics{};  // a TPACKET_V3 socket would write one more word
        socklen_t size = sizeof statistics;
        if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &size) == 0) drops += statistics.tp_drops;
    }
    return drops;
}

bool PacketSockets::joins_fragments() const {
    return std::ranges::any_of(sockets_, [](int fd) {
        std::uint32_t fanout = 0;
        socklen_t size = sizeof fanout;
        return getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &fanout, &size) == 0 && ((fanout >> 16U) & kDefragment) != 0;
    });
}

}  // namespace dutperf
