// SPDX-License-Identifier: Apache-2.0
// dutperf-refdut: a router and translator with known properties, for testing testers. Usage and protocol:
// engine/refdut/README.md.

#include "refdut/refdut_program.hpp"

int main(int argc, char** argv) { return dutperf::refdut_program(argc, argv); }
