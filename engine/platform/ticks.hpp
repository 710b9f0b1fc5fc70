// SPDX-License-Identifier: Apache-2.0
// The unit of every time in the engine. It has its own header, so that code that only computes with times needs no
// library.
#pragma once

#include <cstdint>

namespace dutperf {

using Ticks = std::uint64_t;  // of the time stamp counter

}  // namespace dutperf
