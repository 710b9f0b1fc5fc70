// SPDX-License-Identifier: Apache-2.0
// A port as the user names it: `0000:01:00.0`, `af_xdp:IF`, `af_packet:IF`, `ring`, `null`, `vdev:DEVARGS`.
#pragma once

#include <cstdint>
#include <string>

namespace dutperf {

struct PortSpec {
    enum class Kind : std::uint8_t { pci, af_xdp, af_packet, ring, null, vdev };

    Kind kind = Kind::null;
    std::string argument;  // PCI address, interface or device arguments; empty for ring and null

    [[nodiscard]] bool uses_kernel_interface() const { return kind == Kind::af_packet || kind == Kind::af_xdp; }
};

// Throws Error "bad_request" with `field` for text that names no port.
PortSpec parse_port_spec(const std::string& text, const std::string& field);

}  // namespace dutperf
