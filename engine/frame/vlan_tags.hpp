// SPDX-License-Identifier: Apache-2.0
// VLAN tags of received test frames (IEEE 802.1Q, 802.1ad). The priority (PCP, DEI) is left out: routers and bridges
// set it by rules of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "frame/dissect.hpp"

namespace dutperf {

struct VlanTag {
    static constexpr std::uint16_t kVlanMask = 0x0FFF;  // of the control information

    std::uint16_t type, vlan;

    bool operator==(const VlanTag&) const = default;
};

// From the outermost tag on; empty: no tag.
using VlanTags = std::vector<VlanTag>;

inline VlanTag vlan_tag_at(const std::uint8_t* frame, std::size_t at) {
    return {.type = load_be16(frame + at),
            .vlan = static_cast<std::uint16_t>(load_be16(frame + at + 2) & VlanTag::kVlanMask)};
}

inline VlanTags vlan_tags_of(const std::uint8_t* frame, std::size_t length) {
    VlanTags tags;
    for (std::size_t at = ethernet::kType, end = network_of(frame, length).at; at + 2 < end;
         at += ethernet::kVlanTagSize)
        tags.push_back(vlan_tag_at(frame, at));
    return tags;
}

// With which tags a frame may arrive.
struct ArrivingTags {
    std::vector<VlanTags> choices;  // empty: tags are not compared
    bool any_outer_type = false;    // the receiving port does not see the type of the outermost tag

    [[nodiscard]] bool compared() const { return !choices.empty(); }
    [[nodiscard]] bool may_be_absent() const { return !compared() || std::ranges::any_of(choices, &VlanTags::empty); }
    // Whether the frame may arrive with the tags that it has.
    [[nodiscard]] bool fit(const std::uint8_t* frame, std::size_t length) const {
        const std::size_t count = (network_of(frame, length).at - ethernet::kSize) / ethernet::kVlanTagSize;
        return !compared() || std::ranges::any_of(choices, [&](const VlanTags& tags) {
            return tags.size() == count && std::ranges::all_of(tags, [&](const VlanTag& tag) {
                       const auto number = static_cast<std::size_t>(&tag - tags.data());
                       const VlanTag arrived = vlan_tag_at(frame, ethernet::kType + number * ethernet::kVlanTagSize);
                       return arrived.vlan == tag.vlan && (arrived.type == tag.type || (number == 0 && any_outer_type));
                   });
        });
    }
};

}  // namespace dutperf
