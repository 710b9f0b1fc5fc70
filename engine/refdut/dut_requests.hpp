// SPDX-License-Identifier: Apache-2.0
// Parses and checks the JSON requests to the reference DUT (engine/refdut/README.md). All functions throw Error
// "bad_request".
#pragma once

#include "refdut/reference_dut.hpp"
#include "server/reader.hpp"

namespace dutperf {

DutRequest read_dut(Reader params);
// What a DUT is: whether properties of a NAT or of a DNS64 have an effect.
struct DutKind {
    bool has_nat = false, has_dns64 = false;
};
Properties read_properties(Reader params, DutKind kind);
Disturbance read_disturbance(Reader params);

}  // namespace dutperf
