// SPDX-License-Identifier: Apache-2.0
// Reads ranges of addresses for which a port answers.
#pragma once

#include <string>

#include "frame/address_range.hpp"
#include "server/reader.hpp"

namespace dutperf {

// Empty if the member is missing. Throws Error "bad_request".
AddressRanges read_ranges(Reader& of, const std::string& name);

}  // namespace dutperf
