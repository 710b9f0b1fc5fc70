// SPDX-License-Identifier: Apache-2.0
#include "port/port.hpp"

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_ring.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_ether.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "frame/headers.hpp"
#include "port/error.hpp"

namespace dutperf {

namespace {

constexpr std::uint16_t kOverheadOfMtu = 18;  // Ethernet header and FCS
constexpr unsigned kPoolCache = 256;
constexpr std::uint32_t kTransmitRing = 1024;

[[noreturn]] void unavailable(const PortOptions& options, const std::string& message) { throw Error("port_unavailable", message, options.side + ".port"); }

// Frames in the kernel's ring stand in slots of a power of two; 128 bytes of each are the kernel's.
std::string af_packet_arguments(const PortOptions& options) {
    const std::uint32_t slot = receive_buffer_size(options.max_frame_size);
    const std::uint32_t count = std::bit_ceil(options.receive_ring);
    const std::uint32_t block = std::max(slot, std::min<std::uint32_t>(65536, slot * count));
    // Straight to a NIC's driver, whose queue discipline might delay or reorder. But on a veth without one, the kernel would keep a frame that the other
    // end has no room for and send it again later: only with a queue discipline is such a frame dropped, once and counted.
    const bool virtual_link = kernel_interface(options.spec.argument)->kind == "veth";
    return "iface=" + options.spec.argument + ",qpairs=" + std::to_string(options.queues) + ",qdisc_bypass=" + (virtual_link ? "0" : "1") +
           ",framesz=" + std::to_string(slot) + ",blocksz=" + std::to_string(block) + ",framecnt=" + std::to_string(count);
}

struct Vdev {
    std::string name, arguments;
};

Vdev vdev_of(const PortOptions& options) {
    const std::string& argument = options.spec.argument;
    switch (options.spec.kind) {
        case PortSpec::Kind::af_packet: return {"net_af_packet_" + options.side, af_packet_arguments(options)};
        case PortSpec::Kind::af_xdp:
            return {"net_af_xdp_" + options.side, "iface=" + argument + ",start_queue=0,queue_count=" + std::to_string(options.queues)};
        case PortSpec::Kind::null: return {"net_null_" + options.side, "no-rx=1"};
        default: break;
    }
    const auto comma = argument.find(',');
    return {argument.substr(0, comma), comma == std::string::npos ? "" : argument.substr(comma + 1)};
}

rte_ring* joining_ring(const std::string& name, std::uint32_t size) {
    if (rte_ring* ring = rte_ring_lookup(name.c_str())) return ring;
    rte_ring* ring = rte_ring_create(name.c_str(), std::bit_ceil(size), SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (ring == nullptr) throw Error("no_memory", "no memory for a ring of " + std::to_string(size) + " frames");
    return ring;
}

// Of the driver's queues the port uses the first of so many. The ring driver counts a queue's frames beside the pointer to its ring, 24 bytes for each: in
// neighbouring queues two cores would write to one cache line with every burst, and wait for each other.
std::uint16_t queues_apart(const PortOptions& options) {
    constexpr std::uint16_t kApart = 3;
    if (options.spec.kind != PortSpec::Kind::ring || options.queues == 1) return 1;
    return std::clamp<std::uint16_t>(RTE_PMD_RING_MAX_RX_RINGS / options.queues, 1, kApart);
}

// Two ports joined in memory: what one sends on a queue the other receives on that queue. Whichever is opened first makes the rings of both.
int make_ring_port(const PortOptions& options) {
    std::vector<rte_ring*> to_right, to_left;
    const std::uint16_t apart = queues_apart(options);
    for (unsigned queue = 0; queue < options.queues; ++queue) {
        to_right.insert(to_right.end(), apart, joining_ring("dutperf_to_right_" + std::to_string(queue), options.receive_ring));
        to_left.insert(to_left.end(), apart, joining_ring("dutperf_to_left_" + std::to_string(queue), options.receive_ring));
    }
    const bool left = options.side == "left";
    rte_ring** receive = (left ? to_left : to_right).data();
    rte_ring** transmit = (left ? to_right : to_left).data();
    const auto queues = static_cast<unsigned>(to_left.size());
    return rte_eth_from_rings(("dutperf_" + options.side).c_str(), receive, queues, transmit, queues, SOCKET_ID_ANY);
}

void require_packet_privilege(const PortOptions& options) {
    const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        close(fd);
        return;
    }
    if (errno == EPERM || errno == EACCES) {
        throw Error("no_privilege", "packet sockets on " + options.spec.argument + " need root (or the capability CAP_NET_RAW)", options.side + ".port");
    }
    unavailable(options, std::string("packet sockets do not work here: ") + std::strerror(errno));
}

}  // namespace

std::uint32_t receive_buffer_size(std::uint16_t max_frame_size) { return std::bit_ceil(std::uint32_t{max_frame_size} + 128U); }

// As rte_pktmbuf_pool_create() does, but buffers may cross page borders: a device's addresses are virtual ones here, contiguous wherever ours are. In 4 kB
// pages each buffer would otherwise begin a page, and all their headers fall into one set of the first-level cache.
Pool make_pool(const std::string& name, unsigned count, std::uint32_t frame_size) {
    const auto room = static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM + std::max<std::uint32_t>(2048, RTE_ALIGN_CEIL(frame_size, 64U)));
    rte_pktmbuf_pool_private size{.mbuf_data_room_size = room, .mbuf_priv_size = 0, .flags = 0};
    Pool pool(rte_mempool_create_empty(name.c_str(), count, static_cast<unsigned>(sizeof(rte_mbuf)) + room, kPoolCache, sizeof size, SOCKET_ID_ANY,
                                       RTE_MEMPOOL_F_NO_IOVA_CONTIG));
    const bool made = pool && rte_mempool_set_ops_byname(pool.get(), rte_mbuf_best_mempool_ops(), nullptr) == 0;
    if (made) rte_pktmbuf_pool_init(pool.get(), &size);
    if (!made || rte_mempool_populate_default(pool.get()) < 0) {
        throw Error("no_memory", "no memory for " + std::to_string(count) + " frames of " + std::to_string(room) + " bytes: " + rte_strerror(rte_errno));
    }
    rte_mempool_obj_iter(pool.get(), rte_pktmbuf_init, nullptr);
    return pool;
}

