// SPDX-License-Identifier: Apache-2.0
#include "port/failed_allocations.hpp"

#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace dutperf {

bool counts_failed_allocations(std::string_view name) {
    constexpr std::string_view kOfEveryDriver = "rx_mbuf_allocation_errors";  // rx_nombuf of rte_eth_stats_get()
    constexpr std::array<std::string_view, 4> kEndings{"alloc_failure", "alloc_fail", "alloc_errors",
                                                       "allocation_errors"};
    const bool of_frames =
        name.starts_with("rx_") && name != kOfEveryDriver && name.find("fcoe") == std::string_view::npos;
    return of_frames && std::ranges::any_of(kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}

FailedAllocations::FailedAllocations(std::uint16_t port) : port_(port) {
    const int count = rte_eth_xstats_get_names(port, nullptr, 0);
    if (count <= 0) return;
    std::vector<rte_eth_xstat_name> names(static_cast<std::size_t>(count));
    if (rte_eth_xstats_get_names(port, names.data(), static_cast<unsigned>(count)) != count) return;
    for (std::size_t id = 0; id < names.size(); ++id) {
        if (counts_failed_allocations(names[id].name)) ids_.push_back(id);
    }
}

std::uint64_t FailedAllocations::count() const {
    if (ids_.empty()) return 0;
    std::vector<std::uint64_t> values(ids_.size());
    const auto size = static_cast<unsigned>(ids_.size());
    if (rte_eth_xstats_get_by_id(port_, ids_.data(), values.data(), size) != static_cast<int>(size)) return 0;
    return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

}  // namespace dutperf
