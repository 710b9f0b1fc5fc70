// SPDX-License-Identifier: Apache-2.0
// Help that a port's hardware may offer, and how DPDK tells that it does. None is used unless it is asked for by name:
// none has been tried on a NIC.
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

// receive_timestamps: the NIC says when a frame arrived. send_at: it sends a frame at a given time. checksums: it
// writes the checksums of IPv4 and UDP into what it sends. rate_limit: its queues send no faster than the trial needs.
enum class Offload : std::uint8_t { receive_timestamps, send_at, checksums, rate_limit };
inline constexpr std::array kOffloads{Offload::receive_timestamps, Offload::send_at, Offload::checksums,
                                      Offload::rate_limit};
using Offloads = std::set<Offload>;

// As in the protocol.
std::string name_of(Offload offload);
std::optional<Offload> offload_named(const std::string& name);
// "a, b", or "none".
std::string to_string(const Offloads& offloads);

// What a port offers whose queues are set up. What can only be tried is tried only where it is `wanted`.
Offloads offered_by(std::uint16_t port, const Offloads& wanted);

// The offloads that a port has to be configured with, of those that it can do.
std::uint64_t receive_offloads(const Offloads& offloads, std::uint64_t capable);
std::uint64_t transmit_offloads(const Offloads& offloads, std::uint64_t capable);

// Whether the engine has to know the port's clock.
inline bool need_clock(const Offloads& offloads) {
    return offloads.contains(Offload::receive_timestamps) || offloads.contains(Offload::send_at);
}

// Whether the NIC, told when or how fast to send, may keep frames for itself for longer than it takes to send them.
inline bool may_keep_frames(const Offloads& offloads) {
    return offloads.contains(Offload::send_at) || offloads.contains(Offload::rate_limit);
}

// How fast a queue of the port may send; 0: as fast as it can. Whether the driver took it.
bool limit_queue_rate(std::uint16_t port, std::uint16_t queue, std::uint32_t mbps);

// Reads the clock by which a port stamps frames, in units of its own; gives nothing where it cannot be read.
using ReadClock = std::function<std::optional<std::uint64_t>()>;
ReadClock clock_of(std::uint16_t port);

// Where in a buffer a time by a NIC's clock stands, and the flag that says whether it does.
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

// Drivers look for them when their queues are set up. Throws Error "internal" where buffers have no room left for it.
TimeField receive_time_field();
TimeField send_time_field();

}  // namespace dutperf
