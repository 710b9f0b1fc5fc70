// SPDX-License-Identifier: Apache-2.0
// dutperf-engine: sends and receives test frames on DPDK ports as the client on standard input asks. Usage and
// protocol: protocol/README.md.

#include "server/engine_program.hpp"

int main(int argc, char** argv) { return dutperf::engine_program(argc, argv); }
