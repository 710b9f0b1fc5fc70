// SPDX-License-Identifier: Apache-2.0
// A DPDK device, found or made from a port spec.
#pragma once

#include <cstdint>
#include <string>

#include "port/port_options.hpp"

namespace dutperf {

// A DPDK device: made for the purpose, or a card that is taken and given back.
class Device {
public:
    // Throws Error "port_unavailable".
    explicit Device(const PortOptions& options);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    [[nodiscard]] std::uint16_t id() const { return id_; }

private:
    std::uint16_t id_ = 0;
    std::string bus_, made_;  // its name on it
};

}  // namespace dutperf
