// SPDX-License-Identifier: Apache-2.0
#include "port/rings.hpp"

#include <rte_common.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "frame/layout.hpp"

namespace dutperf {

namespace {

constexpr std::uint32_t kMaxTransmitRing = 1024, kMinTransmitRing = 128;
// in a card's transmit ring at its highest speed: this wait is included in the measured delays
constexpr std::uint64_t kMaxWaitUs = 1000;

// Mbit/s; 0 where the driver does not report speeds.
std::uint32_t fastest_link(std::uint32_t speeds) {
    constexpr std::array kSpeeds{
        std::pair{RTE_ETH_LINK_SPEED_10M, 10U},     std::pair{RTE_ETH_LINK_SPEED_100M, 100U},
        std::pair{RTE_ETH_LINK_SPEED_1G, 1000U},    std::pair{RTE_ETH_LINK_SPEED_2_5G, 2500U},
        std::pair{RTE_ETH_LINK_SPEED_5G, 5000U},    std::pair{RTE_ETH_LINK_SPEED_10G, 10000U},
        std::pair{RTE_ETH_LINK_SPEED_20G, 20000U},  std::pair{RTE_ETH_LINK_SPEED_25G, 25000U},
        std::pair{RTE_ETH_LINK_SPEED_40G, 40000U},  std::pair{RTE_ETH_LINK_SPEED_50G, 50000U},
        std::pair{RTE_ETH_LINK_SPEED_56G, 56000U},  std::pair{RTE_ETH_LINK_SPEED_100G, 100000U},
        std::pair{RTE_ETH_LINK_SPEED_200G, 200000U}};
    std::uint32_t fastest = 0;
    for (const auto& [bit, mbps] : kSpeeds) fastest = (speeds & bit) != 0 ? mbps : fastest;
    return fastest;
}

unsigned default_pool_frames(const PortOptions& options) {
    return options.buffers != 0 ? options.buffers : options.max_frame_size > 2048 ? 4095 : 8191;
}

}  // namespace

std::uint32_t receive_buffer_size(std::uint16_t max_frame_size) {
    return std::bit_ceil(std::uint32_t{max_frame_size} + 128U);
}

// Many cards support only powers of two and would split a longer frame over two buffers. But vmxnet3 has 14 bits for
// the length of a buffer.
std::uint32_t receive_frame_room(const PortOptions& options, const std::string& driver) {
    constexpr std::uint32_t kLongestOfVmxnet3 = RTE_ALIGN_FLOOR(16383U, 64U);
    const std::uint32_t room = receive_buffer_size(options.max_frame_size);
    return driver == "net_vmxnet3" ? std::min(room, kLongestOfVmxnet3) : room;
}

std::uint16_t max_receive_descriptors(const PortOptions& options) {
    const std::uint32_t wanted = std::min<std::uint32_t>(std::bit_ceil(options.receive_ring), 32768);
    // the rest is for frames in flight
    return static_cast<std::uint16_t>(std::min(wanted, default_pool_frames(options) / 2 + 1));
}

unsigned receive_pool_frames(const PortOptions& options) {
    constexpr unsigned kInFlight = 2047;  // pool caches and bursts
    const unsigned filled = options.reach == Reach::device ? 2U * max_receive_descriptors(options) + kInFlight : 0;
    return std::max(default_pool_frames(options), filled);
}

// The sender cannot see the lateness of frames that wait in a card's ring, so the ring is small. Below the minimum,
// drivers that reclaim sent frames in batches would wait for room.
std::uint16_t transmit_ring_size(const PortOptions& options, std::uint32_t speeds) {
    const std::uint32_t mbps = fastest_link(speeds);
    if (options.spec.kind != PortSpec::Kind::pci || mbps == 0) return kMaxTransmitRing;
    const std::uint64_t bits = (options.max_frame_size + kPreambleAndGap) * 8ULL;
    const std::uint64_t waiting = mbps * kMaxWaitUs / bits / options.queues;
    return static_cast<std::uint16_t>(
        std::clamp<std::uint64_t>(std::bit_floor(waiting), kMinTransmitRing, kMaxTransmitRing));
}

std::uint16_t queues_apart(const PortOptions& options) {
    constexpr std::uint16_t kApart = 3;
    if (options.spec.kind != PortSpec::Kind::ring || options.queues == 1) return 1;
    return std::clamp<std::uint16_t>(RTE_PMD_RING_MAX_RX_RINGS / options.queues, 1, kApart);
}

}  // namespace dutperf
