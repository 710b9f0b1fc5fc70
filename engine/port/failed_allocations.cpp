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

namespace {

// The numbers of the port's counters of them.
std::vector<std::uint64_t> counters_of(std::uint16_t port) {
    const int count = rte_eth_xstats_get_names(port, nullptr, 0);
    if (count <= 0) return {};
    std::vector<rte_eth_xstat_name> names(static_cast<std::size_t>(count));
    if (rte_eth_xstats_get_names(port, names.data(), static_cast<unsigned>(count)) != count) return {};
    std::vector<std::uint64_t> ids;
    for (std::size_t id = 0; id < names.size(); ++id) {
        if (counts_failed_allocations(names[id].name)) ids.push_back(id);
    }
    return ids;
}

}  // namespace

FailedAllocations::FailedAllocations(std::uint16_t port) {
    const std::vector<std::uint64_t> ids = counters_of(port);
    values_.resize(ids.size());
    read_ = [port, ids](std::span<std::uint64_t> into) {
        const auto size = static_cast<unsigned>(ids.size());
        return rte_eth_xstats_get_by_id(port, ids.data(), into.data(), size) == static_cast<int>(size);
    };
}

std::uint64_t FailedAllocations::count() {
    if (!values_.empty() && read_(values_)) last_ = std::accumulate(values_.begin(), values_.end(), std::uint64_t{0});
    return last_;
}

}  // namespace dutperf
