// SPDX-License-Identifier: Apache-2.0
#include "platform/ending.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "platform/error.hpp"

namespace dutperf {

namespace {

std::atomic<int> arrived = 0;
int event = -1;  // set before there is a handler

static_assert(std::atomic<int>::is_always_lock_free, "a signal handler uses it");

void note_signal(int number) {
    constexpr std::uint64_t kOne = 1;
    const int error = errno;
    arrived = number;
    [[maybe_unused]] const ssize_t written = write(event, &kOne, sizeof kOne);  // it never blocks
    errno = error;
}

}  // namespace

void note_ending_signals() {
    event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
        struct sigaction former {
        }, noting{};
        if (sigaction(number, nullptr, &former) == 0 && former.sa_handler == SIG_IGN) continue;
        noting.sa_handler = note_signal;
        noting.sa_flags = SA_RESTART;  // no driver's call fails because of it
        sigaction(number, &noting, nullptr);
    }
}

bool ending() { return arrived != 0; }

int ending_event() { return event; }

void require_not_ending() {
    if (ending()) throw Error("internal", "the engine was told to end by signal " + std::to_string(arrived.load()));
}

void end_by_signal() {
    if (!ending()) return;
    std::signal(arrived, SIG_DFL);
    std::raise(arrived);
}

}  // namespace dutperf
