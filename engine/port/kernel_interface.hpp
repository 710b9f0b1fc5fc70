// SPDX-License-Identifier: Apache-2.0
// State and counters of a kernel network interface that a port uses (af_packet, af_xdp). The counters verify every
// trial independently of the driver.
#pragma once

#include <linux/if_link.h>

#include <cstdint>
#include <optional>
#include <string>

#include "port/link.hpp"

namespace dutperf {

// What the counters of an interface (struct rtnl_link_stats64) say of the tester. A driver may count one frame under
// two names: a sum of losses is an upper bound.
struct InterfaceCounters {
    // Frames that the interface received and the socket did not. They are the sum of
    //   rx_dropped        the queue of a core was full (net.core.netdev_max_backlog), or the driver dropped them (i40e,
    //                     ice; veth: no room for an AF_XDP socket). The kernel also counts frames of unknown protocols
    //                     behind a VLAN tag here, which the socket did get: they are kept from the place where it does
    //                     (ingress_drop.hpp)
    //   rx_missed_errors  the card had no room for them (e1000e, ixgbe, mlx5, r8169)
    //   rx_fifo_errors    likewise, by queue (igb, igc)
    //   rx_over_errors    likewise (tg3, bnx2x)
    // rx_nohandler is no loss: the socket gets these frames (of an inactive member of a bond).
    std::uint64_t not_received = 0;
    // rx_errors: frames that the interface refused, by a wrong FCS or length.
    std::uint64_t receive_errors = 0;
    // tx_packets: frames that left. tx_errors, tx_carrier_errors and the like are not needed: such a frame is not in
    // it.
    std::uint64_t sent = 0;
    // tx_dropped: the queue discipline or the driver dropped them; of a veth, the other end had no room for them.
    std::uint64_t not_sent = 0;
};

InterfaceCounters counters_of(const rtnl_link_stats64& statistics);

struct KernelInterface {
    unsigned index = 0;
    unsigned mtu = 0;
    std::string name;
    std::string kind;                    // "veth", "tun", ...; empty: not a virtual device
    std::string qdisc;                   // "noqueue": none
    unsigned other_end = 0;              // of a veth, its index in the network namespace where it is; 0: unknown
    std::optional<int> other_namespace;  // by its number in this one; nothing: the other end is here, too
    bool has_ethernet_frames = false;
    bool is_up = false;             // administratively up (IFF_UP), whatever the carrier
    bool promiscuous_flag = false;  // as it was set from outside (ip link set NAME promisc on)
    bool carrier = false;
    std::uint32_t xdp_program = 0;  // its ID; 0: none is attached
    std::uint64_t carrier_changes = 0;
    InterfaceCounters counters;
};

// Queries the kernel by rtnetlink, which uses this process' network namespace whatever is mounted on /sys. Nothing if
// there is no such interface.
std::optional<KernelInterface> kernel_interface(const std::string& name);
std::optional<KernelInterface> kernel_interface(unsigned index);

// What the root queue discipline of an interface says of frames that it keeps, which count as sent for a packet socket.
struct QueueDiscipline {
    std::uint32_t requeues = 0;  // how often the driver gave frames back, as the other end of a veth had no room
    std::uint32_t waiting = 0;   // frames in it now
};

// Nothing where the kernel does not say.
std::optional<QueueDiscipline> queue_discipline(unsigned interface_index);

// Frames that a queue discipline held back between two readings, or before or behind them.
struct HeldFrames {
    std::uint64_t times = 0;    // how often
    std::uint64_t waiting = 0;  // most frames at a reading
};

HeldFrames held_between(const QueueDiscipline& before, const QueueDiscipline& after);

// Why an interface is no longer the one that was opened: a clause. Empty: it still is. Nothing instead of its present
// state: it is not there, or the kernel does not tell, which counts as well.
std::string change_since(const KernelInterface& opened, const std::optional<KernelInterface>& now,
                         std::uint32_t needed_mtu);

// The longest packet that the other end of a veth takes; nothing where the kernel does not say it.
std::optional<unsigned> mtu_of_other_end(const KernelInterface& interface);

// The name of the interface's driver (ethtool -i): "veth", "tun", "virtio_net", "igb", ...; empty where it has none.
std::string interface_driver(const std::string& name);

// The interface's flow control (ethtool -a); nothing where its driver does not support it.
std::optional<FlowControl> interface_flow_control(const std::string& name);

// Queues that AF_XDP sockets can use: those that both receive and transmit (ethtool -l); 1 where the driver reports
// none.
std::uint16_t xdp_queues(const std::string& name);

// All receive queues, whether they also transmit or not; 1 where the driver does not report them.
std::uint16_t receive_queues(const std::string& name);

// What rtnetlink events say of an interface. A loss of carrier alone does not count: the other end may be down.
struct InterfaceEvents {
    std::uint64_t downs = 0;  // how often it was taken down; events that the kernel had to drop count as one
    bool removed = false;  // deleted, or moved to another network namespace: sockets on it are dead, even if it returns

    // Adds those of netlink messages about an interface.
    void add(const void* messages, std::size_t length, unsigned interface_index);
};

// Notices what happens to an interface of this network namespace.
class InterfaceWatch {
public:
    InterfaceWatch();
    ~InterfaceWatch();
    InterfaceWatch(const InterfaceWatch&) = delete;
    InterfaceWatch& operator=(const InterfaceWatch&) = delete;

    // Since the last call.
    InterfaceEvents take(unsigned interface_index);

private:
    int fd_;
};

}  // namespace dutperf
