// SPDX-License-Identifier: Apache-2.0
// A DPDK device that a port spec names or describes.
#pragma once

#include <cstdint>
#include <string>

#include "port/port_options.hpp"

namespace dutperf {

// A DPDK device: a virtual one that is created and removed, or a card that is attached and detached.
class Device {
public:
    // Throws Error "port_unavailable" or "port_away".
    explicit Device(const PortOptions& options);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    [[nodiscard]] std::uint16_t id() const { return id_; }

private:
    std::uint16_t id_ = 0;
    std::string bus_, name_;  // the device's name on the bus
};

}  // namespace dutperf
