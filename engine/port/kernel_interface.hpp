// SPDX-License-Identifier: Apache-2.0
// What the kernel knows of a network interface that a port uses (af_packet, af_xdp): its counters are the second
// witness of every trial.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "port/link.hpp"

namespace dutperf {

struct KernelInterface {
    unsigned index = 0;
    unsigned mtu = 0;
    std::string kind;    // "veth", "tun", ...; empty: no virtual device
    std::string qdisc;   // "noqueue": none
    bool is_up = false;  // not taken down; whether there is anything at the other end is another matter
    bool carrier = false;
    std::uint32_t xdp_program = 0;  // its number; 0: none is attached
    std::uint64_t carrier_changes = 0;
    std::uint64_t rx_dropped = 0, tx_packets = 0, tx_dropped = 0;
};

// Asks the kernel by rtnetlink, so the answer is of this process' network namespace whatever is mounted on /sys.
// Nothing if there is no such interface.
std::optional<KernelInterface> kernel_interface(const std::string& name);

// Of an interface that uses flow control (ethtool -a); nothing where its driver does not know any.
std::optional<FlowControl> interface_flow_control(const std::string& name);

// Queues of an interface that AF_XDP sockets can have: those that receive and transmit (ethtool -l); 1 where its driver
// does not tell of any.
std::uint16_t xdp_queues(const std::string& name);

// Queues at which frames may arrive, whether or not they transmit too; 1 where its driver does not tell.
std::uint16_t receive_queues(const std::string& name);

// Lets the kernel hold as many of this process' frames as an overloaded DUT lets pile up. With the default limit the
// kernel would leave frames in the transmit ring that the driver has reported as sent, and they would leave late or
// never.
void widen_packet_sockets(unsigned interface_index);

// Frames that the kernel dropped since the last call because this process' packet sockets on the interface were full
// (PACKET_STATISTICS).
std::uint64_t take_packet_socket_drops(unsigned interface_index);

// Hears from the kernel when an interface of this network namespace is taken down, which one that only loses its
// carrier is not: there, the other end may be.
class InterfaceWatch {
public:
    InterfaceWatch();
    ~InterfaceWatch();
    InterfaceWatch(const InterfaceWatch&) = delete;
    InterfaceWatch& operator=(const InterfaceWatch&) = delete;

    // How often the kernel said so of this interface since the last call; what it said too much to keep counts as once.
    std::uint64_t take_downs(unsigned interface_index);

private:
    int fd_;
};

}  // namespace dutperf
