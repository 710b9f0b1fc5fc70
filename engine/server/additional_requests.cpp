// SPDX-License-Identifier: Apache-2.0
#include "server/additional_requests.hpp"

#include "server/described_requests.hpp"

namespace dutperf {

namespace {

constexpr std::size_t kMostKindsOfThem = 8, kMostFrames = 16, kMostMarks = 16;
constexpr std::uint64_t kMillion = 1'000'000, kLongestTrialNs = 86'400'000 * kMillion;

Marks read_marks(Reader& additional, const std::string& name) {
    Marks marks;
    for (Reader& mark : additional.objects(name)) {
        BytesAt& one = marks.emplace_back();
        one.at = static_cast<std::uint16_t>(mark.integer("at", {0, kMaxFrameSize}));
        one.bytes = bytes_of(mark, "bytes", mark.text("bytes"));
        if (one.bytes.empty()) mark.fail("bytes", "must not be empty");
        mark.finish();
    }
    if (marks.size() > kMostMarks) additional.fail(name, "has more than " + std::to_string(kMostMarks) + " entries");
    return marks;
}

AdditionalFrames read_one(Reader one, std::uint16_t max_frame_size) {
    AdditionalFrames additional;
    one.text("name");
    for (const std::string& text : one.texts("frames")) additional.frames.push_back(bytes_of(one, "frames", text));
    if (additional.frames.empty() || additional.frames.size() > kMostFrames)
        one.fail("frames", "must be 1 to " + std::to_string(kMostFrames) + " frames");
    for (const FrameBytes& frame : additional.frames) {
        if (frame.size() < kMinEthernetLength || frame.size() + kFcsSize > max_frame_size)
            one.fail("frames", "must have " + std::to_string(kMinEthernetLength) + " to " +
                                   std::to_string(max_frame_size - kFcsSize) + " bytes");
    }
    additional.destination = read_next_hop(one);
    if (one.has("after_frames") == one.has("every_ns")) one.fail("every_ns", "or after_frames must be given, not both");
    if (one.has("after_frames")) additional.after_frames = one.integer("after_frames", {1, kMillion});
    if (one.has("every_ns")) additional.every_ns = one.integer("every_ns", {kMillion, kLongestTrialNs});
    additional.forwarded = read_marks(one, "forwarded");
    additional.replies = read_marks(one, "replies");
    one.finish();
    return additional;
}

}  // namespace

std::vector<AdditionalFrames> read_additional(Reader& stream, std::uint16_t max_frame_size) {
    std::vector<AdditionalFrames> kinds;
    for (Reader& one : stream.objects("additional")) kinds.push_back(read_one(one, max_frame_size));
    if (kinds.size() > kMostKindsOfThem)
        stream.fail("additional", "has more than " + std::to_string(kMostKindsOfThem) + " entries");
    return kinds;
}

}  // namespace dutperf
