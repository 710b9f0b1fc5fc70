// SPDX-License-Identifier: Apache-2.0
// What a trial expects to receive, and the frames that it captures.
#include "trial/run_trial.hpp"

#include <rte_mempool.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "flow/described_frame.hpp"
#include "frame/dissect.hpp"
#include "frame/frame_template.hpp"
#include "platform/error.hpp"
#include "trial/media.hpp"

namespace dutperf {

namespace {

constexpr std::uint64_t kMaxTscSkewNs =
    1000;  // RDTSC is not ordered with loads, and a virtual machine's counters agree no better
constexpr std::uint64_t kMostSharedFrames = std::uint64_t{1} << 34U;  // 2 GiB for each receiver

// The parts of the sending time over which losses are counted, in frame numbers.
MissingFrames::Bounds loss_bounds(const TrialSpec& spec, Direction direction) {
    MissingFrames::Bounds bounds{};
    const auto numbered = [&](std::uint64_t frames) { return spec.numbered_among(direction, frames); };
    std::ranges::transform(spec.ends_of_parts(direction, bounds.size()), bounds.begin(), numbered);
    return bounds;
}

// All addresses that differ from `address` in bits of `mask` at most.
template <class Address>
AddressRange<Address> around(const Address& address, const Address& mask) {
    AddressRange<Address> all{.first = address, .last = address, .mask = mask};
    for (std::size_t i = 0; i < address.size(); ++i) {
        all.first[i] &= static_cast<std::uint8_t>(~mask[i]);
        all.last[i] |= mask[i];
    }
    return all;
}

// A kind of frames as it is sent.
struct SentKind {
    std::vector<std::uint8_t> frame;     // one of them
    std::vector<Range> varying;          // its bits that differ from frame to frame
    bool checked = true;                 // their lengths are right
    bool learned = false;                // the tester learns from received frames where they go
    std::optional<bool> encapsulated{};  // see DescribedFrame

