// SPDX-License-Identifier: Apache-2.0
// Opens the ports. A port that is named by its interface alone is opened by AF_XDP, which is about twice as fast, if
// all ports support it, otherwise by AF_PACKET. With some of each, paths would be measured differently.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "port/port.hpp"

namespace dutperf {

struct OpenedPorts {
    std::vector<std::unique_ptr<Port>> ports;
    std::string why_not_xdp;  // why a port named by its interface alone was not opened by AF_XDP; empty: it was, or
                              // there is no such port
};

// Throws Error, see Port.
OpenedPorts open_ports(const std::vector<PortOptions>& asked);

}  // namespace dutperf
