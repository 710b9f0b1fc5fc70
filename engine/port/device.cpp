// SPDX-License-Identifier: Apache-2.0
#include "port/device.hpp"

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "platform/error.hpp"
#include "port/kernel_interface.hpp"
#include "port/pci_device.hpp"
#include "port/rings.hpp"
#include "port/socket_device.hpp"

namespace dutperf {

namespace {

// The kernel's ring has slots whose size is a power of two; 128 bytes of each are the kernel's.
std::string af_packet_arguments(const PortOptions& options) {
    const std::uint32_t slot = receive_buffer_size(options.max_frame_size);
    const std::uint32_t count = std::bit_ceil(options.receive_ring);
    const std::uint32_t block = std::max(slot, std::min<std::uint32_t>(65536, slot * count));
    // The queue discipline of a NIC might delay or reorder frames, so it is bypassed. On a veth it is not: without a
    // queue discipline the kernel would keep a frame that the other end has no room for and send it later. With one it
    // drops the frame and counts it, or, from Linux 6.16 on, keeps it there if the other end has NAPI, which its
    // statistics show (PortCounters::discipline).
    const auto interface = kernel_interface(options.spec.argument);
    const bool virtual_link = interface && interface->kind == "veth";
    return "iface=" + options.spec.argument + ",qpairs=" + std::to_string(options.queues) +
           ",qdisc_bypass=" + (virtual_link ? "0" : "1") + ",framesz=" + std::to_string(slot) +
           ",blocksz=" + std::to_string(block) + ",framecnt=" + std::to_string(count);
}

DeviceName vdev_of(const PortOptions& options) {
    const std::string& argument = options.spec.argument;
    switch (options.spec.kind) {
        case PortSpec::Kind::af_packet: return {"net_af_packet_" + options.side, af_packet_arguments(options)};
        case PortSpec::Kind::af_xdp:
            return {"net_af_xdp_" + options.side,
                    "iface=" + argument + ",start_queue=0,queue_count=" + std::to_string(options.queues)};
        case PortSpec::Kind::null: return {"net_null_" + options.side, "no-rx=1"};
        case PortSpec::Kind::virtio_user:
        case PortSpec::Kind::vhost_user:
        case PortSpec::Kind::memif: return socket_device(options);
        default: break;
    }
    const auto comma = argument.find(',');
    return {argument.substr(0, comma), comma == std::string::npos ? "" : argument.substr(comma + 1)};
}

int add_device(const DeviceName& device) {
    return rte_eal_hotplug_add("vdev", device.name.c_str(), device.arguments.c_str());
}

void connect_socket(const PortOptions& options, const DeviceName& device) {
    prepare_socket(options);
    const SocketDeadline deadline(options.spec.argument, options.link_timeout);
    if (add_device(device) == 0) return;
    if (!deadline.passed()) away(options, connection_error(options));
    away(options, "nobody " + std::string(listens(options.spec) ? "connected to" : "answered on") + " the socket " +
                      options.spec.argument + " within " + std::to_string(options.link_timeout.count()) +
                      " ms: check that the switch is running and uses this socket");
}

rte_ring* shared_ring(const std::string& name, std::uint32_t size) {
    if (rte_ring* ring = rte_ring_lookup(name.c_str())) return ring;
    rte_ring* ring = rte_ring_create(name.c_str(), std::bit_ceil(size), SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (ring == nullptr) throw Error("no_memory", "no memory for a ring of " + std::to_string(size) + " frames");
    return ring;
}

// Ports connected in memory, one behind the other: each receives on a queue what the port before it sends on that
// queue, and the first one what the last one sends. Whichever port is opened first creates a ring.
int make_ring_port(const PortOptions& options) {
    std::vector<rte_ring*> receive, transmit;
    const std::uint16_t apart = queues_apart(options);
    for (unsigned queue = 0; queue < options.queues; ++queue) {
        const auto ring_from = [&](const std::string& port) {
            return shared_ring("ring_from_" + port + "_" + std::to_string(queue), options.receive_ring);
        };
        receive.insert(receive.end(), apart, ring_from(options.ring_before));
        transmit.insert(transmit.end(), apart, ring_from(options.side));
    }
    const auto queues = static_cast<unsigned>(receive.size());
    return rte_eth_from_rings(("dutperf_" + options.side).c_str(), receive.data(), queues, transmit.data(), queues,
                              SOCKET_ID_ANY);
}

// DPDK attached the cards when it started. A card that was detached since, or was not usable then, is attached now.
std::uint16_t take_card(const PortOptions& options) {
    const std::string& address = options.spec.argument;
    std::uint16_t id = 0;
    if (rte_eth_dev_get_port_by_name(address.c_str(), &id) == 0) return id;
    const auto obstacle = obstacle_of_pci_device(address);
    if (obstacle && !has_pci_device(address)) away(options, *obstacle);
    if (obstacle) unavailable(options, *obstacle);
    const int error = rte_eal_hotplug_add("pci", address.c_str(), options.spec.devargs.c_str());
    if (error == 0 && rte_eth_dev_get_port_by_name(address.c_str(), &id) == 0) return id;
    if (rte_eal_has_hugepages() == 0 && !has_iommu_group(address)) {
        throw Error("no_memory",
                    "the PCI device " + address +
                        " has no IOMMU, and without one a card needs huge pages: reserve them (vm.nr_hugepages, or "
                        "dutperf doctor --fix)",
                    "memory");
    }
    unavailable(
        options,
        "no DPDK driver took the PCI device " + address + (error != 0 ? std::string(": ") + rte_strerror(-error) : "") +
            "; check that DPDK has a driver for it and that every card of its IOMMU group is bound to vfio-pci");
}

}  // namespace

Device::Device(const PortOptions& options) {
    const std::string& argument = options.spec.argument;
    if (options.spec.kind == PortSpec::Kind::ring) {
        const int port = make_ring_port(options);
        if (port < 0) unavailable(options, "the ring port could not be created");
        id_ = static_cast<std::uint16_t>(port);
        bus_ = "vdev";
        name_ = "net_ring_dutperf_" + options.side;
        return;
    }
    if (options.spec.kind == PortSpec::Kind::pci) {
        id_ = take_card(options);
        bus_ = "pci";
        name_ = argument;
        return;
    }
    const DeviceName vdev = vdev_of(options);
    if (options.spec.uses_socket()) {
        connect_socket(options, vdev);
    } else if (const int error = add_device(vdev); error != 0) {
        unavailable(options, "the device " + vdev.name + " (" + vdev.arguments +
                                 ") could not be created: " + rte_strerror(-error));
    }
    bus_ = "vdev";
    name_ = vdev.name;
    if (rte_eth_dev_get_port_by_name(vdev.name.c_str(), &id_) != 0)
        unavailable(options, "the device " + vdev.name + " is not a network port");
}

Device::~Device() {
    rte_eth_dev_stop(id_);
    rte_eth_dev_close(id_);
    rte_eal_hotplug_remove(bus_.c_str(), name_.c_str());
}

}  // namespace dutperf
