// SPDX-License-Identifier: Apache-2.0
#include "trial/media.hpp"

#include <algorithm>
#include <cmath>

namespace dutperf {

namespace {

constexpr double kBitsPerByte = 8;

double frame_s(double size, std::uint32_t mbps) { return (size + kPreambleAndGap) * kBitsPerByte / (mbps * 1e6); }

// Of a trial whose frames follow the card's clock for a share of its time.
std::uint64_t tolerance_ns(std::uint64_t duration_ns, double share) {
    return static_cast<std::uint64_t>(static_cast<double>(duration_ns) * share * kMaxClockDifference);
}

}  // namespace

double line_rate_fps(const StreamSpec& stream, std::uint32_t mbps) {
    double each_s = frame_s(stream.mean_frame_size(), mbps);
    for (const AdditionalFrames& one : stream.additional) {
        if (one.after_frames != 0)
            each_s += frame_s(static_cast<double>(one.frames.front().size() + kFcsSize), mbps) /
                      static_cast<double>(one.after_frames);
    }
    return 1 / each_s;
}

std::optional<MediaLimit> media_limit(const TrialSpec& spec, Direction direction, std::uint32_t mbps, double others) {
    const StreamSpec& stream = *spec.streams[index_of(direction)];
    const double line_rate = mbps == 0 ? 0 : line_rate_fps(stream, mbps) * (1 - others);
    if (spec.fill && mbps != 0)
        return MediaLimit{.line_rate_fps = line_rate, .tolerance_ns = tolerance_ns(spec.sends_ns(direction), 1)};
    if (mbps == 0 || !stream.is_paced()) return std::nullopt;
    if (std::abs(static_cast<double>(stream.highest_rate_fps()) / line_rate - 1) > kMaxClockDifference)
        return std::nullopt;
    // the clocks drift apart while the rate is the media's
    const auto* profile = std::get_if<Profile>(&stream.pattern);
    const double share = profile == nullptr ? 1 : profile->share_from(line_rate * (1 - kMaxClockDifference));
    return MediaLimit{.line_rate_fps = line_rate, .tolerance_ns = tolerance_ns(spec.sends_ns(direction), share)};
}

double share_of_others(const TestBed& bed, const TrialSpec& spec, Direction direction, std::uint32_t mbps) {
    if (mbps == 0) return 0;
    std::vector<Direction> others = spec.active();
    std::erase_if(others, [&](Direction other) {
        return other == direction || bed.sending_port(other) != bed.sending_port(direction) ||
               !spec.send_together(other, direction);
    });
    const double share = spec.most_at_once(others, [&](Direction other) {
        const StreamSpec& stream = *spec.streams[index_of(other)];
        return static_cast<double>(stream.highest_rate_fps()) / line_rate_fps(stream, mbps);
    });
    return std::min(share, 1.0);
}

TransmitWait transmit_wait(const StreamSpec& stream, std::uint64_t frames, std::uint32_t mbps) {
    TransmitWait wait{.frames = frames, .us = std::nullopt};
    if (mbps != 0) wait.us = static_cast<double>(frames) * frame_s(stream.longest_frame(), mbps) * 1e6;
    return wait;
}

}  // namespace dutperf
