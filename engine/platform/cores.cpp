// SPDX-License-Identifier: Apache-2.0
#include "platform/cores.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace dutperf {

namespace {

constexpr int kHighestPriority = -20, kLowestPriority = 19;
constexpr int kRealTimePriority = 1;

}  // namespace

std::vector<unsigned> allowed_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    std::vector<unsigned> cores;
    for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
    return cores;
}

void run_on(pid_t thread, const std::vector<unsigned>& cores) {
    if (cores.empty()) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const unsigned core : cores) CPU_SET(core, &set);
    sched_setaffinity(thread, sizeof set, &set);
}

void claim_cores() {
    setsid();  // a new session, unless this process leads a process group
    if (getsid(0) == getpid()) std::ofstream("/proc/self/autogroup") << kHighestPriority;
}

void claim_core_for_thread() { setpriority(PRIO_PROCESS, 0, kHighestPriority); }

void be_real_time_thread(bool is_real_time) {
    sched_param priority{};
    sched_getparam(0, &priority);
    const int own_class = is_real_time ? SCHED_OTHER : SCHED_RR, own_priority = is_real_time ? 0 : kRealTimePriority;
    if (sched_getscheduler(0) != own_class || priority.sched_priority != own_priority) return;
    if (is_real_time && allowed_cores().size() != 1) return;
    priority.sched_priority = is_real_time ? kRealTimePriority : 0;
    sched_setscheduler(0, is_real_time ? SCHED_RR : SCHED_OTHER, &priority);
}

void yield_core_for_thread() { setpriority(PRIO_PROCESS, 0, kLowestPriority); }

}  // namespace dutperf
