// SPDX-License-Identifier: Apache-2.0
#include "port/left_changes.hpp"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>

#include "frame/address.hpp"
#include "port/promiscuity.hpp"
#include "port/whole_frames.hpp"
#include "port/xdp.hpp"

namespace dutperf {

namespace {

const std::string kFeature = "feature ", kPromiscuous = "promiscuous", kXdp = "xdp";

std::string mac_of(const std::string& name) {
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    Mac mac{};
    if (fd >= 0 && ioctl(fd, SIOCGIFHWADDR, &request) == 0)
        std::copy_n(reinterpret_cast<const std::uint8_t*>(request.ifr_hwaddr.sa_data), mac.size(), mac.begin());
    if (fd >= 0) close(fd);
    return to_string(mac);
}

}  // namespace

std::string note_of_interface(const std::string& name) {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    return "interface " + name + " " + mac_of(name) + " " + boot;
}

std::string note_of_feature(const std::string& feature) { return kFeature + feature; }
std::string note_of_promiscuous_flag() { return kPromiscuous; }
std::string note_of_xdp_program() { return kXdp; }

std::vector<std::string> take_back(const std::string& name, const std::vector<std::string>& notes) {
    std::vector<std::string> done;
    if (notes.empty() || notes.front() != note_of_interface(name)) return done;
    for (const std::string& note : notes) {
        if (note.starts_with(kFeature) && switch_on(name, note.substr(kFeature.size())))
            done.push_back(note.substr(kFeature.size()) + " is on again");
        if (note == kPromiscuous) set_promiscuous_flag(name);
        if (note == kXdp && remove_left_program(if_nametoindex(name.c_str())))
            done.emplace_back("its XDP program is taken off");
    }
    return done;
}

}  // namespace dutperf