Device::Device(const PortOptions& options) {
    const std::string& argument = options.spec.argument;
    if (options.spec.kind == PortSpec::Kind::ring) {
        const int port = make_ring_port(options);
        if (port < 0) unavailable(options, "the ring port could not be made");
        id_ = static_cast<std::uint16_t>(port);
        made_ = "net_ring_dutperf_" + options.side;
        return;
    }
    if (options.spec.kind == PortSpec::Kind::pci) {
        if (!std::filesystem::exists("/sys/bus/pci/devices/" + argument)) unavailable(options, "there is no PCI device " + argument);
        if (rte_eth_dev_get_port_by_name(argument.c_str(), &id_) != 0) {
            unavailable(options, "no DPDK driver took the PCI device " + argument +
                                     ": bind it to vfio-pci (dpdk-devbind.py), or use a driver that shares it with the kernel");
        }
        return;
    }
    const Vdev vdev = vdev_of(options);
    if (const int error = rte_eal_hotplug_add("vdev", vdev.name.c_str(), vdev.arguments.c_str()); error != 0) {
        unavailable(options, "the device " + vdev.name + " (" + vdev.arguments + ") could not be made: " + rte_strerror(-error));
    }
    made_ = vdev.name;
    if (rte_eth_dev_get_port_by_name(vdev.name.c_str(), &id_) != 0) unavailable(options, "the device " + vdev.name + " is no network port");
}

Device::~Device() {
    rte_eth_dev_stop(id_);
    rte_eth_dev_close(id_);
    if (!made_.empty()) rte_eal_hotplug_remove("vdev", made_.c_str());
}

