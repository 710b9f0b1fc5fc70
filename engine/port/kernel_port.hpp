// SPDX-License-Identifier: Apache-2.0
// Opens the ports. Where a port was named by its interface alone: by AF_XDP, which is about twice as fast, if both
// ports can have it, else by AF_PACKET; with one of each the two directions would not be measured alike.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "port/port.hpp"

namespace dutperf {

struct OpenedPorts {
    std::array<std::unique_ptr<Port>, 2> ports;
    std::string without_xdp;  // why a port that was named by its interface alone is not opened by AF_XDP; empty: it is,
                              // or none was
};

// Throws Error, see Port.
OpenedPorts open_ports(std::array<PortOptions, 2> asked);

}  // namespace dutperf
