// SPDX-License-Identifier: Apache-2.0
// Counts of the ICMP and ICMPv6 errors that arrived, by what they say: a DUT that answers with them says why it does
// not forward frames.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "frame/arrival.hpp"

namespace dutperf {

// Messages that say the same.
struct CountedError {
    IcmpError error;
    std::uint64_t frames;
};

using IcmpErrors = std::vector<CountedError>;

// The list names so many different errors. More are counted by their kind alone (OtherKind).
inline constexpr std::size_t kMostIcmpErrors = 16;

inline void add(IcmpErrors& errors, const CountedError& more) {
    const auto known = std::ranges::find(errors, more.error, &CountedError::error);
    if (known != errors.end()) {
        known->frames += more.frames;
    } else if (errors.size() < kMostIcmpErrors) {
        errors.push_back(more);
    }
}

}  // namespace dutperf