Port::Port(const PortOptions& options) : options_(options), queues_apart_(queues_apart(options)) {
    if (options_.spec.uses_kernel_interface()) {
        check_interface();
        watch_.emplace();
    }
    device_.emplace(options_);
    configure();
}

void Port::check_interface() const {
    const std::string& name = options_.spec.argument;
    const auto interface = kernel_interface(name);
    if (!interface) unavailable(options_, "there is no interface '" + name + "' in this network namespace");
    require_packet_privilege(options_);
    if (options_.spec.kind == PortSpec::Kind::af_xdp) require_queues("interface " + name, xdp_queues(name), xdp_queues(name));
    const unsigned needed = options_.max_frame_size - kOverheadOfMtu;
    if (interface->mtu < needed) {
        unavailable(options_, "the MTU of " + name + " is " + std::to_string(interface->mtu) + ", frames of " + std::to_string(options_.max_frame_size) +
                                  " bytes need " + std::to_string(needed));
    }
}

void Port::require_queues(const std::string& what, std::uint16_t receive, std::uint16_t transmit) const {
    if (receive >= options_.queues && transmit >= options_.queues) return;
    throw Error("port_unavailable",
                "the " + what + " of the " + side() + " port offers " + std::to_string(receive) + " receive and " + std::to_string(transmit) +
                    " transmit queue(s), not " + std::to_string(options_.queues) + " of each",
                "queues");
}

void Port::configure() {
    rte_eth_dev_info info{};
    if (rte_eth_dev_info_get(id(), &info) != 0) unavailable(options_, "the driver tells nothing about the port");
    rte_eth_conf conf{};
    // virtual drivers name limits that they do not enforce: they get the most that they admit
    const std::uint32_t largest = std::min<std::uint32_t>(info.max_mtu, info.max_rx_pktlen - kOverheadOfMtu);
    conf.rxmode.mtu = std::clamp<std::uint32_t>(options_.max_frame_size - kOverheadOfMtu, std::min<std::uint32_t>(RTE_ETHER_MIN_MTU, largest), largest);
    require_queues("driver " + driver(), info.max_rx_queues, info.max_tx_queues);
    const std::uint64_t hashes = info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
    spreads_by_hash_ = options_.queues > 1 && hashes != 0;
    if (spreads_by_hash_) {
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf = hashes;
    }
    if (options_.hardware.contains(Help::send_at)) send_time_field();
    conf.txmode.offloads = transmit_offloads(options_.hardware, info.tx_offload_capa);
    conf.rxmode.offloads = receive_offloads(options_.hardware, info.rx_offload_capa);
    std::uint16_t receive = static_cast<std::uint16_t>(std::min<std::uint32_t>(std::bit_ceil(options_.receive_ring), 32768)), transmit = kTransmitRing;
    const unsigned pool_size = options_.buffers != 0 ? options_.buffers : options_.max_frame_size > 2048 ? 4095 : 8191;
    receive_pool_ = make_pool("receive_" + options_.side, pool_size * options_.queues, receive_buffer_size(options_.max_frame_size));
    const auto check = [this](int status, const char* step) {
        if (status < 0) unavailable(options_, std::string(step) + " failed: " + rte_strerror(-status));
    };
    const auto queues = static_cast<std::uint16_t>(options_.queues * queues_apart_);
    check(rte_eth_dev_configure(id(), queues, queues, &conf), "configuring the port");
    check(rte_eth_dev_adjust_nb_rx_tx_desc(id(), &receive, &transmit), "sizing the port's rings");
    // a driver may not want more buffers in its ring than the pool has left for frames in flight
    receive = static_cast<std::uint16_t>(std::min<unsigned>(receive, pool_size / 2 + 1));
    for (std::uint16_t queue = 0; queue < queues; ++queue) {
        check(rte_eth_rx_queue_setup(id(), queue, receive, static_cast<unsigned>(SOCKET_ID_ANY), nullptr, receive_pool_.get()), "setting up a receive queue");
        check(rte_eth_tx_queue_setup(id(), queue, transmit, static_cast<unsigned>(SOCKET_ID_ANY), nullptr), "setting up a transmit queue");
    }
    check(rte_eth_dev_start(id()), "starting the port");
    require_help();
    if (options_.spec.kind == PortSpec::Kind::af_packet) widen_packet_sockets(kernel_interface(options_.spec.argument)->index);
    rte_eth_promiscuous_enable(id());  // the tester stands in for more than one host; drivers that cannot need not
    const bool kernel_ring = options_.spec.kind == PortSpec::Kind::af_packet || options_.spec.kind == PortSpec::Kind::ring;
    receive_ring_ = kernel_ring ? std::bit_ceil(options_.receive_ring) : receive;
    transmit_ring_ = kernel_ring ? std::bit_ceil(options_.receive_ring) : transmit;
    rte_ether_addr own{};
    rte_eth_macaddr_get(id(), &own);
    std::ranges::copy(own.addr_bytes, mac_.begin());
    if (options_.mac) mac_ = *options_.mac;
}

