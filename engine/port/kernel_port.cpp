// SPDX-License-Identifier: Apache-2.0
#include "port/kernel_port.hpp"

#include <algorithm>

#include "platform/error.hpp"

namespace dutperf {

namespace {

bool is_automatic(const PortOptions& options) { return options.spec.kind == PortSpec::Kind::kernel; }

// Nothing where AF_XDP may be tried. On a veth it was compared with AF_PACKET; elsewhere frames may arrive at queues
// that have no socket, wait in a driver unseen, or the link go down while a program is attached.
std::string objection_to_xdp(const PortOptions& options) {
    const std::string& name = options.spec.argument;
    const auto interface = kernel_interface(name);
    if (!interface || !is_automatic(options)) return {};
    if (interface->kind != "veth") return name + " is no veth";
    if (const unsigned queues = receive_queues(name); queues != 1 || options.queues != 1) {
        return name + " receives on " + std::to_string(std::max<unsigned>(queues, options.queues)) + " queues";
    }
    return {};
}

// Somebody else's program may keep frames from packet sockets as well: which of the two is to be used is then for the
// user to say.
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
    const bool free = std::ranges::any_of(asked, is_automatic) && std::ranges::none_of(asked, has_program);
    std::string objection = free ? objection_to_xdp(asked[0]) : "";
    if (free && objection.empty()) objection = objection_to_xdp(asked[1]);
    if (objection.empty()) {
        try {
            return {.ports = open(asked, Kind::af_xdp), .without_xdp = {}};
        } catch (const Error& error) {
            if (!free || error.code() != "port_unavailable") throw;
            objection = error.what();
        }
    }
    return {.ports = open(asked, Kind::af_packet), .without_xdp = objection};
}

}  // namespace dutperf
