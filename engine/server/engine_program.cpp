// SPDX-License-Identifier: Apache-2.0
#include "server/engine_program.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "platform/eal.hpp"
#include "platform/ending.hpp"
#include "server/server.hpp"

namespace dutperf {

int engine_program(int argc, char** argv) {
    if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
        std::printf("dutperf-engine " DUTPERF_VERSION " (DPDK %s" DUTPERF_BUILT_IN ", instructions: " DUTPERF_CPU ")\n",
                    dpdk_version().c_str());
        return 0;
    }
    if (argc > 1) {
        std::fputs("dutperf-engine: takes no arguments; it is driven by requests on standard input\n", stderr);
        return 2;
    }
    // The real standard output is for events alone: what libraries print goes to standard error and cannot corrupt the
    // stream.
    const int events = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of the write, not an end
    note_ending_signals();
    Server(STDIN_FILENO, events).serve_until_end_of_input();
    end_by_signal();
    return 0;
}

}  // namespace dutperf
