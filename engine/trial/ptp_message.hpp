// SPDX-License-Identifier: Apache-2.0
// An event message of PTP that leaves in place of a stamped test frame, for cards that stamp no other received frames
// (hwtstamp_config, linux/net_tstamp.h). It has the frame's tag and so counts as that frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flow/described_frame.hpp"
#include "port/card_stamping.hpp"

namespace dutperf {

// What a card must stamp for messages like this: EtherType 0x88F7 or UDP (IEEE 1588-2008 annexes D to F).
StampedFrames stamped_frames_of(const DescribedFrame& message);

// Of one sender.
class PtpMessage {
public:
    static constexpr std::size_t kSize = 44;  // of a Sync message, behind which the tag is

    // `of_kinds`: for each kind of frames a message without fields that vary, the second one of plain frames for their
    // background. `tags_from_end`: of the frames (see dissect).
    PtpMessage(std::vector<DescribedTemplate> of_kinds, std::vector<std::uint16_t> tags_from_end);

    // The message with the tag of a test frame. Valid until the next call.
    std::span<const std::uint8_t> in_place_of(std::span<const std::uint8_t> frame);

private:
    std::vector<DescribedTemplate> of_kinds_;
    std::vector<std::uint16_t> tags_from_end_;
    std::vector<std::vector<std::uint8_t>> bytes_;
};

}  // namespace dutperf
