// SPDX-License-Identifier: Apache-2.0
#include "port/ethtool.hpp"

#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace dutperf {

bool ask_driver(const std::string& name, unsigned long request, void* argument) {
    ifreq of{};
    name.copy(of.ifr_name, IFNAMSIZ - 1);
    of.ifr_data = static_cast<char*>(argument);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    const bool answered = ioctl(fd, request, &of) == 0;
    const int error = errno;
    close(fd);
    errno = error;
    return answered;
}

bool ask_ethtool(const std::string& name, void* command) { return ask_driver(name, SIOCETHTOOL, command); }

}  // namespace dutperf
