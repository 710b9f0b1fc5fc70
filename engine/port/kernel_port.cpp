// SPDX-License-Identifier: Apache-2.0
#include "port/kernel_port.hpp"

#include <algorithm>

#include "platform/error.hpp"

namespace dutperf {

namespace {

bool is_automatic(const PortOptions& options) { return options.spec.kind == PortSpec::Kind::kernel; }

// Empty where AF_XDP may be tried. On a veth it was compared with AF_PACKET. Elsewhere frames may arrive at queues
// without a socket or wait unseen in a driver, or the link may go down while a program is attached.
std::string why_not_xdp(const PortOptions& options) {
    const std::string& name = options.spec.argument;
    const auto interface = kernel_interface(name);
    if (!interface || !is_automatic(options)) return {};
    if (interface->kind != "veth") return name + " is not a veth";
    if (const unsigned queues = receive_queues(name); queues != 1 || options.queues != 1) {
        return name + " receives on " + std::to_string(std::max<unsigned>(queues, options.queues)) + " queues";
    }
    return {};
}

// Another program's XDP program may also keep frames from packet sockets: then the user must choose between the two.
bool has_program(const PortOptions& options) {
    const auto interface = is_automatic(options) ? kernel_interface(options.spec.argument) : std::nullopt;
    return interface && interface->xdp_program != 0;
}

std::array<std::unique_ptr<Port>, 2> open(std::array<PortOptions, 2> asked, PortSpec::Kind kind) {
    std::array<std::unique_ptr<Port>, 2> ports;
    for (std::size_t side = 0; side < 2; ++side) {
        if (is_automatic(asked[side])) asked[side].spec.kind = kind;
        ports[side] = std::make_unique<Port>(asked[side]);
    }
    return ports;
}

}  // namespace

OpenedPorts open_ports(std::array<PortOptions, 2> asked) {
    using Kind = PortSpec::Kind;
    const bool may_choose = std::ranges::any_of(asked, is_automatic) && std::ranges::none_of(asked, has_program);
    std::string reason = may_choose ? why_not_xdp(asked[0]) : "";
    if (may_choose && reason.empty()) reason = why_not_xdp(asked[1]);
    if (reason.empty()) {
        try {
            return {.ports = open(asked, Kind::af_xdp), .why_not_xdp = {}};
        } catch (const Error& error) {
            if (!may_choose || error.code() != "port_unavailable") throw;
            reason = error.what();
        }
    }
    return {.ports = open(asked, Kind::af_packet), .why_not_xdp = reason};
}

}  // namespace dutperf
