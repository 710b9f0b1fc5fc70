// SPDX-License-Identifier: Apache-2.0
// What the kernel tells about processes (proc(5)).
#pragma once

#include <filesystem>
#include <vector>

namespace dutperf {

// The directories of the processes other than this one. Any of them may have ended meanwhile.
std::vector<std::filesystem::path> other_processes();

}  // namespace dutperf
