// SPDX-License-Identifier: Apache-2.0
// A port as the user names it: `0000:01:00.0` (also `01:00.0`, or `0000:01:00.0,KEY=VALUE` for its driver), `IF`,
// `af_xdp:IF`, `af_packet:IF`, `virtio_user:SOCKET`, `vhost_user:SOCKET`, `memif:SOCKET` (each also with `,KEY=VALUE`),
// `ring`, `null`, `vdev:DEVARGS`.
#pragma once

#include <cstdint>
#include <string>

namespace dutperf {

struct PortSpec {
    // kernel: af_xdp or af_packet, which is chosen when it is opened
    enum class Kind : std::uint8_t { pci, kernel, af_xdp, af_packet, virtio_user, vhost_user, memif, ring, null, vdev };

    Kind kind = Kind::null;
    std::string argument;  // PCI address as the kernel writes it, interface, socket or device arguments; empty for ring
                           // and null
    std::string devargs;   // of a PCI device or a socket, for its driver: `key=value,...`

    [[nodiscard]] bool uses_kernel_interface() const {
        return kind == Kind::af_packet || kind == Kind::af_xdp || kind == Kind::kernel;
    }
    // Whether a socket joins it to another process, with queues that both share.
    [[nodiscard]] bool uses_socket() const {
        return kind == Kind::virtio_user || kind == Kind::vhost_user || kind == Kind::memif;
    }
    // Whether the other process reads this one's memory.
    [[nodiscard]] bool shares_memory() const;
    // As DPDK names it, for a PCI device.
    [[nodiscard]] std::string device_name() const { return devargs.empty() ? argument : argument + "," + devargs; }
    // Whether a device may read and write frames by itself (DMA). A virtual device that is not known to copy may be a
    // cover for one that does.
    [[nodiscard]] bool does_dma() const;
};

// Throws Error "bad_request" with `field` for text that names no port.
PortSpec parse_port_spec(const std::string& text, const std::string& field);

}  // namespace dutperf
