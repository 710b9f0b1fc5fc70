// SPDX-License-Identifier: Apache-2.0
// DPDK's environment: started once in a process' life, with the memory that the ports will need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dutperf {

enum class MemoryChoice : std::uint8_t { automatic, huge_pages, no_huge_pages };

struct EalOptions {
    MemoryChoice memory = MemoryChoice::automatic;
    std::uint64_t megabytes = 256, small_page_megabytes = 256;  // needed of huge pages, of 4 kB pages
    std::vector<std::string> pci_devices;  // the only ones that DPDK may touch: `0000:01:00.0,KEY=VALUE`
    bool shares_memory = false;            // with the process at the other end of a port
};

struct Memory {
    bool huge_pages = false;
    std::uint64_t page_kb = 4;
    bool virtual_addresses =
        true;  // devices are given addresses of this process, which an IOMMU translates; else physical ones
};

// Throws Error "no_memory", "port_unavailable" or "internal".
Memory start_eal(const EalOptions& options);

std::string dpdk_version();

}  // namespace dutperf
