// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a card (/sys/bus/pci): why DPDK could not take it, in a sentence, and on which NUMA node it
// is.
#pragma once

#include <optional>
#include <string>

namespace dutperf {

// Where the kernel's files are; other places in tests.
struct KernelFiles {
    std::string sys = "/sys", dev = "/dev";
};

// What is in the way of using the PCI device `address` (0000:01:00.0), and what to do about it; nothing if nothing is
// seen.
std::optional<std::string> obstacle_of_pci_device(const std::string& address, const KernelFiles& files = {});

// Whether an IOMMU stands between the card and the memory. Without one it needs physical addresses, which only huge
// pages keep.
bool has_iommu_group(const std::string& address, const KernelFiles& files = {});

// Nothing where the machine has one node or does not say.
std::optional<int> numa_node_of_pci_device(const std::string& address, const KernelFiles& files = {});
std::optional<int> numa_node_of_core(unsigned core, const KernelFiles& files = {});

}  // namespace dutperf
