// SPDX-License-Identifier: Apache-2.0
// An event message of PTP that leaves in place of a stamped test frame, for cards that stamp no other received frames
// (hwtstamp_config, linux/net_tstamp.h). It has the frame's tag and so counts as that frame.
#pragma once

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
    // `message`: without fields that vary. `tags_from_end`: of the frames (see dissect).
    PtpMessage(DescribedTemplate message, std::vector<std::uint16_t> tags_from_end);

    // The message with the tag of a test frame. Valid until the next call.
    std::span<const std::uint8_t> in_place_of(std::span<const std::uint8_t> frame);

private:
    DescribedTemplate message_;
    std::vector<std::uint16_t> tags_from_end_;
    std::vector<std::uint8_t> bytes_;
};

}  // namespace dutperf
