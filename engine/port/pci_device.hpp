// SPDX-License-Identifier: Apache-2.0
// The state of a card in the kernel (/sys/bus/pci): why DPDK cannot use it, and its NUMA node.
#pragma once

#include <optional>
#include <string>

namespace dutperf {

// Where the kernel's files are; tests use other places.
struct KernelFiles {
    std::string sys = "/sys", dev = "/dev";
};

// Why the PCI device `address` (0000:01:00.0) cannot be used, and what to do about it; nothing if no obstacle is known.
std::optional<std::string> obstacle_of_pci_device(const std::string& address, const KernelFiles& files = {});

// Whether there is one at this address.
bool has_pci_device(const std::string& address, const KernelFiles& files = {});

// Whether the card is behind an IOMMU. Without one it needs physical addresses, which are stable only in huge pages.
bool has_iommu_group(const std::string& address, const KernelFiles& files = {});

// Nothing where the machine has one node or does not report it.
std::optional<int> numa_node_of_pci_device(const std::string& address, const KernelFiles& files = {});
std::optional<int> numa_node_of_core(unsigned core, const KernelFiles& files = {});

}  // namespace dutperf
