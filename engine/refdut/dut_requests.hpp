// SPDX-License-Identifier: Apache-2.0
// Parses and checks the JSON requests to the reference DUT (engine/refdut/README.md). All functions throw Error
// "bad_request".
#pragma once

#include "refdut/reference_dut.hpp"
#include "server/reader.hpp"

namespace dutperf {

DutRequest read_dut(Reader params);
// `has_nat`: whether properties of a NAT have an effect.
Properties read_properties(Reader params, bool has_nat);
Disturbance read_disturbance(Reader params);

}  // namespace dutperf
