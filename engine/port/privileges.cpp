// SPDX-License-Identifier: Apache-2.0
#include "port/privileges.hpp"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace dutperf {

namespace {

std::uint64_t effective_capabilities() {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
    if (syscall(SYS_capget, &header, sets.data()) != 0) return 0;
    return std::uint64_t{sets[1].effective} << 32U | sets[0].effective;
}

bool may_lock(std::uint64_t bytes) {
    rlimit limit{};
    return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur >= bytes;
}

}  // namespace

// libxdp looks its program and its map up by their numbers, for which CAP_BPF is not enough.
std::string missing_for_xdp(std::uint64_t frame_bytes) {
    struct Needed {
        unsigned bit;
        const char* name;
        bool without;  // it works without it
    };
    const std::array needed{Needed{CAP_NET_RAW, "CAP_NET_RAW", false}, Needed{CAP_NET_ADMIN, "CAP_NET_ADMIN", false},
                            Needed{CAP_SYS_ADMIN, "CAP_SYS_ADMIN", false},
                            Needed{CAP_IPC_LOCK, "CAP_IPC_LOCK (or a higher ulimit -l)", may_lock(frame_bytes)}};
    const std::uint64_t effective = effective_capabilities();
    std::string missing;
    for (const Needed& one : needed) {
        if (one.without || (effective >> one.bit & 1U) != 0) continue;
        missing += (missing.empty() ? "" : ", ") + std::string(one.name);
    }
    return missing;
}

}  // namespace dutperf
