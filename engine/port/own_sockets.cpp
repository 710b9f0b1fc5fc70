// SPDX-License-Identifier: Apache-2.0
#include "port/own_sockets.hpp"

#include <dirent.h>
#include <sys/socket.h>

#include <cstdlib>

namespace dutperf {

std::vector<int> own_sockets(const std::function<bool(int)>& wanted) {
    std::vector<int> sockets;
    DIR* files = opendir("/proc/self/fd");
    if (files == nullptr) return sockets;
    while (const dirent* entry = readdir(files)) {
        const int fd = static_cast<int>(std::strtol(entry->d_name, nullptr, 10));
        if (entry->d_name[0] != '.' && wanted(fd)) sockets.push_back(fd);
    }
    closedir(files);
    return sockets;
}

void widen_send_buffer(int fd) {
    constexpr int kBytes = 256 * 1024 * 1024;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &kBytes, sizeof kBytes) != 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kBytes, sizeof kBytes);
}

}  // namespace dutperf