    [[nodiscard]] Dissected read(std::span<const std::uint16_t> tags_from_end) const {
        return dissect(frame.data(), frame.size(), tags_from_end);
    }
    // The addresses that its frames have at a place.
    [[nodiscard]] AddressRanges addresses(const Range& at) const;
};

AddressRanges SentKind::addresses(const Range& at) const {
    AddressRanges ranges;
    if (at.size() == 0) return ranges;
    IpAddress mask;
    for (const Range& bits : varying) {
        for (std::size_t bit = std::max(bits.from, 8 * at.from); bit < std::min(bits.to, 8 * at.to); ++bit)
            mask.bytes[bit / 8 - at.from] |= static_cast<std::uint8_t>(0x80U >> bit % 8);
    }
    const IpAddress address = address_in(frame.data(), at);
    if (address.is_ipv6)
        ranges.ipv6 = {around(address.bytes, mask.bytes)};
    else
        ranges.ipv4 = {around(address.ipv4(), mask.ipv4())};
    return ranges;
}

Range bits_of(const AddressSlot& slot) {
    const std::size_t end = 8 * (slot.at + sizeof slot.mask) - slot.shift;
    return {end - static_cast<std::size_t>(std::popcount(slot.mask)), end};
}

std::vector<SentKind> plain_kinds(const StreamSpec& stream, bool learned) {
    std::vector<SentKind> kinds;
    const auto add = [&](const FrameSpec& frame, bool foreground) {
        const FrameTemplate made(frame, {}, {}, {}, stream.variations(frame.is_ipv6(), foreground));
        kinds.push_back({.frame = {made.data(), made.data() + made.length()},
                         .varying = {bits_of(made.source_slot()), bits_of(made.destination_slot())},
                         .learned = learned});
    };
    add(stream.foreground, true);
    if (stream.background) add(*stream.background, false);
    return kinds;
}

std::vector<SentKind> described_kinds(const std::vector<DescribedFrame>& described) {
    std::vector<SentKind> kinds;
    for (const DescribedFrame& kind : described) {
        SentKind& made = kinds.emplace_back(SentKind{.frame = DescribedTemplate(kind, {}).first_frame(),
                                                     .varying = {},
                                                     .checked = kind.checked,
                                                     .encapsulated = kind.arrives_encapsulated});
        for (const VaryingBits& field : kind.fields) {
            made.varying.push_back({field.bit, field.end()});
            made.learned |= field.source == FieldSource::learned;
        }
    }
    return kinds;
}

// Frames of a list are not compared, and questions have no tag.
std::vector<SentKind> kinds_of(const StreamSpec& stream, bool learned) {
    if (stream.replayed || stream.questions) return {};
    return stream.described ? described_kinds(stream.described->kinds) : plain_kinds(stream, learned);
}

}  // namespace

std::vector<Marks> RunningTrial::marks(std::size_t port) const {
    std::vector<Marks> marks;
    for (const PortMark& mark : marks_at(bed_, spec_, port)) {
        if (mark.of == PortMark::Of::filler) {
            marks.push_back(filler_marks(index_of(mark.path))[mark.kind]);
            continue;
        }
        const AdditionalFrames& frames = spec_.streams[index_of(mark.path)]->additional[mark.kind];
        marks.push_back(mark.of == PortMark::Of::reply ? frames.replies : frames.forwarded);
    }
    return marks;
}

// What all receivers of an active path share.
void RunningTrial::prepare_to_receive(Direction direction) {
    const std::string& path = spec_.delays_files[index_of(direction)];
    auto& delays = parts_.delay_files[index_of(direction)];
    if (!path.empty() && !bed_.path(direction).also_to.empty())
        throw Error("bad_request", "goes with one receiving port only", "params.delays_files");
    if (!path.empty()) {
        const std::string field = "params.delays_files." + bed_.name_of(direction);
        delays = std::make_unique<DelayFile>(path, field, bed_.clock_hz, bed_.queues, DelayFile::kRingRecords,
                                             bed_.other_cores);
    }
    if (has_several_receivers(direction) && spec_.intended(direction) > kMostSharedFrames) {
        throw Error(
            "no_memory",
            "with several queues or receiving ports a direction has at most " + std::to_string(kMostSharedFrames) +
                " frames a trial: every receiver keeps a bit for each, to know duplicates of what another one took");
    }
    if (spec_.streams[index_of(direction)]->described)
        parts_.groups[index_of(direction)].emplace(spec_.groups(direction));
    note_lengths(direction);
    const bool has_numbers = spec_.numbered_among(direction, spec_.intended(direction)) != 0;
    if (spec_.capture && spec_.capture->of(CapturedAs::lost) != 0 && has_numbers)
        lost_[index_of(direction)].emplace(LostNumbers{.most = spec_.capture->of(CapturedAs::lost)});
}

bool RunningTrial::has_several_receivers(Direction direction) const {
    return bed_.queues > 1 || (direction != Direction::none && !bed_.path(direction).also_to.empty());
}

Expected RunningTrial::expected(Direction direction, std::size_t at, std::uint16_t queue) const {
    Expected expected{.trial = trial_mark(),
                      .direction = direction,
                      .frames = 0,
                      .bounds = {},
                      .stamping = spec_.stamping,
                      .frame_timeout = ticks_of(spec_.frame_timeout_ns.value_or(0), bed_.clock_hz),
                      .delays = nullptr,
                      .shared = has_several_receivers(direction),
                      .long_gap = ticks_of(kLongGapNs, bed_.clock_hz),
                      .tags_from_end = spec_.tags_from_end()};
    expected.others_stamp = spec_.stamps != Stamps::loop;
    if (!bed_.offloads.contains(Offload::send_at)) expected.max_tsc_skew = ticks_of(kMaxTscSkewNs, bed_.clock_hz);
    if (direction == Direction::none) return expected;
    const std::size_t path = index_of(direction);
    expected.frames = spec_.numbered_among(direction, spec_.intended(direction));
    expected.bounds = loss_bounds(spec_, direction);
    expected.ends_of_parts = spec_.ends_of_parts(direction, spec_.delay_parts);
    if (parts_.delay_files[path]) expected.delays = &parts_.delay_files[path]->ring(queue);
    if (parts_.groups[path]) {
        expected.groups = &*parts_.groups[path];
        expected.unchecked_kinds = spec_.streams[path]->described->unchecked_kinds();
    }
    if (const auto& stream = spec_.streams[path]; stream->replayed && stream->replayed->list->tagged() != 0)
        expected.list = stream->replayed->list.get();
    expected.untagged = parts_.lengths[path].get();
    expected.tracked = spec_.streams[path]->tracked;
    expected.arriving = arriving(direction, at);
    return expected;
}

// What the frames of a path must have kept when they arrive at a port.
Arriving RunningTrial::arriving(Direction direction, std::size_t at) const {
    const StreamSpec& stream = *spec_.streams[index_of(direction)];
    const std::vector<std::uint16_t> from_end = spec_.tags_from_end();
    Arriving arriving;
    for (const SentKind& kind : kinds_of(stream, replies(direction))) {
        ArrivingKind& made = arriving.kinds.emplace_back();
        made.encapsulated = kind.encapsulated;
        const Dissected found = kind.read(from_end);
        if (!kind.checked || found.tag == nullptr) continue;
        if (found.payload != 0) made.payloads = {found.payload};
        made.sent_to = kind.learned ? sources_of_initiator() : kind.addresses(found.destination);
        made.outer_to = kind.addresses(found.outer_destination);
    }
    // messages of PTP may leave in place of frames of each kind
    const std::vector<SentKind> messages = described_kinds(stream.ptp);
    for (std::size_t kind = 0; kind < messages.size(); ++kind) {
        const Dissected found = messages[kind].read(from_end);
        ArrivingKind& made = arriving.kinds[kind];
        if (!made.payloads.empty()) made.payloads.push_back(found.payload);
        if (!made.sent_to.empty()) made.sent_to.add(messages[kind].addresses(found.destination));
    }
    const Port& port = *bed_.ports[at];
    std::vector<std::vector<VlanTags>> tags = stream.vlan_tags();
    for (std::size_t kind = 0; kind < arriving.kinds.size() && !port.hides_outer_tag(); ++kind) {
        arriving.kinds[kind].vlan_tags = {.choices = std::move(tags[kind]),
                                          .any_outer_type = port.hides_outer_tag_type()};
    }
    for (std::size_t host = 0; host < bed_.hosts[at]->size(); ++host)
        arriving.of_port.add((*bed_.hosts[at])[host].addresses());
    for (const Direction path : paths_into(bed_, spec_, at))
        arriving.of_port.add(spec_.streams[index_of(path)]->translated);
    return arriving;
}

// Where replies in connections go, if the DUT does not translate addresses; empty if the Initiator does not send.
AddressRanges RunningTrial::sources_of_initiator() const {
    AddressRanges sources;
    const auto& initiator = spec_.streams[index_of(spec_.connections->initiator)];
    if (!initiator) return sources;
    for (const SentKind& kind : kinds_of(*initiator, false))
        sources.add(kind.addresses(kind.read(spec_.tags_from_end()).source));
    return sources;
}

void RunningTrial::make_receivers(std::size_t port) {
    const std::vector<Direction> paths = paths_into(bed_, spec_, port);
    const bool stamped_by_nic = bed_.offloads.contains(Offload::receive_timestamps) && spec_.stamping != Stamping::none;
    const Port& open = *bed_.ports[port];
    for (std::uint16_t queue = 0; queue < bed_.queues; ++queue) {
        const auto expect = [&](Direction path) {
            Expected expected = this->expected(path, port, queue);
            if (path == Direction::none) return expected;
            if (lost_[index_of(path)]) expected.lost = &*lost_[index_of(path)];
            watch_connections(path, expected);
            return expected;
        };
        ReceiverParts parts{.queue = open.queue(queue),
                            .neighbours = bed_.hosts[port]->watch(),
                            .control_pool = bed_.control_pool,
                            .control = bed_.control_rings[port],
                            .accepts_unfinished = open.may_leave_checksums_unfinished(),
                            .capture = make_capture(),
                            .answers = answers_into(port),
                            .answering = spec_.server && spec_.server->port == port ? parts_.answering.get() : nullptr,
                            .learner = learner_at(port),
                            .marks = marks(port),
                            .room = open.peer_queue_size(),
                            .ring = open.kernel_queue_size()};
        std::ranges::transform(paths, std::back_inserter(parts.expected), expect);
        if (paths.empty()) parts.expected.push_back(expect(Direction::none));
        if (stamped_by_nic) parts.nic = {bed_.clocks[port], receive_time_field()};
        parts_.receivers[port].push_back(std::make_unique<Receiver>(std::move(parts)));
    }
}

std::optional<ConnectionLearner> RunningTrial::learner_at(std::size_t port) const {
    const auto initiator = initiator_into(port);
    if (!initiator) return std::nullopt;
    return ConnectionLearner(**bed_.state, connection_choice(*initiator),
                             {.trial = trial_mark(),
                              .direction = *initiator,
                              .frames = spec_.intended(*initiator),
                              .kinds = spec_.streams[index_of(*initiator)]->connected_kinds()});
}

// Arrivals without a tag are noted if the list has frames without one.
void RunningTrial::note_lengths(Direction direction) {
    const auto& stream = spec_.streams[index_of(direction)];
    if (!stream->replayed) return;
    const FrameList& list = *stream->replayed->list;
    const std::uint64_t untagged = stream->replayed->untagged_among(spec_.intended(direction));
    if (untagged == 0) return;
    const SenderCounts& counts = parts_.senders[index_of(direction)].front()->counts();
    parts_.lengths[index_of(direction)] =
        std::make_unique<LengthLog>(LengthLog::Watched{.sent = &counts.sent,
                                                       .in_hand = spec_.burst,
                                                       .frames_for_neighbours = list.has_frames_for_neighbours(),
                                                       .only_untagged = list.tagged() == 0},
                                    untagged);
}

// Of one receiver; nullptr: no frames are captured.
CaptureBuffer* RunningTrial::make_capture() {
    if (!spec_.capture) return nullptr;
    const std::size_t longest = rte_pktmbuf_data_room_size(bed_.frame_pools[0]);
    return captures_.emplace_back(std::make_unique<CaptureBuffer>(*spec_.capture, longest)).get();
}

CaptureWritten RunningTrial::write_captured() {
    CaptureWritten counts;
    std::vector<CapturedFrame> frames;
    std::vector<std::vector<std::uint8_t>> made;
    for (std::size_t i = 0; i < captures_.size(); ++i) {
        for (const CaptureBuffer::Kept& kept : captures_[i]->kept()) {
            const auto after = static_cast<std::int64_t>(kept.at - parts_.start);
            const double after_ns = static_cast<double>(after) * 1e9 / static_cast<double>(bed_.clock_hz);
            frames.push_back({.time_ns = began_ns_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(after_ns)),
                              .kind = kept.kind,
                              .side = static_cast<std::uint8_t>(i / bed_.queues),
                              .comment = kCaptureNames[static_cast<std::size_t>(kept.kind)],
                              .bytes = captures_[i]->bytes_of(kept),
                              .size = kept.size});
        }
        for (std::size_t kind = 0; kind < kCaptureKinds; ++kind)
            counts.left_out[kind] += captures_[i]->left_out()[kind];
    }
    for (const Direction direction : spec_.active()) {
        if (!lost_[index_of(direction)]) continue;
        add_lost(direction, made, frames);
        counts.left_out[static_cast<std::size_t>(CapturedAs::lost)] += lost_[index_of(direction)]->left_out;
    }
    for (const CapturedFrame& frame : frames) ++counts.written[static_cast<std::size_t>(frame.kind)];
    std::vector<std::string> names;
    for (const Port* port : bed_.ports) names.push_back(port->side());
    counts.error = write_capture(spec_.capture->path, names, std::move(frames));
    if (!counts.error.empty()) counts.written = {};
    return counts;
}

