// SPDX-License-Identifier: Apache-2.0
#include "server/replay_requests.hpp"

#include "server/described_requests.hpp"

namespace dutperf {

namespace {

constexpr std::uint64_t kLongestNs = 86'400'000'000'000;
constexpr std::int64_t kLargestChange = 9216;

FrameList::Given read_given(Reader& frame) {
    FrameList::Given given;
    given.at_ns = frame.integer("at_ns", {0, kLongestNs}, 0);
    given.bytes = bytes_of(frame, "bytes", frame.text("bytes"));
    given.source_mac_of_port = frame.text("source_mac", {"port", "given"}, "port") == "port";
    given.destination = read_next_hop(frame);
    if (frame.has("tag_at")) given.tag_at = static_cast<std::uint16_t>(frame.integer("tag_at", {0, kMaxFrameSize}));
    frame.finish();
    return given;
}

}  // namespace

std::shared_ptr<FrameList> read_load(Reader params, const std::shared_ptr<FrameList>& loaded) {
    const bool append = params.flag("append");
    if (append && !loaded) params.fail("append", "needs a list");
    std::shared_ptr<FrameList> list = append ? loaded : std::make_shared<FrameList>();
    std::vector<Reader> frames = params.objects("frames");
    if (frames.empty()) params.fail("frames", "must not be empty");
    for (Reader& frame : frames) {
        const std::string wrong = list->add(read_given(frame));
        if (wrong.empty()) continue;
        const auto end = wrong.find(' ');
        frame.fail(wrong.substr(0, end), wrong.substr(end + 1));
    }
    params.finish();
    return list;
}

std::optional<ReplayedStream> read_replay(Reader& stream, std::uint16_t max_frame_size,
                                          const std::shared_ptr<const FrameList>& loaded) {
    auto replay = stream.optional_object("replay");
    if (!replay) return std::nullopt;
    const std::uint64_t frames = replay->integer("frames", {1, FrameList::kMostFrames});
    if (!loaded || loaded->size() != frames)
        replay->fail("frames", "must be those of the list, which has " + std::to_string(loaded ? loaded->size() : 0));
    if (loaded->longest() + kFcsSize > max_frame_size)
        replay->fail("frames",
                     "have up to " + std::to_string(loaded->longest() + kFcsSize) + " bytes, more than max_frame_size");
    if (loaded->tagged() != 0 && loaded->has_foreign_tags())
        replay->fail("frames", "without tag_at must have no tag of an earlier trial where others have tag_at");
    ReplayedStream replayed{.list = loaded};
    if (auto changes = replay->optional_object("length_changes")) {
        static constexpr std::array<const char*, kLengthsOf> kNames{"ipv4", "ipv6", "other"};
        for (std::size_t of = 0; of < kLengthsOf; ++of)
            replayed.length_changes[of] =
                static_cast<std::int32_t>(changes->signed_integer(kNames[of], kLargestChange));
        changes->finish();
    }
    replay->finish();
    return replayed;
}

Recorded read_recorded(Reader& pattern, const std::optional<ReplayedStream>& replayed) {
    const std::uint64_t period_ns = pattern.integer("period_ns", {1, kLongestNs});
    if (!replayed) pattern.fail("kind", "recorded is for replay");
    if (replayed->list->times_ns()->back() >= period_ns)
        pattern.fail("period_ns", "must be more than the time of the last frame");
    return {replayed->list->times_ns(), period_ns};
}

}  // namespace dutperf
