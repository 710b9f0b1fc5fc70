// SPDX-License-Identifier: Apache-2.0
#include "platform/processes.hpp"

#include <unistd.h>

#include <string>

namespace dutperf {

std::vector<std::filesystem::path> other_processes() {
    const std::string own = std::to_string(getpid());
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") == std::string::npos && name != own) found.push_back(entry.path());
    }
    return found;
}

}  // namespace dutperf
