// SPDX-License-Identifier: Apache-2.0
// A port of the tester: a DPDK device with as many queues each way as are asked for, opened from a port spec, and what
// its driver and the kernel count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frame/address.hpp"
#include "port/burst.hpp"
#include "port/device.hpp"
#include "port/failed_allocations.hpp"
#include "port/growing_counter.hpp"
#include "port/kernel_interface.hpp"
#include "port/link.hpp"
#include "port/offloads.hpp"
#include "port/pool.hpp"
#include "port/port_options.hpp"
#include "port/socket_device.hpp"
#include "port/transmit_ledger.hpp"
#include "port/xdp.hpp"

namespace dutperf {

// Since the port was opened. Differences over a trial tell who lost what.
struct PortCounters {
    std::uint64_t nic_missed = 0, no_buffer = 0, receive_errors = 0;  // by the driver
    std::uint64_t kernel_socket = 0, kernel_backlog = 0;              // by the kernel, before the driver
    std::uint64_t driver_sent = 0,
                  driver_send_errors = 0;        // frames that the driver says have left, and that it could not send
    std::uint64_t interface_sent = 0;            // frames that left by the kernel's interface
    std::uint64_t link_input_drops = 0;          // ... that it could not hand over to the other end (virtual links)
    std::uint64_t interface_transmit_drops = 0;  // ... that it dropped (any other interface)
    std::uint64_t carrier_changes = 0;           // of the link
    std::uint64_t taken_down = 0;     // grows where the tester's own interface was taken down, or still is at a reading
    bool counts_transmitted = false;  // interface_sent means something
};

class Port {
public:
    // Throws Error "port_unavailable", "no_privilege", "no_memory" or "internal", its field "<side>.port", "queues" or
    // "offloads".
    explicit Port(const PortOptions& options);

    [[nodiscard]] std::uint16_t id() const { return device_->id(); }
    [[nodiscard]] std::uint16_t queues() const { return options_.queues; }
    [[nodiscard]] PortQueue queue(std::uint16_t index) const {
        return {id(), static_cast<std::uint16_t>(index * queues_apart_)};
    }
    // Whether the driver spreads received frames over the queues by a hash of their addresses and ports.
    [[nodiscard]] bool spreads_by_hash() const { return spreads_by_hash_; }
    [[nodiscard]] const std::string& side() const { return options_.side; }
    [[nodiscard]] const PortSpec& spec() const { return options_.spec; }
    [[nodiscard]] const Mac& mac() const { return mac_; }
    [[nodiscard]] std::string driver() const;
    [[nodiscard]] int numa_node() const;
    [[nodiscard]] LinkStatus link() const;
    // Whether a link that goes down is the port's own: of a card, or of a socket whose other end is gone. An interface
    // of the kernel that is not taken down merely lost its carrier: its other end is the DUT's.
    [[nodiscard]] bool owns_link() const { return link_watch_.has_value(); }
    // Looks at the link now and then; to be called every few milliseconds.
    void watch_link() {
        if (link_watch_) link_watch_->poll();
    }
    [[nodiscard]] bool unplugged() const { return link_watch_ && link_watch_->unplugged(); }
    // To be called when the link is up, which may go down by it. Throws Error "port_unavailable" for the field
    // "flow_control".
    void require_flow_control();
    // What the driver or the kernel uses; nothing where neither says.
    [[nodiscard]] std::optional<FlowControl> flow_control() const;
    // What is not as it should be for the best figures, in sentences.
    [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
    [[nodiscard]] std::uint32_t transmit_ring() const { return transmit_ring_; }
    [[nodiscard]] std::uint32_t receive_ring() const { return receive_ring_; }
    // Frames that one of its receive queues holds where nobody on this side counts those that found it full; else 0.
    // Frames that a receive queue has room for which the kernel fills; it counts those that find none. 0: another kind
    // of queue.
    [[nodiscard]] std::uint32_t counted_room() const {
        return options_.spec.uses_kernel_interface() ? receive_ring_ : 0;
    }
    [[nodiscard]] std::uint32_t uncounted_room() const {
        return options_.spec.uses_socket() ? receive_room(options_, id()) : 0;
    }
    // Whether a frame that a driver does not accept has found the DUT's input queue full.
    [[nodiscard]] bool sends_into_dut() const { return options_.spec.uses_socket(); }
    [[nodiscard]] const Offloads& available_offloads() const { return offers_; }
    // To be called before 2^31 frames have passed since the last call.
    PortCounters counters();
    // Each queue sends no faster than that; 0, or no less than the link's speed: as fast as it can. Returns what was
    // set. Throws Error "port_unavailable", its field "offloads".
    [[nodiscard]] std::uint32_t limit_rate(std::uint32_t mbps) const;

    [[nodiscard]] TransmitLedger& transmit_ledger() { return transmit_ledger_; }
    // A card, not a device that is made of memory: its driver may take a while to count, and its link has a rate.
    [[nodiscard]] bool is_card() const;

private:
    void check_interface() const;
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
    void accept_all();
    void require_queues(const std::string& what, std::uint16_t receive, std::uint16_t transmit) const;
    void check(int status, const char* step) const;
    // Of the driver, each way: more than the port's where some are left out.
    [[nodiscard]] std::uint16_t device_queues() const {
        return static_cast<std::uint16_t>(options_.queues * queues_apart_);
    }
    void read_kernel_counters(PortCounters& into);

    PortOptions options_;
    std::uint16_t queues_apart_;
    Mac mac_{};
    bool spreads_by_hash_ = false;
    Offloads offers_;
    std::uint32_t transmit_ring_ = 0, receive_ring_ = 0;
    std::uint64_t socket_drops_ = 0, taken_down_ = 0;
    struct {
        GrowingCounter missed, no_buffer, receive_errors, sent, send_errors;
    } driver_counters_;
    TransmitLedger transmit_ledger_;
    std::optional<InterfaceWatch> watch_;
    Pool receive_pool_;  // outlives the device, whose queue holds its frames
    std::optional<Device> device_;
    std::optional<XdpPort> xdp_;  // ends before the device, whose sockets and program it holds
    std::optional<LinkWatch> link_watch_;
    std::optional<FailedAllocations> failed_allocations_;
    std::vector<std::string> warnings_;
};

}  // namespace dutperf
