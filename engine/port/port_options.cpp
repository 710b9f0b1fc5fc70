// SPDX-License-Identifier: Apache-2.0
#include "port/port_options.hpp"

#include "platform/error.hpp"

namespace dutperf {

void note_change(const PortOptions& options, const std::string& note) {
    if (options.note) options.note(note);
}

void unavailable(const PortOptions& options, const std::string& message) {
    throw Error("port_unavailable", message, options.side + ".port");
}

void frames_too_long(const PortOptions& options, const std::string& message, std::uint32_t longest) {
    throw Error("port_unavailable", message, options.side + ".port", longest);
}

void away(const PortOptions& options, const std::string& message) {
    throw Error("port_away", message, options.side + ".port");
}

}  // namespace dutperf
