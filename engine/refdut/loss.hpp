// SPDX-License-Identifier: Apache-2.0
// Why the reference DUT did not forward a frame.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dutperf {

enum class Loss : std::uint8_t {
    queue,              // the core's queue was full
    random,             // by the loss ratio
    every_nth,          // every nth frame
    reset,              // the DUT was resetting
    not_routable,       // no route, or no mapping for an address
    hop_limit,          // TTL or hop limit used up
    malformed,          // lengths or header checksum are wrong
    unsupported,        // needs translation, but is not an unfragmented UDP, TCP or ICMP echo packet
    too_long,           // for the outgoing link
    unresolved,         // the next hop's MAC address is not known yet
    table_full,         // of a new connection: the table was full
    establishment,      // of a new connection: faster than connections are established
    no_port,            // of a new connection: no outside endpoint was free
    no_connection,      // from the outside, without a connection
    wrong_source,       // an inner source address and port of another end of the tunnel, or of none
    wrong_destination,  // an inner destination address and port of another end of the tunnel
    no_buffer,          // made by the DUT itself: all buffers were in use
    count
};

inline constexpr std::size_t kLosses = static_cast<std::size_t>(Loss::count);
inline constexpr std::array<const char*, kLosses> kLossNames{
    "queue",        "random",        "every_nth",    "reset",
    "not_routable", "hop_limit",     "malformed",    "unsupported",
    "too_long",     "unresolved",    "table_full",   "establishment",
    "no_port",      "no_connection", "wrong_source", "wrong_destination",
    "no_buffer"};

}  // namespace dutperf
