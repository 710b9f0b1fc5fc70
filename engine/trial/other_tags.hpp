// SPDX-License-Identifier: Apache-2.0
// Counts of the test frames that arrived with other VLAN tags than they may have, by these tags.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "frame/vlan_tags.hpp"

namespace dutperf {

struct OtherTags {
    static constexpr std::size_t kMost = 8;  // different ones that are named

    struct Seen {
        VlanTags tags;
        std::uint64_t frames;
    };

    std::uint64_t frames = 0;
    std::vector<Seen> seen;  // the first ones; more are counted in `frames` alone

    void add(const VlanTags& tags, std::uint64_t more = 1) {
        frames += more;
        const auto known = std::ranges::find(seen, tags, &Seen::tags);
        if (known != seen.end()) {
            known->frames += more;
        } else if (seen.size() < kMost) {
            seen.push_back({tags, more});
        }
    }
    void add(const OtherTags& other) {
        std::uint64_t unnamed = other.frames;
        for (const Seen& one : other.seen) {
            add(one.tags, one.frames);
            unnamed -= one.frames;
        }
        frames += unnamed;
    }
};

}  // namespace dutperf
