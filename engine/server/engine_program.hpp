// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "platform/export.hpp"

namespace dutperf {

// The program dutperf-engine: serves the client on standard input until the input ends. Returns the exit status.
DUTPERF_EXPORT int engine_program(int argc, char** argv);

}  // namespace dutperf
