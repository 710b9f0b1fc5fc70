// SPDX-License-Identifier: Apache-2.0
// The operating system's side of cores: which of them this process may use, where a thread runs, and who goes first
// there.
#pragma once

#include <sys/types.h>

#include <vector>

namespace dutperf {

// Cores that this process may run on.
std::vector<unsigned> allowed_cores();

// From now on the thread runs on one of `cores`, if there are any (gettid(2); 0: the calling one).
void run_on(pid_t thread, const std::vector<unsigned>& cores);

// Puts this process before everything else that wants its cores. Linux shares a core between *sessions* first
// (sched(7), autogroup): a thread's nice value alone counts for nothing against a process of another terminal. Where
// this is refused the loops are merely away more often, which is measured.
void claim_cores();

// The same for the calling thread within this process.
void claim_core_for_thread();

// The opposite: all else goes before the calling thread.
void yield_core_for_thread();

}  // namespace dutperf
