// SPDX-License-Identifier: Apache-2.0
#include "port/port.hpp"

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "frame/layout.hpp"
#include "platform/ending.hpp"
#include "platform/error.hpp"
#include "port/left_changes.hpp"
#include "port/mtu.hpp"
#include "port/privileges.hpp"
#include "port/rings.hpp"

namespace dutperf {

namespace {

// the driver's buffers without XDP's headroom; they do not hold the FCS
constexpr unsigned kMaxXdpFrame = 2048 - 256 + kFcsSize;

void require_packet_privilege(const PortOptions& options) {
    const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        close(fd);
        return;
    }
    if (errno == EPERM || errno == EACCES) {
        throw Error("no_privilege",
                    "packet sockets on " + options.spec.argument + " need root (or the capability CAP_NET_RAW)",
                    options.side + ".port");
    }
    unavailable(options, std::string("packet sockets do not work here: ") + std::strerror(errno));
}

void require_xdp_privilege(const PortOptions& options) {
    constexpr std::uint64_t kBuffer = 2048;  // of a frame, without what is added to it
    const std::string missing = missing_for_xdp(kBuffer * receive_pool_frames(options) * options.queues);
    if (missing.empty()) return;
    throw Error("no_privilege",
                "AF_XDP on " + options.spec.argument + " needs root, or the capabilities that are missing: " + missing,
                options.side + ".port");
}

}  // namespace

Port::Port(const PortOptions& options) : options_(options), queues_apart_(queues_apart(options)) {
    if (options_.spec.uses_kernel_interface()) {
        watch_.emplace();
        check_interface();
        interface_driver_ = dutperf::interface_driver(options_.spec.argument);
        take_interface();
    }
    device_.emplace(options_);
    bring_up();
    failed_allocations_.emplace(id());
    if (!options_.spec.uses_kernel_interface())
        link_watch_.emplace(id(), options_.spec.kind == PortSpec::Kind::pci ? options_.spec.argument : "");
}

void Port::check_interface() {
    const std::string& name = options_.spec.argument;
    const auto interface = kernel_interface(name);
    if (!interface) away(options_, "there is no interface '" + name + "' in this network namespace");
    if (!interface->has_ethernet_frames)
        unavailable(options_, name + " has no Ethernet frames" +
                                  (interface->kind == "tun" ? " (it is a TUN device, not a TAP device)" : ""));
    require_packet_privilege(options_);
    if (interface->xdp_program != 0)  // frames that it drops would count as lost by the DUT
        unavailable(options_, name +
                                  " has an XDP program of another program, which gets arriving frames first: end "
                                  "that (one that was left behind: ip link set dev " +
                                  name + " xdp off)");
    if (options_.spec.kind == PortSpec::Kind::af_xdp) {
        if (options_.max_frame_size > kMaxXdpFrame) {
            frames_too_long(options_,
                            "AF_XDP takes frames of up to " + std::to_string(kMaxXdpFrame) + " bytes, not " +
                                std::to_string(options_.max_frame_size) + ": name the port af_packet:" + name,
                            kMaxXdpFrame);
        }
        require_queues("interface " + name, xdp_queues(name), xdp_queues(name));
        require_xdp_privilege(options_);
        if (options_.in_vlans && interface->kind == "veth")
            unavailable(options_,
                        "AF_XDP does not see VLAN tags on a veth, and the DUT is to be asked in VLANs: name "
                        "the port af_packet:" +
                            name);
        attach_xdp_directly();
    }
    require_mtu(options_, *interface);
    opened_ = last_ = *interface;
}

// Whatever would change frames on their way to the port, or make the kernel act on them, is switched off.
void Port::take_interface() {
    const bool packets = options_.spec.kind == PortSpec::Kind::af_packet;
    require_not_ending();
    if (options_.spec.kind == PortSpec::Kind::af_xdp) note_change(options_, note_of_xdp_program());
    if (opened_.promiscuous_flag) note_change(options_, note_of_promiscuous_flag());
    if (packets && opened_.kind == "veth") passing_program_.emplace(opened_.index);
    whole_frames_.emplace(options_);
    hides_outer_tag_ = !packets && !opened_.kind.empty() && opened_.kind != "tun";  // a program made its frames
    if (packets) {
        keep_from_stack();
        prepare_packet_sockets(options_.queues);
    }
}

