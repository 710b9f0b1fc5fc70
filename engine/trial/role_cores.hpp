// SPDX-License-Identifier: Apache-2.0
// Places the roles on cores: sending and receiving for each queue of each port. Each role gets its own core if the
// machine has enough. Otherwise one core runs several roles in turn, which loses less than threads that compete for a
// core.
#pragma once

#include <optional>
#include <vector>

#include "trial/trial.hpp"

namespace dutperf {

struct RoleCores {
    std::vector<std::vector<unsigned>> send, receive;  // of each port, in the order of its queues

    [[nodiscard]] std::vector<unsigned> distinct() const;
};

struct CoreWishes {
    std::optional<std::vector<unsigned>> cores;  // the user's, in order of preference; nothing: chosen automatically
    std::vector<unsigned> dut_cores;             // avoided as long as other cores are left
    std::size_t queues = 1;
    bool kernel_ports = false;  // choose a core for each queue instead of each role: much of the work is the kernel's,
                                // and the DUT's work may run in the same calls
    std::size_t ports = 2;
};

// Places the roles on `allowed` cores. With two or more cores it never chooses all of them: the DUT, the system and
// this program need one too. Throws Error "cores".
RoleCores place_roles(const std::vector<unsigned>& allowed, const CoreWishes& wishes);

// The cores of threads that are not hot loops.
struct OtherCores {
    std::vector<unsigned> between_trials, during_trials;
};

// Avoids the DUT's cores between trials, and the `hot` cores and the DUT's during trials, as long as others are left. A
// DUT may spin: a thread that shared its core between trials would need seconds to prepare a trial. And in a trial each
// turn of such a thread is time that the DUT does not get.
OtherCores other_cores(const std::vector<unsigned>& allowed, const std::vector<unsigned>& hot,
                       const std::vector<unsigned>& dut_cores);

}  // namespace dutperf
