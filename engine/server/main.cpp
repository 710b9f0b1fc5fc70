// SPDX-License-Identifier: Apache-2.0
// dutperf-engine: sends and receives test frames on DPDK ports as the client on standard input asks. Usage and
// protocol: protocol/README.md.

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "server/server.hpp"

int main(int argc, char** argv) {
    if (argc > 1) {
        const bool version = std::strcmp(argv[1], "--version") == 0;
        std::fprintf(version ? stdout : stderr, "dutperf-engine " DUTPERF_VERSION "%s\n",
                     version ? "" : ": takes no arguments; it is driven by requests on standard input");
        return version ? 0 : 2;
    }
    // The real standard output is for events alone: what libraries print goes to standard error and cannot corrupt the
    // stream.
    const int events = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    std::signal(SIGPIPE, SIG_IGN);
    dutperf::Server(STDIN_FILENO, events).serve_until_end_of_input();
    return 0;
}
