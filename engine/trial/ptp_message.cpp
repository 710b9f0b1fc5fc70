// SPDX-License-Identifier: Apache-2.0
#include "trial/ptp_message.hpp"

#include <algorithm>
#include <utility>

#include "frame/bytes.hpp"
#include "frame/dissect.hpp"
#include "trial/any_tag.hpp"

namespace dutperf {

StampedFrames stamped_frames_of(const DescribedFrame& message) {
    constexpr std::uint16_t kPtp = 0x88F7;
    return network_of(message.head.data(), message.head.size()).type == kPtp ? StampedFrames::ptp_in_ethernet
                                                                             : StampedFrames::ptp_in_udp;
}

PtpMessage::PtpMessage(std::vector<DescribedTemplate> of_kinds, std::vector<std::uint16_t> tags_from_end)
    : of_kinds_(std::move(of_kinds)), tags_from_end_(std::move(tags_from_end)) {
    for (const DescribedTemplate& message : of_kinds_) bytes_.push_back(message.first_frame());
}

std::span<const std::uint8_t> PtpMessage::in_place_of(std::span<const std::uint8_t> frame) {
    constexpr std::size_t kSequenceAt = 30;
    const AnyTag found =
        find_any_tag(frame.data(), frame.size(), {.from_end = tags_from_end_, .accepts_unfinished = true},
                     [](auto) { return true; });
    const std::uint8_t stream = found.tag[tag::kStreamAt];
    const std::size_t kind = (stream >> kStreamKindShift) + ((stream & kStreamBackground) != 0 ? 1U : 0U);
    std::vector<std::uint8_t>& bytes = bytes_[kind];
    const std::size_t tag_at = of_kinds_[kind].frame().tag_at;
    std::copy_n(found.tag, kTagSize, bytes.data() + tag_at);
    // drivers may tell stamps from each other by it
    store_be16(bytes.data() + tag_at - kSize + kSequenceAt, static_cast<std::uint16_t>(read_tag(found.tag).sequence));
    of_kinds_[kind].sum_up(bytes);
    return bytes;
}

}  // namespace dutperf