void Port::keep_from_stack() {
    const std::string& name = options_.spec.argument;
    ingress_drop_.emplace(name);
    if (ingress_drop_->error().empty()) return;
    const std::string why = " (nftables: " + ingress_drop_->error() + ")";
    if (const std::string effect = what_the_stack_does(name); !effect.empty()) {
        unavailable(options_, "this machine " + effect + " on " + name + ", and the tester cannot keep them from it" +
                                  why + ": take the addresses off (ip addr flush dev " + name +
                                  ") and switch forwarding off (net.ipv4.conf." + name + ".forwarding, net.ipv6.conf." +
                                  name + ".forwarding)");
    }
    warnings_.push_back(the_port(side()) + "'s frames also reach this machine's network stack" + why +
                        ": frames that it does not know count as dropped by the tester");
}

CardStamping& Port::card_stamping() {
    if (!card_stamping_) {
        const std::string& interface = options_.spec.argument;
        card_stamping_.emplace(stamping_driver_of(interface), interface + ", " + the_port(side()));
    }
    return *card_stamping_;
}

std::vector<std::string> Port::switched_on() {
    std::vector<std::string> on = whole_frames_ ? whole_frames_->switch_off_again() : std::vector<std::string>{};
    if (ingress_drop_ && !ingress_drop_->error().empty()) {
        if (const std::string effect = what_the_stack_does(options_.spec.argument); !effect.empty())
            on.push_back("the network stack, which " + effect);
    }
    return on;
}

void Port::require_queues(const std::string& what, std::uint16_t receive, std::uint16_t transmit) const {
    if (receive >= options_.queues && transmit >= options_.queues) return;
    throw Error("port_unavailable",
                "the " + what + " of " + the_port(side()) + " offers " + std::to_string(receive) + " receive and " +
                    std::to_string(transmit) + " transmit queue(s), not " + std::to_string(options_.queues) +
                    " of each",
                "queues");
}

// In DPDK's order: capabilities, queues, start, link.
void Port::bring_up() {
    const rte_eth_dev_info info = capabilities();
    configure(info);
    require_mtu(options_, id(), info);
    const std::vector<int> sockets_before = xdp_sockets();
    set_up_queues(info);
    start();
    require_offloads();
    adopt_kernel_sockets(sockets_before);
    read_own_mac();
    enable_promiscuous();
    if (!options_.spec.uses_kernel_interface())
        set_flow_control(id(), options_.flow_control);  // before the link is negotiated
}

rte_eth_dev_info Port::capabilities() const {
    rte_eth_dev_info info{};
    if (rte_eth_dev_info_get(id(), &info) != 0)
        unavailable(options_, "the driver reports no information about the port");
    require_queues("driver " + driver(), info.max_rx_queues, info.max_tx_queues);
    return info;
}

void Port::configure(const rte_eth_dev_info& info) {
    rte_eth_conf conf{};
    conf.rxmode.mtu = mtu_within(options_, info);
    spread_over_queues(info, conf);
    if (options_.offloads.contains(Offload::send_at)) send_time_field();
    conf.txmode.offloads = transmit_offloads(options_.offloads, info.tx_offload_capa);
    conf.rxmode.offloads = receive_offloads(options_.offloads, info.rx_offload_capa);
    check(rte_eth_dev_configure(id(), device_queues(), device_queues(), &conf), "configuring the port");
}

void Port::spread_over_queues(const rte_eth_dev_info& info, rte_eth_conf& conf) {
    const std::uint64_t hashes = info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
    spreads_by_hash_ = options_.queues > 1 && hashes != 0;
    if (!spreads_by_hash_) return;
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf = hashes;
}

void Port::set_up_queues(const rte_eth_dev_info& info) {
    std::uint16_t receive = max_receive_descriptors(options_), transmit = transmit_ring_size(options_, info.speed_capa);
    check(rte_eth_dev_adjust_nb_rx_tx_desc(id(), &receive, &transmit), "sizing the port's rings");
    make_receive_pool();
    const auto node = static_cast<unsigned>(receive_pool_->socket_id);
    for (std::uint16_t queue = 0; queue < device_queues(); ++queue) {
        check(rte_eth_rx_queue_setup(id(), queue, receive, node, nullptr, receive_pool_.get()),
              "setting up a receive queue");
        check(rte_eth_tx_queue_setup(id(), queue, transmit, node, nullptr), "setting up a transmit queue");
    }
    const bool kernel_ring =
        options_.spec.kind == PortSpec::Kind::af_packet || options_.spec.kind == PortSpec::Kind::ring;
    receive_ring_ = kernel_ring ? std::bit_ceil(options_.receive_ring) : receive;
    transmit_ring_ = kernel_ring ? std::bit_ceil(options_.receive_ring) : transmit;
}

void Port::make_receive_pool() {
    receive_pool_ = make_pool({.name = "receive_" + options_.side,
                               .count = receive_pool_frames(options_) * options_.queues,
                               .frame_size = receive_frame_room(options_, driver()),
                               .reach = options_.reach,
                               .numa_node = numa_node()});
    if (numa_node() < 0 || receive_pool_->socket_id == numa_node()) return;
    warnings_.push_back(
        "no memory is free on NUMA node " + std::to_string(numa_node()) + ", where the card of " + the_port(side()) +
        " is: its frames are on another node, which makes every access slower; reserve huge pages there");
}

