// SPDX-License-Identifier: Apache-2.0
// A port of the tester: a DPDK device with the requested number of queues each way, opened from a port spec, and the
// counters of its driver and of the kernel.
#pragma once

#include <rte_ethdev.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frame/address.hpp"
#include "port/burst.hpp"
#include "port/card_stamping.hpp"
#include "port/device.hpp"
#include "port/failed_allocations.hpp"
#include "port/ingress_drop.hpp"
#include "port/kernel_interface.hpp"
#include "port/link.hpp"
#include "port/monotonic_counter.hpp"
#include "port/offloads.hpp"
#include "port/packet_sockets.hpp"
#include "port/pool.hpp"
#include "port/port_options.hpp"
#include "port/promiscuity.hpp"
#include "port/socket_device.hpp"
#include "port/transmit_ledger.hpp"
#include "port/whole_frames.hpp"
#include "port/xdp.hpp"

namespace dutperf {

// Counts since the port was opened; none ever decreases. Their differences over a trial show where frames were lost.
struct PortCounters {
    std::uint64_t nic_missed = 0, no_buffer = 0, receive_errors = 0;  // by the driver
    std::uint64_t kernel_socket = 0, kernel_backlog = 0;              // by the kernel, before the driver
    std::uint64_t driver_sent = 0,
                  driver_send_errors = 0;        // frames that the driver sent, and that it could not send
    std::uint64_t interface_sent = 0;            // frames that the kernel's interface sent
    std::uint64_t link_input_drops = 0;          // ... that it could not hand over to the other end (virtual links)
    std::uint64_t interface_transmit_drops = 0;  // ... that it dropped (any other interface)
    std::uint64_t carrier_changes = 0;           // of the link
    std::uint64_t taken_down = 0;     // grows when the tester's own interface was taken down or is down when read
    bool counts_transmitted = false;  // interface_sent is valid
    std::optional<QueueDiscipline> discipline;  // of a veth on which packet sockets send
    std::string change;  // why the port is no longer the one that was opened: a clause; empty: it still is
};

class Port {
public:
    // Throws Error "port_unavailable", "port_away", "no_privilege", "no_memory" or "internal" for the field
    // "<side>.port", "queues" or "offloads".
    explicit Port(const PortOptions& options);

