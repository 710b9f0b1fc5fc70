// SPDX-License-Identifier: Apache-2.0
// The unit of every time in the engine. A header of its own, so that what only computes with times needs no library.
#pragma once

#include <cstdint>

namespace dutperf {

using Ticks = std::uint64_t;  // of the time stamp counter

}  // namespace dutperf