void Port::start() {
    const int started = rte_eth_dev_start(id());
    if (started < 0 && options_.spec.uses_socket()) away(options_, connection_error(options_));
    check(started, "starting the port");
}

// Completes what DPDK's drivers for kernel sockets leave undone: socket buffers and drop counters.
void Port::adopt_kernel_sockets(const std::vector<int>& sockets_before) {
    if (options_.spec.kind == PortSpec::Kind::af_packet) {
        packet_sockets_.emplace(opened_.index);
        if (packet_sockets_->joins_fragments())
            unavailable(options_, "the kernel joins IP fragments before " + options_.spec.argument +
                                      " receives them, and DPDK's driver does not let the tester change that");
    }
    if (options_.spec.kind == PortSpec::Kind::af_xdp) xdp_.emplace(opened_.index, sockets_before);
}

void Port::check(int status, const char* step) const {
    if (status < 0) unavailable(options_, std::string(step) + " failed: " + rte_strerror(-status));
}

void Port::read_own_mac() {
    rte_ether_addr own{};
    rte_eth_macaddr_get(id(), &own);
    std::ranges::copy(own.addr_bytes, mac_.begin());
    if (options_.mac) mac_ = *options_.mac;
}

// The tester must receive frames to its own address, even if that is not the card's, and to multicast groups (Neighbour
// Discovery). Virtual drivers filter nothing.
void Port::enable_promiscuous() {
    if (options_.spec.uses_kernel_interface()) return enable_kernel_promiscuous();
    if (rte_eth_promiscuous_enable(id()) == 0 || !options_.spec.does_dma()) return;
    rte_ether_addr own{}, wanted{};
    rte_eth_macaddr_get(id(), &own);
    std::ranges::copy(mac_, wanted.addr_bytes);
    const bool accepts_own =
        rte_is_same_ether_addr(&own, &wanted) != 0 || rte_eth_dev_mac_addr_add(id(), &wanted, 0) == 0;
    if (!accepts_own || rte_eth_allmulticast_enable(id()) != 0) {
        unavailable(options_, "the driver " + driver() + " has neither promiscuous mode nor filters for the address " +
                                  to_string(mac_) + " and for groups");
    }
    warnings_.push_back("the driver " + driver() + " of " + the_port(side()) +
                        " has no promiscuous mode: frames for addresses that are not the port's are not counted");
}

// DPDK cleared the flag when it started the port. The flag is whose it was, so the port's own mode is separate.
void Port::enable_kernel_promiscuous() {
    promiscuity_.emplace(opened_.index);
    if (opened_.promiscuous_flag) set_promiscuous_flag(options_.spec.argument);
    if (!promiscuity_->error().empty())
        unavailable(options_, options_.spec.argument + " has no promiscuous mode: " + promiscuity_->error());
}

// A pause frame of the DUT would stop the sender, so that the trial would measure flow control. Ports without flow
// control are left as they are. It is set again once the link is up, because the driver may then use what was
// negotiated.
void Port::require_flow_control() {
    if (!options_.spec.uses_kernel_interface() && set_flow_control(id(), options_.flow_control)) return;
    const auto used = flow_control();
    if (used == options_.flow_control || (!used && options_.flow_control == FlowControl::off)) return;
    const std::string what = "flow control of " + the_port(side()) + " is " +
                             (used ? name_of(*used) : "not known to the driver " + driver()) + ", not " +
                             name_of(options_.flow_control);
    const std::string remedy =
        options_.spec.uses_kernel_interface() ? ": set it with ethtool -A " + options_.spec.argument : "";
    if (options_.flow_control != FlowControl::off) throw Error("port_unavailable", what + remedy, "flow_control");
    warnings_.push_back(what + remedy);
}

std::optional<FlowControl> Port::flow_control() const {
    return options_.spec.uses_kernel_interface() ? interface_flow_control(options_.spec.argument)
                                                 : flow_control_of(id());
}

// The port must be running: otherwise its clock cannot be tested.
void Port::require_offloads() {
    offers_ = offered_by(id(), options_.offloads);
    for (const Offload offload : options_.offloads) {
        if (offers_.contains(offload)) continue;
        throw Error("port_unavailable",
                    "the driver " + driver() + " of " + the_port(side()) + " does not offer " + name_of(offload) +
                        "; what it offers: " + to_string(offers_),
                    "offloads");
    }
}

