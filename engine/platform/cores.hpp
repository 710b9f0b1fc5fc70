// SPDX-License-Identifier: Apache-2.0
// Core affinity and priority: which cores this process may use, on which a thread runs, and with what priority.
#pragma once

#include <sys/types.h>

#include <vector>

namespace dutperf {

// Cores that this process may run on.
std::vector<unsigned> allowed_cores();

// Pins the thread (gettid(2); 0: the calling one) to `cores`; does nothing if there are none.
void run_on(pid_t thread, const std::vector<unsigned>& cores);

// Gives this process priority over others on its cores. Linux divides a core between *sessions* first (sched(7),
// autogroup), so a nice value alone has no effect on processes of another terminal. Without the privilege for this, the
// loops stall more often; stalls are measured.
void claim_cores();

// Gives the calling thread priority within this process.
void claim_core_for_thread();

// Puts the calling thread into the real-time class, before all threads without it, or back. For threads that sleep:
// others on the core may starve beside one that does not. Nothing changes without the privilege for this, or if
// somebody else chose the thread's class; nor if it may run on several cores: Linux leaves such a thread on a core
// where another one works.
void be_real_time_thread(bool is_real_time);

// Gives the calling thread the lowest priority.
void yield_core_for_thread();

}  // namespace dutperf
