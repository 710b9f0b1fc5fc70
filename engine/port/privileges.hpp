// SPDX-License-Identifier: Apache-2.0
// What the kernel asks of a process that opens a port. A driver only says that it failed.
#pragma once

#include <cstdint>
#include <string>

namespace dutperf {

// The capabilities that AF_XDP needs and this process lacks (capabilities(7)), as a list in words; empty: it has them.
// `frame_bytes`: memory for frames, which the kernel locks.
std::string missing_for_xdp(std::uint64_t frame_bytes);

}  // namespace dutperf
