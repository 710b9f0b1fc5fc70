// SPDX-License-Identifier: Apache-2.0
#include "port/device.hpp"

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <vector>

#include "port/error.hpp"
#include "port/kernel_interface.hpp"

namespace dutperf {

namespace {

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

}  // namespace

std::uint32_t receive_buffer_size(std::uint16_t max_frame_size) { return std::bit_ceil(std::uint32_t{max_frame_size} + 128U); }

std::uint16_t queues_apart(const PortOptions& options) {
    constexpr std::uint16_t kApart = 3;
    if (options.spec.kind != PortSpec::Kind::ring || options.queues == 1) return 1;
    return std::clamp<std::uint16_t>(RTE_PMD_RING_MAX_RX_RINGS / options.queues, 1, kApart);
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

}  // namespace dutperf
