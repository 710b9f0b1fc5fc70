// SPDX-License-Identifier: Apache-2.0
// Requests to the driver of a kernel interface (netdevice(7), ethtool(8)).
#pragma once

#include <string>

namespace dutperf {

// Sends a request of ioctl(2); the driver answers into the argument. Returns whether it answered; otherwise errno says
// why not.
bool ask_driver(const std::string& name, unsigned long request, void* argument);
// The same of an ethtool command, with which its structure begins.
bool ask_ethtool(const std::string& name, void* command);

}  // namespace dutperf