// Lost frames are made a second time by their senders.
void RunningTrial::add_lost(Direction direction, std::vector<std::vector<std::uint8_t>>& made,
                            std::vector<CapturedFrame>& frames) {
    for (const std::uint64_t lost : lost_[index_of(direction)]->numbers) {
        const std::uint64_t number = spec_.frame_numbered(direction, lost);
        rte_mbuf* frame = parts_.senders[index_of(direction)][number % bed_.queues]->make_again(number / bed_.queues);
        if (frame == nullptr) {
            ++lost_[index_of(direction)]->left_out;
            continue;
        }
        const std::uint8_t* bytes = rte_pktmbuf_mtod(frame, const std::uint8_t*);
        made.emplace_back(bytes, bytes + rte_pktmbuf_data_len(frame));
        rte_pktmbuf_free(frame);
        frames.push_back({.time_ns = began_ns_ + spec_.due_ns(direction, number),
                          .kind = CapturedAs::lost,
                          .side = static_cast<std::uint8_t>(bed_.sending_port(direction)),
                          .comment = "lost: frame " + std::to_string(number) + " of " + bed_.name_of(direction),
                          .bytes = made.back().data(),
                          .size = static_cast<std::uint16_t>(made.back().size())});
    }
}

}  // namespace dutperf
