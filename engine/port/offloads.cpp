// SPDX-License-Identifier: Apache-2.0
#define ALLOW_EXPERIMENTAL_API  // rte_eth_read_clock()
#include "port/offloads.hpp"

#include <rte_errno.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <ctime>

#include "platform/error.hpp"

namespace dutperf {

namespace {

rte_eth_dev_info info_of(std::uint16_t port) {
    rte_eth_dev_info info{};
    rte_eth_dev_info_get(port, &info);
    return info;
}

// net_pcap stamps every received frame with libpcap's time, in microseconds of CLOCK_REALTIME, but reports no
// capability for it (DPDK 22.11).
bool is_pcap(const rte_eth_dev_info& info) {
    return info.driver_name != nullptr && std::string(info.driver_name) == "net_pcap";
}

std::optional<std::uint64_t> realtime_us() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

bool offers(Offload offload, std::uint16_t port, const rte_eth_dev_info& info, const Offloads& wanted) {
    switch (offload) {
        case Offload::receive_timestamps:
            return ((info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0 || is_pcap(info)) &&
                   clock_of(port)().has_value();
        case Offload::send_at:
            return (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP) != 0 && clock_of(port)().has_value();
        case Offload::rate_limit:
            return wanted.contains(offload) && limit_queue_rate(port, 0, 0);  // there is no capability for it
    }
    return false;
}

TimeField time_field(int (*enter)(int*, std::uint64_t*)) {
    TimeField field;
    if (enter(&field.offset, &field.flag) != 0)
        throw Error("internal",
                    std::string("buffers have no room for the time stamp field: ") + rte_strerror(rte_errno));
    return field;
}

}  // namespace

std::string name_of(Offload offload) {
    switch (offload) {
        case Offload::receive_timestamps: return "receive_timestamps";
        case Offload::send_at: return "send_at";
        case Offload::rate_limit: return "rate_limit";
    }
    return {};
}

std::optional<Offload> offload_named(const std::string& name) {
    const auto* const found =
        std::ranges::find_if(kOffloads, [&](Offload offload) { return name_of(offload) == name; });
    return found == kOffloads.end() ? std::nullopt : std::optional(*found);
}

std::string to_string(const Offloads& offloads) {
    std::string text;
    for (const Offload offload : offloads) text += (text.empty() ? "" : ", ") + name_of(offload);
    return text.empty() ? "none" : text;
}

Offloads offered_by(std::uint16_t port, const Offloads& wanted) {
    const rte_eth_dev_info info = info_of(port);
    Offloads offered;
    std::ranges::copy_if(kOffloads, std::inserter(offered, offered.end()),
                         [&](Offload offload) { return offers(offload, port, info, wanted); });
    return offered;
}

std::uint64_t receive_offloads(const Offloads& offloads, std::uint64_t capable) {
    return capable & (offloads.contains(Offload::receive_timestamps) ? RTE_ETH_RX_OFFLOAD_TIMESTAMP : 0);
}

std::uint64_t transmit_offloads(const Offloads& offloads, std::uint64_t capable) {
    return capable & (offloads.contains(Offload::send_at) ? RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP : 0);
}

bool limit_queue_rate(std::uint16_t port, std::uint16_t queue, std::uint32_t mbps) {
    return rte_eth_set_queue_rate_limit(port, queue, mbps) == 0;
}

ReadClock clock_of(std::uint16_t port) {
    if (is_pcap(info_of(port))) return realtime_us;
    return [port]() -> std::optional<std::uint64_t> {
        std::uint64_t now = 0;
        return rte_eth_read_clock(port, &now) == 0 ? std::optional(now) : std::nullopt;
    };
}

TimeField receive_time_field() { return time_field(rte_mbuf_dyn_rx_timestamp_register); }
TimeField send_time_field() { return time_field(rte_mbuf_dyn_tx_timestamp_register); }

}  // namespace dutperf
