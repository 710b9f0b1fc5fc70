// SPDX-License-Identifier: Apache-2.0
// Starts DPDK's environment (EAL), once in a process, with the memory that the ports need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dutperf {

enum class MemoryChoice : std::uint8_t { automatic, huge_pages, no_huge_pages };

struct EalOptions {
    MemoryChoice memory = MemoryChoice::automatic;
    std::uint64_t megabytes = 256, small_page_megabytes = 256;  // needed with huge pages, with 4 kB pages
    std::vector<std::string> pci_devices;  // the only ones that DPDK may use: `0000:01:00.0,KEY=VALUE`
    bool shares_memory = false;            // with the process at the other end of a port
    bool is_private = false;               // nobody else gets at the memory: no device and no other process
};

struct Memory {
    bool huge_pages = false;
    std::uint64_t page_kb = 4;
    bool virtual_addresses = true;  // devices get virtual addresses, which an IOMMU translates; otherwise physical ones
};

// Throws Error "no_memory", "port_unavailable" or "internal".
Memory start_eal(const EalOptions& options);

std::string dpdk_version();

}  // namespace dutperf
