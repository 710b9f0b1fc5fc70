// SPDX-License-Identifier: Apache-2.0
#include "port/promiscuity.hpp"

#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace dutperf {

Promiscuity::Promiscuity(unsigned interface_index) : socket_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
    packet_mreq wanted{};
    wanted.mr_ifindex = static_cast<int>(interface_index);
    wanted.mr_type = PACKET_MR_PROMISC;
    if (setsockopt(socket_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &wanted, sizeof wanted) != 0)
        error_ = std::strerror(errno);
}

Promiscuity::~Promiscuity() {
    if (socket_ >= 0) close(socket_);
}

void set_promiscuous_flag(const std::string& interface) {
    ifreq request{};
    interface.copy(request.ifr_name, IFNAMSIZ - 1);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    if (ioctl(fd, SIOCGIFFLAGS, &request) == 0) {
        request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_PROMISC);
        ioctl(fd, SIOCSIFFLAGS, &request);
    }
    close(fd);
}

}  // namespace dutperf
