// SPDX-License-Identifier: Apache-2.0
// What DPDK's driver for AF_XDP (net_af_xdp) leaves undone: it does not count frames that met a full ring, keeps the
// usual limit on what its sockets may have in flight, and a killed process leaves its XDP program on the interface.
#pragma once

#include <cstdint>
#include <vector>

namespace dutperf {

// Before the driver attaches a program: it is to be the only one. A dispatcher for several would be pinned in the file
// system and outlive the process.
void attach_xdp_directly();

// AF_XDP sockets of this process; the driver keeps them to itself, so they are found among the open files.
std::vector<int> xdp_sockets();

// The sockets and the program of one port, from when the driver has started it until just before it is closed.
class XdpPort {
public:
    // `before`: the sockets that other ports had when this one was made.
    XdpPort(unsigned interface_index, const std::vector<int>& before);
    ~XdpPort();
    XdpPort(const XdpPort&) = delete;
    XdpPort& operator=(const XdpPort&) = delete;

    // Frames that the kernel dropped since the port was made because a receive ring was full (XDP_STATISTICS,
    // rx_ring_full).
    [[nodiscard]] std::uint64_t ring_full() const;

private:
    std::vector<int> sockets_;
    int link_ = -1;
};

}  // namespace dutperf
