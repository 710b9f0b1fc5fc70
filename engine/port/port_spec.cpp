// SPDX-License-Identifier: Apache-2.0
#include "port/port_spec.hpp"

#include <array>
#include <regex>

#include "port/error.hpp"

namespace dutperf {

PortSpec parse_port_spec(const std::string& text, const std::string& field) {
    using Kind = PortSpec::Kind;
    static const std::regex pci("[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-7]");
    if (std::regex_match(text, pci)) return {.kind = Kind::pci, .argument = text};
    if (text == "ring") return {.kind = Kind::ring, .argument = {}};
    if (text == "null") return {.kind = Kind::null, .argument = {}};
    struct Prefix {
        std::string text;
        Kind kind;
    };
    static const std::array<Prefix, 3> prefixes{{{"af_packet:", Kind::af_packet}, {"af_xdp:", Kind::af_xdp}, {"vdev:", Kind::vdev}}};
    for (const auto& [prefix, kind] : prefixes) {
        if (text.starts_with(prefix) && text.size() > prefix.size()) return {.kind = kind, .argument = text.substr(prefix.size())};
    }
    throw Error("bad_request", "'" + text + "' is no port: use a PCI address such as 0000:01:00.0, af_xdp:IF, af_packet:IF, ring, null or vdev:DEVARGS", field);
}

}  // namespace dutperf
