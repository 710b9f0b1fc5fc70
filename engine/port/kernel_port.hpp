// SPDX-License-Identifier: Apache-2.0
// Opens the ports. A port that is named by its interface alone is opened by AF_XDP, which is about twice as fast, if
// both ports support it, otherwise by AF_PACKET. With one of each, the two directions would be measured differently.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "port/port.hpp"

namespace dutperf {

struct OpenedPorts {
    std::array<std::unique_ptr<Port>, 2> ports;
    std::string why_not_xdp;  // why a port named by its interface alone was not opened by AF_XDP; empty: it was, or
                              // there is no such port
};

// Throws Error, see Port.
OpenedPorts open_ports(std::array<PortOptions, 2> asked);

}  // namespace dutperf
