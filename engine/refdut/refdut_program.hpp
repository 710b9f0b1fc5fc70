// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "platform/export.hpp"

namespace dutperf {

// The program dutperf-refdut: serves the clients of the socket that its argument names, or the one on standard input.
// Returns the exit status.
DUTPERF_EXPORT int refdut_program(int argc, char** argv);

}  // namespace dutperf
