// SPDX-License-Identifier: Apache-2.0
// The sockets that drivers have opened in this process but do not expose.
#pragma once

#include <functional>
#include <vector>

namespace dutperf {

// Numbers of this process' open files for which `wanted` is true.
std::vector<int> own_sockets(const std::function<bool(int)>& wanted);

// Raises a socket's send buffer, for frames that queue up before an overloaded DUT.
void widen_send_buffer(int fd);

}  // namespace dutperf