    [[nodiscard]] std::uint16_t id() const { return device_->id(); }
    [[nodiscard]] std::uint16_t queues() const { return options_.queues; }
    [[nodiscard]] PortQueue queue(std::uint16_t index) const {
        return {id(), static_cast<std::uint16_t>(index * queues_apart_)};
    }
    // Whether the driver distributes received frames over the queues by RSS: a hash of addresses and ports.
    [[nodiscard]] bool spreads_by_hash() const { return spreads_by_hash_; }
    [[nodiscard]] const std::string& side() const { return options_.side; }
    [[nodiscard]] const PortSpec& spec() const { return options_.spec; }
    [[nodiscard]] const Mac& mac() const { return mac_; }
    [[nodiscard]] std::string driver() const;
    // Of the kernel's interface; 0, or empty: the port uses none.
    [[nodiscard]] unsigned interface_index() const { return opened_.index; }
    [[nodiscard]] const std::string& interface_driver() const { return interface_driver_; }
    // Whether the other end is a kernel whose frames meet no card that would finish their checksums.
    [[nodiscard]] bool may_leave_checksums_unfinished() const;
    // Whether received frames may lack their outermost VLAN tag: AF_XDP does not see what the kernel keeps beside a
    // frame, as virtual interfaces have it.
    [[nodiscard]] bool hides_outer_tag() const { return hides_outer_tag_; }
    // Whether the type of that tag always reads as 0x8100: the af_packet driver puts it back so.
    [[nodiscard]] bool hides_outer_tag_type() const { return options_.spec.kind == PortSpec::Kind::af_packet; }
    [[nodiscard]] int numa_node() const;
    [[nodiscard]] LinkStatus link() const;
    // Whether a link that goes down is the tester's fault: the link of a card, or of a socket whose other end is gone.
    // A kernel interface that is administratively up only lost its carrier: the other end is the DUT's.
    [[nodiscard]] bool owns_link() const { return link_watch_.has_value(); }
    // Polls the link at intervals; to be called every few milliseconds.
    void watch_link() {
        if (link_watch_) link_watch_->poll();
    }
    [[nodiscard]] bool unplugged() const { return link_watch_ && link_watch_->unplugged(); }
    // Sets and checks flow control. To be called when the link is up; the link may go down. Throws Error
    // "port_unavailable" for the field "flow_control".
    void require_flow_control();
    // The mode that the driver or the kernel uses; nothing where neither reports it.
    [[nodiscard]] std::optional<FlowControl> flow_control() const;
    // Sentences about what may degrade the measurement.
    [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
    [[nodiscard]] std::uint32_t transmit_ring() const { return transmit_ring_; }
    [[nodiscard]] std::uint32_t receive_ring() const { return receive_ring_; }
    // Frames that fit into a receive queue that the kernel fills, which counts overruns; 0: another kind of queue.
    [[nodiscard]] std::uint32_t kernel_queue_size() const {
        return options_.spec.uses_kernel_interface() ? receive_ring_ : 0;
    }
    // A receive queue that another process fills, so that nobody on this side counts overruns; none: another kind of
    // queue.
    [[nodiscard]] PeerQueue peer_queue() const {
        return options_.spec.uses_socket() ? dutperf::peer_queue(options_, id()) : PeerQueue{};
    }
    // Whether the port writes into the DUT's input queue itself: a frame that the driver does not accept found that
    // queue full.
    [[nodiscard]] bool sends_into_dut() const { return options_.spec.uses_socket(); }

    // The MTU of the other end, where the kernel knows it: of a veth.
    [[nodiscard]] std::optional<unsigned> mtu_of_other_end() const;
    [[nodiscard]] const Offloads& available_offloads() const { return offers_; }
    // What to look at: a clause.
    [[nodiscard]] std::string why_link_is_down() const;
    // To be called at least once in 2^31 frames.
    PortCounters counters();
    // What others have switched on at the port's interface that changes frames, or answers them: clauses. What changes
    // frames is switched off again.
    std::vector<std::string> switched_on();
    // The stamps of the card, for which the port is one of the kernel's. They are off again when the port is closed.
    CardStamping& card_stamping();
    // Of a veth that is a packet socket; nullptr: none.
    [[nodiscard]] PassingProgram* passing_program() { return passing_program_ ? &*passing_program_ : nullptr; }
    // Limits the rate of each queue; with 0 or at least the link's speed there is no limit. Returns the limit that was
    // set. Throws Error "port_unavailable" for the field "offloads".
    [[nodiscard]] std::uint32_t limit_rate(std::uint32_t mbps) const;

    [[nodiscard]] TransmitLedger& transmit_ledger() { return transmit_ledger_; }
    // Whether the port is a card rather than a software device: its driver may count late, and its link has a rate.
    [[nodiscard]] bool is_card() const;

private:
    void check_interface();
    void take_interface();
    void keep_from_stack();
    void bring_up();
    [[nodiscard]] rte_eth_dev_info capabilities() const;
    void configure(const rte_eth_dev_info& info);
    void spread_over_queues(const rte_eth_dev_info& info, rte_eth_conf& conf);
    void set_up_queues(const rte_eth_dev_info& info);
    void make_receive_pool();
    void start();
    void require_offloads();
    void adopt_kernel_sockets(const std::vector<int>& sockets_before);
    void read_own_mac();
    void enable_promiscuous();
    void enable_kernel_promiscuous();
    void require_queues(const std::string& what, std::uint16_t receive, std::uint16_t transmit) const;
    void check(int status, const char* step) const;
    // The driver's queues each way: more than the port's if some are skipped (queues_apart).
    [[nodiscard]] std::uint16_t device_queues() const {
        return static_cast<std::uint16_t>(options_.queues * queues_apart_);
    }
    // The kernel's first: see RestOfCounter.
    void read_kernel_counters(PortCounters& into);
    void read_driver_counters(PortCounters& into);

    PortOptions options_;
    std::uint16_t queues_apart_;
    Mac mac_{};
    bool spreads_by_hash_ = false;
    Offloads offers_;
    std::string interface_driver_;
    bool hides_outer_tag_ = false;
    std::uint32_t transmit_ring_ = 0, receive_ring_ = 0;
    KernelInterface opened_, last_;  // the kernel's interface, when the port was opened and when it was last there
    bool removed_ = false;           // it was, and its sockets are dead
    std::uint64_t socket_drops_ = 0, ring_full_ = 0, taken_down_ = 0;
    RestOfCounter veth_drops_;
    rte_eth_stats driver_read_{};
    struct {
        MonotonicCounter missed, no_buffer, receive_errors, sent, send_errors;
    } driver_counters_;
    TransmitLedger transmit_ledger_;
    std::optional<InterfaceWatch> watch_;
    // These last until the device, which receives behind them, is gone.
    std::optional<PassingProgram> passing_program_;
    std::optional<WholeFrames> whole_frames_;
    std::optional<CardStamping> card_stamping_;
    std::optional<IngressDrop> ingress_drop_;
    std::optional<Promiscuity> promiscuity_;
    Pool receive_pool_;  // outlives the device, whose queues hold its frames
    std::optional<Device> device_;
    std::optional<PacketSockets> packet_sockets_;
    std::optional<XdpPort> xdp_;  // destroyed before the device, whose sockets and program it holds
    std::optional<LinkWatch> link_watch_;
    std::optional<FailedAllocations> failed_allocations_;
    std::vector<std::string> warnings_;
};

}  // namespace dutperf
