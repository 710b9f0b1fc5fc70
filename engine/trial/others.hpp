// SPDX-License-Identifier: Apache-2.0
// Counts of frames that arrived, by what they had: the VLAN tags or the destination address of test frames that may not
// have it, and what ICMP and ICMPv6 errors say. A DUT that answers with these says why it does not forward frames.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "frame/address.hpp"
#include "frame/arrival.hpp"
#include "frame/vlan_tags.hpp"

namespace dutperf {

// kMost: different ones that are named.
template <class Value, std::size_t kMost = 8>
struct Others {
    struct Seen {
        Value value;
        std::uint64_t frames;
    };

    std::uint64_t frames = 0;
    std::vector<Seen> seen;  // the first ones; more are counted in `frames` alone

    void add(const Value& value, std::uint64_t more = 1) {
        frames += more;
        const auto known = std::ranges::find(seen, value, &Seen::value);
        if (known != seen.end()) {
            known->frames += more;
        } else if (seen.size() < kMost) {
            seen.push_back({value, more});
        }
    }
    void add(const Others& other) {
        std::uint64_t unnamed = other.frames;
        for (const Seen& one : other.seen) {
            add(one.value, one.frames);
            unnamed -= one.frames;
        }
        frames += unnamed;
    }
};

using OtherTags = Others<VlanTags>;
using OtherDestinations = Others<IpAddress>;
constexpr std::size_t kMostIcmpErrors = 16;
using IcmpErrors = Others<IcmpError, kMostIcmpErrors>;

}  // namespace dutperf
