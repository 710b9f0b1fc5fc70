// SPDX-License-Identifier: Apache-2.0
// A port as the user names it: `0000:01:00.0` (also `01:00.0`, or `0000:01:00.0,KEY=VALUE` for its driver), `IF`,
// `af_xdp:IF`, `af_packet:IF`, `virtio_user:SOCKET`, `vhost_user:SOCKET`, `memif:SOCKET` (each also with `,KEY=VALUE`),
// `ring`, `null`, `vdev:DEVARGS`.
#pragma once

#include <cstdint>
#include <string>

namespace dutperf {

struct PortSpec {
    // kernel: af_xdp or af_packet; chosen when the port is opened
    enum class Kind : std::uint8_t { pci, kernel, af_xdp, af_packet, virtio_user, vhost_user, memif, ring, null, vdev };

    Kind kind = Kind::null;
    std::string
        argument;  // PCI address in the kernel's form, interface, socket or device arguments; empty for ring and null
    std::string devargs;  // arguments for the driver of a PCI device or a socket: `key=value,...`

    [[nodiscard]] bool uses_kernel_interface() const {
        return kind == Kind::af_packet || kind == Kind::af_xdp || kind == Kind::kernel;
    }
    // Whether a socket connects it to another process, with shared queues.
    [[nodiscard]] bool uses_socket() const {
        return kind == Kind::virtio_user || kind == Kind::vhost_user || kind == Kind::memif;
    }
    // Whether the other process accesses this one's memory.
    [[nodiscard]] bool shares_memory() const;
    // Whether its buffers are the engine's alone, whatever its device arguments say: no device and no other process
    // gets at them.
    [[nodiscard]] bool has_private_buffers() const;
    // DPDK's name of a PCI device.
    [[nodiscard]] std::string device_name() const { return devargs.empty() ? argument : argument + "," + devargs; }
    // Whether a device may access frames by DMA. A virtual device that is not known to copy may stand for one that
    // does.
    [[nodiscard]] bool does_dma() const;
};

// A port in a sentence, by its name: "the left port", "port a".
std::string the_port(const std::string& name);

// Throws Error "bad_request" for `field` if the text is not a port.
PortSpec parse_port_spec(const std::string& text, const std::string& field);

}  // namespace dutperf
