// SPDX-License-Identifier: Apache-2.0
#include "port/kernel_port.hpp"

#include <algorithm>

#include "platform/ending.hpp"
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

std::vector<std::unique_ptr<Port>> open(std::vector<PortOptions> asked, PortSpec::Kind kind) {
    std::vector<std::unique_ptr<Port>> ports;
    for (PortOptions& one : asked) {
        require_not_ending();
        if (is_automatic(one)) one.spec.kind = kind;
        ports.push_back(std::make_unique<Port>(one));
    }
    return ports;
}

// Of the first port that has a reason.
std::string why_not_xdp(const std::vector<PortOptions>& asked) {
    for (const PortOptions& one : asked) {
        if (std::string reason = why_not_xdp(one); !reason.empty()) return reason;
    }
    return {};
}

}  // namespace

OpenedPorts open_ports(const std::vector<PortOptions>& asked) {
    using Kind = PortSpec::Kind;
    const bool may_choose = std::ranges::any_of(asked, is_automatic);
    std::string reason = may_choose ? why_not_xdp(asked) : "";
    if (reason.empty()) {
        try {
            return {.ports = open(asked, Kind::af_xdp), .why_not_xdp = {}};
        } catch (const Error& error) {
            if (!may_choose || (error.code() != "port_unavailable" && error.code() != "no_privilege")) throw;
            reason = error.what();
        }
    }
    return {.ports = open(asked, Kind::af_packet), .why_not_xdp = reason};
}

}  // namespace dutperf
