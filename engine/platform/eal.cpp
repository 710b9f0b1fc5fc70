// SPDX-License-Identifier: Apache-2.0
#include "platform/eal.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_memory.h>
#include <rte_version.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

#include "platform/cores.hpp"
#include "platform/error.hpp"

namespace dutperf {

namespace {

std::uint64_t free_megabytes(std::uint64_t page_kb) {
    std::ifstream file("/sys/kernel/mm/hugepages/hugepages-" + std::to_string(page_kb) + "kB/free_hugepages");
    std::uint64_t pages = 0;
    file >> pages;
    return pages * page_kb / 1024;
}

Memory choose_memory(const EalOptions& options) {
    constexpr std::array<std::uint64_t, 2> kPageSizesKb{1048576, 2048};
    if (options.memory != MemoryChoice::no_huge_pages) {
        for (const std::uint64_t page_kb : kPageSizesKb) {
            if (free_megabytes(page_kb) >= options.megabytes) return {.huge_pages = true, .page_kb = page_kb};
        }
    }
    if (options.memory == MemoryChoice::huge_pages) {
        throw Error("no_memory",
                    "there are not enough free huge pages: " + std::to_string(options.megabytes) +
                        " MB are needed; reserve them (vm.nr_hugepages) or set memory to auto",
                    "memory");
    }
    return {};
}

std::vector<std::string> arguments(const EalOptions& options, const Memory& memory,
                                   const std::vector<unsigned>& allowed) {
    // In both modes no file is left behind: any number of engines can run at once, and a killed one needs no clean-up.
    std::vector<std::string> all{"dutperf-engine",
                                 memory.huge_pages ? "--in-memory" : "--no-shconf",
                                 "--no-telemetry",
                                 "--log-level=*:error",
                                 "-l",
                                 std::to_string(allowed.empty() ? 0 : allowed.front()),
                                 "-m",
                                 std::to_string(memory.huge_pages ? options.megabytes : options.small_page_megabytes)};
    if (!memory.huge_pages) all.emplace_back("--no-huge");
    // Memory is shared with another process by at most eight file descriptors; one for each page would be hundreds.
    if (memory.huge_pages && options.shares_memory) all.emplace_back("--single-file-segments");
    // DPDK's buses choose the address mode that the cards need: virtual behind an IOMMU, otherwise physical. Without a
    // card the virtual mode is set, which needs no privilege.
    if (options.pci_devices.empty()) all.insert(all.end(), {"--no-pci", "--iova-mode=va"});
    for (const std::string& device : options.pci_devices) {
        all.emplace_back("-a");
        all.push_back(device);
    }
    return all;
}

// Puts memory in place of other memory, with the same content, for which the kernel gives huge pages.
void ask_for_huge_pages(std::byte* memory, std::size_t size) {
    constexpr std::size_t kHugePage = std::size_t{2} << 20U;
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> touched(size / page);
    if (mincore(memory, size, touched.data()) != 0) return;
    void* const room = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return;
    // huge pages are moved as they are to a place as far behind the begin of one
    const std::size_t before = static_cast<std::size_t>(memory - static_cast<std::byte*>(room)) % kHugePage;
    auto* const copy = static_cast<std::byte*>(room) + before;
    madvise(copy, size, MADV_HUGEPAGE);  // if it fails, small pages do
    for (std::size_t number = 0; number < touched.size(); ++number) {
        if ((touched[number] & 1U) != 0) std::memcpy(copy + number * page, memory + number * page, page);
    }
    if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, memory) == MAP_FAILED) munmap(copy, size);
    // what was left of the room around the copy
    munmap(room, before);
    munmap(copy + size, kHugePage - before);
}

// Without reserved huge pages DPDK has its memory in a file (memfd), for which the kernel gives small pages alone.
void ask_for_huge_pages() {
    rte_memseg_list_walk(
        [](const rte_memseg_list* list, void*) {
            if (list->external == 0) ask_for_huge_pages(static_cast<std::byte*>(list->base_va), list->len);
            return 0;
        },
        nullptr);
}

}  // namespace

// DPDK can be started only once in a process. An `open` after a failed one uses the environment that was started then.
Memory start_eal(const EalOptions& options) {
    static std::optional<Memory> started;
    static bool is_private = false;
    if (started && is_private && !options.is_private)
        throw Error("internal", "this engine was started for ports with other memory: start another one");
    if (started) return *started;
    const Memory memory = choose_memory(options);
    const std::vector<unsigned> allowed = allowed_cores();
    std::vector<std::string> all = arguments(options, memory, allowed);
    std::vector<char*> argv;
    argv.reserve(all.size());
    for (std::string& one : all) argv.push_back(one.data());
    rte_openlog_stream(stderr);
    if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
        const std::string reason = rte_strerror(rte_errno);
        if (!options.pci_devices.empty() && !memory.huge_pages) {
            throw Error("no_memory",
                        "DPDK did not start with 4 kB pages (" + reason +
                            "): without an IOMMU a card needs huge pages; reserve " +
                            std::to_string(options.megabytes) + " MB (vm.nr_hugepages, or dutperf doctor --fix)",
                        "memory");
        }
        throw Error(rte_errno == ENOMEM ? "no_memory" : "internal", "DPDK did not start: " + reason);
    }
    is_private = !memory.huge_pages && options.is_private;
    if (is_private) ask_for_huge_pages();
    run_on(0, allowed);  // DPDK pins the calling thread to a core that a hot loop may need
    started = memory;
    started->virtual_addresses = rte_eal_iova_mode() == RTE_IOVA_VA;
    return *started;
}

std::string dpdk_version() {
    const std::string text = rte_version();  // "DPDK 22.11.11"
    const auto space = text.find(' ');
    return space == std::string::npos ? text : text.substr(space + 1);
}

}  // namespace dutperf
