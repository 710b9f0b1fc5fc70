// SPDX-License-Identifier: Apache-2.0
#include "refdut/refdut_program.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "platform/cores.hpp"
#include "refdut/dut_server.hpp"

namespace dutperf {

namespace {

// Reserves standard output for events: output of libraries goes to standard error and cannot corrupt the stream.
int events_output() {
    const int events = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return events;
}

}  // namespace

int refdut_program(int argc, char** argv) {
    if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
        std::puts("dutperf-refdut " DUTPERF_VERSION);
        return 0;
    }
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        std::fputs("usage: dutperf-refdut [SOCKET]\n", stderr);
        return 2;
    }
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of the write, not an end
    try {
        claim_cores();
        prctl(PR_SET_TIMERSLACK, 1UL);  // naps end in time
        DutServer server;
        if (argc == 2) server.serve_clients(listen_on(argv[1]));
        server.serve(STDIN_FILENO, events_output());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "dutperf-refdut: %s\n", error.what());
        return 1;
    }
    return 0;
}

}  // namespace dutperf
