// SPDX-License-Identifier: Apache-2.0
#include "port/port.hpp"

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_ether.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "frame/headers.hpp"
#include "port/error.hpp"

namespace dutperf {

namespace {

constexpr std::uint16_t kOverheadOfMtu = 18;  // Ethernet header and FCS
constexpr std::uint32_t kTransmitRing = 1024;

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
    receive_pool_ = make_pool({.name = "receive_" + options_.side,
                               .count = pool_size * options_.queues,
                               .frame_size = receive_buffer_size(options_.max_frame_size),
                               .reach = options_.reach,
                               .numa_node = numa_node()});
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
