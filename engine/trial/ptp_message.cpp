// SPDX-License-Identifier: Apache-2.0
#include "trial/ptp_message.hpp"

#include <algorithm>
#include <utility>

#include "frame/dissect.hpp"
#include "trial/any_tag.hpp"

namespace dutperf {

StampedFrames stamped_frames_of(const DescribedFrame& message) {
    constexpr std::uint16_t kPtp = 0x88F7;
    return network_of(message.head.data(), message.head.size()).type == kPtp ? StampedFrames::ptp_in_ethernet
                                                                             : StampedFrames::ptp_in_udp;
}

PtpMessage::PtpMessage(DescribedTemplate message, std::vector<std::uint16_t> tags_from_end)
    : message_(std::move(message)), tags_from_end_(std::move(tags_from_end)), bytes_(message_.first_frame()) {}

std::span<const std::uint8_t> PtpMessage::in_place_of(std::span<const std::uint8_t> frame) {
    const AnyTag found =
        find_any_tag(frame.data(), frame.size(), {.from_end = tags_from_end_, .accepts_unfinished = true},
                     [](auto) { return true; });
    std::copy_n(found.tag, kTagSize, bytes_.begin() + message_.frame().tag_at);
    message_.sum_up(bytes_);
    return bytes_;
}

}  // namespace dutperf
