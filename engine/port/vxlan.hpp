// SPDX-License-Identifier: Apache-2.0
// The tester as the end of a VXLAN tunnel (RFC 7348): what a DUT asks in the tunnel for its neighbours there, and the
// answers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "port/neighbour.hpp"

namespace dutperf {

// Where the Ethernet frame in a VXLAN packet begins, directly over IP without options; 0: the frame is no such packet.
std::size_t tunnelled_at(const std::uint8_t* frame, std::size_t length);

// Whether the host is the end of the tunnel that such a packet is in.
bool ends_tunnel(const Host& host, const std::uint8_t* frame, std::size_t length);

// A packet of the host's to the sender of such a packet, in the same tunnel, with the Ethernet frame `inner`.
FrameBytes in_tunnel_of(const Host& host, const std::uint8_t* frame, std::size_t length, const FrameBytes& inner);

}  // namespace dutperf
