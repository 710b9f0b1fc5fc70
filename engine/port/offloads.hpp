// SPDX-License-Identifier: Apache-2.0
// Hardware offloads: which ones a port offers, by DPDK's capabilities. None is used unless the user names it: none has
// been tried on a NIC.
#pragma once

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

namespace dutperf {

// receive_timestamps: the NIC time-stamps received frames. send_at: it sends each frame at a given time. rate_limit:
// its queues send no faster than the trial needs.
enum class Offload : std::uint8_t { receive_timestamps, send_at, rate_limit };
inline constexpr std::array kOffloads{Offload::receive_timestamps, Offload::send_at, Offload::rate_limit};
using Offloads = std::set<Offload>;

// The name in the protocol.
std::string name_of(Offload offload);
std::optional<Offload> offload_named(const std::string& name);
// "a, b", or "none".
std::string to_string(const Offloads& offloads);

// The offloads that a port offers; its queues must be set up. An offload that can only be tested by use is tested only
// if it is `wanted`.
Offloads offered_by(std::uint16_t port, const Offloads& wanted);

// The DPDK offload flags to configure a port with, limited to its capabilities.
std::uint64_t receive_offloads(const Offloads& offloads, std::uint64_t capable);
std::uint64_t transmit_offloads(const Offloads& offloads, std::uint64_t capable);

// Whether the engine needs the port's clock.
inline bool need_clock(const Offloads& offloads) {
    return offloads.contains(Offload::receive_timestamps) || offloads.contains(Offload::send_at);
}

// Whether the NIC may hold frames for longer than it takes to send them, because it controls the time or the rate of
// sending.
inline bool may_keep_frames(const Offloads& offloads) {
    return offloads.contains(Offload::send_at) || offloads.contains(Offload::rate_limit);
}

// Limits the rate of a queue; 0: no limit. Returns whether the driver accepted it.
bool limit_queue_rate(std::uint16_t port, std::uint16_t queue, std::uint32_t mbps);

// Reads the clock of a port's time stamps, in its own units; nothing if it cannot be read.
using ReadClock = std::function<std::optional<std::uint64_t>()>;
ReadClock clock_of(std::uint16_t port);

// The field of a buffer that holds a NIC time stamp, and the flag that says that it is set.
struct TimeField {
    int offset = 0;
    std::uint64_t flag = 0;

    [[nodiscard]] bool is_set(const rte_mbuf* buffer) const { return (buffer->ol_flags & flag) != 0; }
    [[nodiscard]] std::uint64_t time(const rte_mbuf* buffer) const {
        return *RTE_MBUF_DYNFIELD(buffer, offset,
                                  const rte_mbuf_timestamp_t*);  // NOLINT(performance-no-int-to-ptr): DPDK's
    }
    void set(rte_mbuf* buffer, std::uint64_t time) const {
        *RTE_MBUF_DYNFIELD(buffer, offset, rte_mbuf_timestamp_t*) = time;  // NOLINT(performance-no-int-to-ptr): DPDK's
        buffer->ol_flags |= flag;
    }
    void clear(rte_mbuf* buffer) const { buffer->ol_flags &= ~flag; }
};

// Drivers look them up when their queues are set up. Throws Error "internal" where buffers have no room for the field.
TimeField receive_time_field();
TimeField send_time_field();

}  // namespace dutperf
