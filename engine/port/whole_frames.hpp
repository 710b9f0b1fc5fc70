// SPDX-License-Identifier: Apache-2.0
// Keeps the kernel and a card from changing frames before a port receives them: from merging several into one (GRO,
// LRO), from taking a VLAN tag out of a frame, and from handing over what is no frame of the wire. The table of all
// that may happen to a frame, and of what is done about it, is in docs/cards.md.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "port/port_options.hpp"

namespace dutperf {

// Switches the features of an interface off that would change received frames, and on again at the end.
class WholeFrames {
public:
    // Throws Error "port_unavailable" for "<side>.port" if one of them stays on.
    explicit WholeFrames(const PortOptions& options);
    ~WholeFrames();
    WholeFrames(const WholeFrames&) = delete;
    WholeFrames& operator=(const WholeFrames&) = delete;

    // What others have switched on since: clauses. It is switched off again.
    std::vector<std::string> switch_off_again();

private:
    explicit WholeFrames(std::string interface) : interface_(std::move(interface)) {}

    std::string interface_;
    struct Kept {
        unsigned number;  // of a feature
        std::string name;
        const char* effect;
        bool was_on;
    };

    std::size_t count_ = 0;   // of this kernel's features
    std::vector<Kept> kept_;  // those that are kept off
};

// Switches a feature of an interface on. Returns whether it was off and is on now.
bool switch_on(const std::string& interface, const std::string& feature);

}  // namespace dutperf