// Asked of a port that is running: there is no other way to find out whether its clock can be read.
void Port::require_help() {
    offers_ = offered_by(id(), options_.hardware);
    for (const Help help : options_.hardware) {
        if (offers_.contains(help)) continue;
        throw Error("port_unavailable",
                    "the driver " + driver() + " of the " + side() + " port does not offer " + name_of(help) + "; what it offers: " + to_string(offers_),
                    "hardware");
    }
}

std::string Port::driver() const {
    rte_eth_dev_info info{};
    rte_eth_dev_info_get(id(), &info);
    return info.driver_name != nullptr ? info.driver_name : "unknown";
}

int Port::numa_node() const { return rte_eth_dev_socket_id(id()); }

LinkStatus Port::link() const {
    if (options_.spec.uses_kernel_interface()) {
        const auto interface = kernel_interface(options_.spec.argument);
        return {.up = interface && interface->carrier, .mbps = 0};
    }
    rte_eth_link link{};
    if (rte_eth_link_get_nowait(id(), &link) < 0) return {};
    const bool physical = options_.spec.kind == PortSpec::Kind::pci && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN;
    return {.up = link.link_status != 0, .mbps = physical ? link.link_speed : 0};
}

std::uint32_t Port::limit_rate(std::uint32_t mbps) const {
    rte_eth_link link{};
    const bool known = rte_eth_link_get_nowait(id(), &link) == 0 && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN;
    const std::uint32_t limit = known && mbps >= link.link_speed ? 0 : mbps;
    for (std::uint16_t index = 0; index < options_.queues; ++index) {
        if (limit_queue_rate(id(), queue(index).index, limit)) continue;
        throw Error("port_unavailable",
                    "the driver " + driver() + " of the " + side() + " port does not take a rate limit of " + std::to_string(limit) + " Mbit/s", "hardware");
    }
    return limit;
}

PortCounters Port::counters() {
    PortCounters now;
    rte_eth_stats driver{};
    if (rte_eth_stats_get(id(), &driver) == 0) {
        now.nic_missed = driver.imissed;
        now.no_buffer = driver.rx_nombuf;
        now.receive_errors = driver.ierrors;
        now.driver_sent = driver.opackets;
    }
    if (options_.spec.uses_kernel_interface()) read_kernel_counters(now);
    return now;
}

void Port::read_kernel_counters(PortCounters& into) {
    const auto interface = kernel_interface(options_.spec.argument);
    if (!interface) return;
    socket_drops_ += take_packet_socket_drops(interface->index);
    taken_down_ += watch_->take_downs(interface->index) + (interface->is_up ? 0 : 1);
    into.kernel_socket = socket_drops_;
    into.taken_down = taken_down_;
    into.kernel_backlog = interface->rx_dropped;
    into.interface_sent = interface->tx_packets;
    into.carrier_changes = interface->carrier_changes;
    into.counts_transmitted = true;
    (interface->kind == "veth" ? into.link_input_drops : into.interface_transmit_drops) = interface->tx_dropped;
}

}  // namespace dutperf
