// SPDX-License-Identifier: Apache-2.0
#include "flow/frame_list.hpp"

#include <algorithm>
#include <limits>

#include "frame/dissect.hpp"

namespace dutperf {

namespace {

// The frame as a receiver reads it. It must find the tag where it is, or every frame would count as lost.
Dissected found_in(std::vector<std::uint8_t>& bytes, std::uint16_t tag_at, std::uint16_t balance) {
    FrameList::write_balanced_tag(&bytes[tag_at], 0, {}, 0, balance);
    const auto from_end = static_cast<std::uint16_t>(bytes.size() - tag_at);
    Dissected found = dissect(bytes.data(), bytes.size(), {&from_end, 1});
    if (found.tag != &bytes[tag_at]) found.tag = nullptr;
    return found;
}

}  // namespace

std::string FrameList::add(const Given& given) {
    const bool has_tag = given.tag_at != kNoTag;
    if (given.bytes.size() < kMinEthernetLength || given.bytes.size() > kMaxFrameSize - kFcsSize)
        return "bytes must be " + std::to_string(kMinEthernetLength) + " to " +
               std::to_string(kMaxFrameSize - kFcsSize) + " bytes without FCS";
    if (size() == kMostFrames || bytes() + given.bytes.size() > kMostBytes)
        return "bytes make the list longer than " + std::to_string(kMostFrames) + " frames or " +
               std::to_string(kMostBytes >> 20U) + " MiB";
    if (!times_ns_->empty() && given.at_ns < times_ns_->back()) return "at_ns is earlier than that of the frame before";
    if (has_tag && (given.tag_at % 2 != 0 || given.tag_at + kTagSize + kBalanceSize > given.bytes.size()))
        return "tag_at must be an even place with " + std::to_string(kTagSize + kBalanceSize) + " bytes behind it";
    const std::uint16_t balance =
        checksum_fold(has_tag ? checksum_add(&given.bytes[given.tag_at], kTagSize + kBalanceSize) : 0);
    std::vector<std::uint8_t> as_sent = given.bytes;
    const Dissected found = has_tag ? found_in(as_sent, given.tag_at, balance) : Dissected{};
    if (has_tag && found.tag == nullptr)
        return "tag_at is where no receiver would find the tag: in a fragment, an ICMP error, or behind another tag";
    frames_.push_back({.offset = bytes(),
                       .tag_number = static_cast<std::uint32_t>(tagged()),
                       .length = static_cast<std::uint16_t>(given.bytes.size()),
                       .tag_at = given.tag_at,
                       .balance = balance,
                       .checked = found.intact,
                       .source_mac_of_port = given.source_mac_of_port,
                       .destination = given.destination});
    if (has_tag) tagged_places_.push_back(static_cast<std::uint32_t>(size() - 1));
    bytes_.insert(bytes_.end(), given.bytes.begin(), given.bytes.end());
    times_ns_->push_back(given.at_ns);
    longest_ = std::max(longest_, frames_.back().length);
    for_neighbours_ |= is_for_neighbours(given.bytes.data(), given.bytes.size());
    foreign_tags_ |= !has_tag && dissect(given.bytes.data(), given.bytes.size()).tag != nullptr;
    return "";
}

std::vector<std::uint16_t> FrameList::untagged_lengths(std::span<const std::int32_t, kLengthsOf> changes) const {
    std::vector<std::uint16_t> lengths;
    lengths.reserve(size() - tagged());
    for (const Frame& frame : frames_) {
        if (frame.tag_at != kNoTag) continue;
        const PacketLength packet = packet_length(data(frame), frame.length);
        const std::int32_t changed = packet.bytes + changes[static_cast<std::size_t>(packet.of)];
        lengths.push_back(static_cast<std::uint16_t>(std::clamp(changed, 0, 0xFFFF)));
    }
    return lengths;
}

}  // namespace dutperf
