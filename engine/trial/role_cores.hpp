// SPDX-License-Identifier: Apache-2.0
// Places the roles on cores: for each queue of the ports, sending and receiving in each direction. Each gets a core of
// its own where the machine has them; otherwise one core runs several in turn, which loses less than threads that fight
// for a core.
#pragma once

#include <optional>
#include <vector>

#include "trial/trial.hpp"

namespace dutperf {

struct RoleCores {
    PerDirection<std::vector<unsigned>> send, receive;  // of each direction, in the order of its queues

    [[nodiscard]] std::vector<unsigned> distinct() const;
};

struct CoreWishes {
    std::optional<std::vector<unsigned>> cores;  // the user's, in order of preference; nothing: chosen
    std::vector<unsigned> dut_cores;             // not to be chosen as long as others are left
    std::size_t queues = 1;
    bool kernel_ports = false;  // choose a core for each queue, not for each role: much of the work is the kernel's,
                                // and the DUT's may be done in the same calls
};

// Among `allowed`. What is chosen is never all of them, if there are two: the DUT, the system and this program have
// work to do as well. Throws Error "cores".
RoleCores place_roles(const std::vector<unsigned>& allowed, const CoreWishes& wishes);

// Where threads run that are not hot loops.
struct OtherCores {
    std::vector<unsigned> between_trials, during_trials;
};

// Between trials not on the DUT's cores, during trials not on `hot` ones, both as far as others are left. For a DUT may
// spin: who shared its core also between trials would need seconds to prepare one.
OtherCores other_cores(const std::vector<unsigned>& allowed, const std::vector<unsigned>& hot,
                       const std::vector<unsigned>& dut_cores);

}  // namespace dutperf
