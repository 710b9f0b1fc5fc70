// SPDX-License-Identifier: Apache-2.0
// Preloaded: the time of day jumps by an hour, forwards and backwards, whenever somebody asks for it. The machine's own clock is left alone.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long jump(void) {
    static _Atomic unsigned asked;
    return asked++ % 2 ? 3600 : -3600;
}

int clock_gettime(clockid_t clock, struct timespec* into) {
    const long status = syscall(SYS_clock_gettime, clock, into);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) into->tv_sec += jump();
    return (int)status;
}

int gettimeofday(struct timeval* into, void* zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *into = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t* into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into) *into = now.tv_sec;
    return now.tv_sec;
}