std::string Port::driver() const {
    rte_eth_dev_info info{};
    rte_eth_dev_info_get(id(), &info);
    return info.driver_name != nullptr ? info.driver_name : "unknown";
}

bool Port::may_leave_checksums_unfinished() const {
    constexpr std::array<std::string_view, 4> kWithoutCards{"veth", "tun", "macvlan", "virtio_net"};
    return std::ranges::find(kWithoutCards, interface_driver_) != kWithoutCards.end();
}

int Port::numa_node() const { return rte_eth_dev_socket_id(id()); }

bool Port::is_card() const { return options_.spec.kind == PortSpec::Kind::pci; }

LinkStatus Port::link() const {
    if (options_.spec.uses_kernel_interface()) {
        const auto interface = kernel_interface(opened_.index);
        return {.up = !removed_ && interface && interface->carrier, .mbps = 0};
    }
    return unplugged() ? LinkStatus{} : link_status(id(), is_card());
}

std::string Port::why_link_is_down() const {
    const auto interface = options_.spec.uses_kernel_interface() ? kernel_interface(opened_.index) : std::nullopt;
    if (interface && !interface->is_up)
        return interface->name + " itself is down: ip link set " + interface->name + " up";
    return "is the cable in, and the other end up?";
}

std::uint32_t Port::limit_rate(std::uint32_t mbps) const {
    rte_eth_link link{};
    const bool has_speed = rte_eth_link_get_nowait(id(), &link) == 0 && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN;
    const std::uint32_t limit = has_speed && mbps >= link.link_speed ? 0 : mbps;
    for (std::uint16_t index = 0; index < options_.queues; ++index) {
        if (limit_queue_rate(id(), queue(index).index, limit)) continue;
        throw Error("port_unavailable",
                    "the driver " + driver() + " of " + the_port(side()) + " does not take a rate limit of " +
                        std::to_string(limit) + " Mbit/s",
                    "offloads");
    }
    return limit;
}

std::optional<unsigned> Port::mtu_of_other_end() const {
    if (!options_.spec.uses_kernel_interface()) return std::nullopt;
    const auto interface = kernel_interface(opened_.index);
    return interface ? dutperf::mtu_of_other_end(*interface) : std::nullopt;
}

PortCounters Port::counters() {
    PortCounters now;
    if (options_.spec.uses_kernel_interface()) read_kernel_counters(now);
    read_driver_counters(now);
    // a veth also counts the frames that an AF_XDP socket had no room for
    if (xdp_ && last_.kind == "veth")
        now.kernel_backlog = veth_drops_(now.kernel_backlog, now.nic_missed + now.kernel_socket);
    if (link_watch_) {
        link_watch_->poll_now();
        now.carrier_changes = link_watch_->changes();
        if (unplugged()) now.change = "the card of " + the_port(side()) + " was unplugged";
    }
    return now;
}

// Where the driver reports nothing, the last values are still true.
void Port::read_driver_counters(PortCounters& into) {
    if (rte_eth_stats read{}; rte_eth_stats_get(id(), &read) == 0) driver_read_ = read;
    into.nic_missed = driver_counters_.missed(driver_read_.imissed);
    // a driver that has both counts the same in both
    into.no_buffer = driver_counters_.no_buffer(std::max(driver_read_.rx_nombuf, failed_allocations_->count()));
    into.receive_errors += driver_counters_.receive_errors(driver_read_.ierrors);
    into.driver_sent = driver_counters_.sent(driver_read_.opackets);
    into.driver_send_errors = driver_counters_.send_errors(driver_read_.oerrors);
    if (xdp_) ring_full_ = std::max(ring_full_, xdp_->ring_full());
    into.kernel_socket += ring_full_;
}

void Port::read_kernel_counters(PortCounters& into) {
    const InterfaceEvents events = watch_->take(opened_.index);
    removed_ |= events.removed;
    const auto interface = removed_ ? std::nullopt : kernel_interface(opened_.index);
    if (interface) last_ = *interface;
    into.change = change_since(opened_, interface, needed_mtu(options_));
    if (packet_sockets_) socket_drops_ += packet_sockets_->take_drops();
    taken_down_ += events.downs + (interface && interface->is_up ? 0 : 1);
    into.kernel_socket = socket_drops_;
    into.taken_down = taken_down_;
    into.kernel_backlog = last_.counters.not_received;
    into.receive_errors = last_.counters.receive_errors;
    into.interface_sent = last_.counters.sent;
    into.carrier_changes = last_.carrier_changes;
    into.counts_transmitted = true;
    if (packet_sockets_ && last_.kind == "veth") into.discipline = queue_discipline(opened_.index);
    (last_.kind == "veth" ? into.link_input_drops : into.interface_transmit_drops) = last_.counters.not_sent;
}

}  // namespace dutperf
