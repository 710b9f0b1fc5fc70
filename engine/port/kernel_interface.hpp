// SPDX-License-Identifier: Apache-2.0
// State and counters of a kernel network interface that a port uses (af_packet, af_xdp). The counters verify every
// trial independently of the driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "port/link.hpp"

namespace dutperf {

struct KernelInterface {
    unsigned index = 0;
    unsigned mtu = 0;
    std::string kind;    // "veth", "tun", ...; empty: not a virtual device
    std::string qdisc;   // "noqueue": none
    bool is_up = false;  // administratively up (IFF_UP), whatever the carrier
    bool carrier = false;
    std::uint32_t xdp_program = 0;  // its ID; 0: none is attached
    std::uint64_t carrier_changes = 0;
    std::uint64_t rx_dropped = 0, tx_packets = 0, tx_dropped = 0;
};

// Queries the kernel by rtnetlink, which uses this process' network namespace whatever is mounted on /sys. Nothing if
// there is no such interface.
std::optional<KernelInterface> kernel_interface(const std::string& name);

// The interface's flow control (ethtool -a); nothing where its driver does not support it.
std::optional<FlowControl> interface_flow_control(const std::string& name);

// Queues that AF_XDP sockets can use: those that both receive and transmit (ethtool -l); 1 where the driver reports
// none.
std::uint16_t xdp_queues(const std::string& name);

// All receive queues, whether they also transmit or not; 1 where the driver does not report them.
std::uint16_t receive_queues(const std::string& name);

// The packet sockets that this process has on an interface.
class PacketSockets {
public:
    // Finds them and widens their send buffers. At the default limit, the kernel would leave frames in the transmit
    // ring that the driver has reported as sent, and they would leave late or never.
    explicit PacketSockets(unsigned interface_index);

    // Frames that the kernel dropped since the last call because the sockets were full (PACKET_STATISTICS).
    [[nodiscard]] std::uint64_t take_drops() const;

private:
    std::vector<int> sockets_;
};

// Notices when an interface of this network namespace is taken down (rtnetlink events). A loss of carrier alone does
// not count: the other end may be down.
class InterfaceWatch {
public:
    InterfaceWatch();
    ~InterfaceWatch();
    InterfaceWatch(const InterfaceWatch&) = delete;
    InterfaceWatch& operator=(const InterfaceWatch&) = delete;

    // How often this interface was taken down since the last call. Events that the kernel had to drop count as one.
    std::uint64_t take_downs(unsigned interface_index);

private:
    int fd_;
};

}  // namespace dutperf
