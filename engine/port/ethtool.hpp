// SPDX-License-Identifier: Apache-2.0
// Requests to the driver of a kernel interface (ethtool(8)).
#pragma once

#include <string>

namespace dutperf {

// Sends an ethtool command; the driver answers into the structure that begins with it. Returns whether it answered;
// otherwise errno says why not.
bool ask_ethtool(const std::string& name, void* command);

}  // namespace dutperf
