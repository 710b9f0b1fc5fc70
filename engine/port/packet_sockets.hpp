// SPDX-License-Identifier: Apache-2.0
// Completes what DPDK's af_packet driver leaves undone, and undoes what it does to received frames. The driver keeps
// the default send buffer of its sockets, does not count the frames that they had no room for, receives what this
// machine itself sends, and has the kernel join IP fragments.
#pragma once

#include <cstdint>
#include <vector>

namespace dutperf {

// To be called before the driver opens the sockets of a port. Those of one queue join no fanout group. Those of several
// join one that leaves fragments as they are. None receives what this machine sends on the interface, which would count
// as the DUT's; in a group that takes Linux 6.2.
void prepare_packet_sockets(std::uint16_t queues);

// The packet sockets that this process has on an interface.
class PacketSockets {
public:
    // Finds them and widens their send buffers. At the default limit, the kernel would leave frames in the transmit
    // ring that the driver has reported as sent, and they would leave late or never.
    explicit PacketSockets(unsigned interface_index);

    // Frames that the kernel dropped since the last call because the sockets were full (PACKET_STATISTICS).
    [[nodiscard]] std::uint64_t take_drops() const;

    // Whether the kernel joins the fragments of an IPv4 packet before a socket receives it.
    [[nodiscard]] bool joins_fragments() const;

private:
    std::vector<int> sockets_;
};

}  // namespace dutperf
