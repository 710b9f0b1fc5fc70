// SPDX-License-Identifier: Apache-2.0
#include "trial/trial_receivers.hpp"

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
#include "trial/trial_paths.hpp"

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

// Where replies in connections go, if the DUT does not translate addresses; empty if the Initiator does not send.
AddressRanges sources_of_initiator(const TrialSpec& spec) {
    AddressRanges sources;
    const auto& initiator = spec.streams[index_of(spec.connections->initiator)];
    if (!initiator) return sources;
    for (const SentKind& kind : kinds_of(*initiator, false))
        sources.add(kind.addresses(kind.read(spec.tags_from_end()).source));
    return sources;
}

}  // namespace

Arriving arriving(const TestBed& bed, const TrialSpec& spec, Direction direction, std::size_t at) {
    const StreamSpec& stream = *spec.streams[index_of(direction)];
    const std::vector<std::uint16_t> from_end = spec.tags_from_end();
    Arriving arriving;
    for (const SentKind& kind : kinds_of(stream, spec.replies(direction))) {
        ArrivingKind& made = arriving.kinds.emplace_back();
        made.encapsulated = kind.encapsulated;
        const Dissected found = kind.read(from_end);
        if (!kind.checked || found.tag == nullptr) continue;
        if (found.payload != 0) made.payloads = {found.payload};
        made.sent_to = kind.learned ? sources_of_initiator(spec) : kind.addresses(found.destination);
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
    const Port& port = *bed.ports[at];
    std::vector<std::vector<VlanTags>> tags = stream.vlan_tags();
    for (std::size_t kind = 0; kind < arriving.kinds.size() && !port.hides_outer_tag(); ++kind) {
        arriving.kinds[kind].vlan_tags = {.choices = std::move(tags[kind]),
                                          .any_outer_type = port.hides_outer_tag_type()};
    }
    for (std::size_t host = 0; host < bed.hosts[at]->size(); ++host)
        arriving.of_port.add((*bed.hosts[at])[host].addresses());
    for (const Direction path : paths_into(bed, spec, at))
        arriving.of_port.add(spec.streams[index_of(path)]->translated);
    return arriving;
}

std::vector<Marks> TrialReceivers::marks(std::size_t port) const {
    std::vector<Marks> marks;
    for (const PortMark& mark : marks_at(bed_, spec_, port)) {
        if (mark.of == PortMark::Of::filler) {
            marks.push_back(filler_marks(index_of(mark.path)));
            continue;
        }
        const AdditionalFrames& frames = spec_.streams[index_of(mark.path)]->additional[mark.kind];
        marks.push_back(mark.of == PortMark::Of::reply ? frames.replies : frames.forwarded);
    }
    return marks;
}

void TrialReceivers::prepare(Direction direction) {
    const std::string& path = spec_.delays_files[index_of(direction)];
    auto& delays = parts_.delay_files[index_of(direction)];
    if (!path.empty() && !bed_.path(direction).also_to.empty())
        throw Error("bad_request", "goes with one receiving port only", "params.delays_files");
    if (!path.empty()) {
        const std::string field = "params.delays_files." + bed_.name_of(direction);
        delays = std::make_unique<DelayFile>(path, field, bed_.clock_hz, bed_.queues, DelayFile::kRingRecords,
                                             bed_.other_cores);
    }
    if (has_several(direction) && spec_.intended(direction) > kMostSharedFrames) {
        throw Error(
            "no_memory",
            "with several queues or receiving ports a direction has at most " + std::to_string(kMostSharedFrames) +
                " frames a trial: every receiver keeps a bit for each, to know duplicates of what another one took");
    }
    if (spec_.streams[index_of(direction)]->described)
        parts_.groups[index_of(direction)].emplace(spec_.groups(direction));
    note_lengths(direction);
    const bool has_numbers = spec_.numbered_among(direction, spec_.intended(direction)) != 0;
    if (has_numbers) lost_[index_of(direction)] = capture_.make_lost(direction);
}

bool TrialReceivers::has_several(Direction direction) const {
    return bed_.queues > 1 || (direction != Direction::none && !bed_.path(direction).also_to.empty());
}

Expected TrialReceivers::expected(Direction direction, std::size_t at, std::uint16_t queue) const {
    Expected expected{.trial = mark_of(bed_, spec_),
                      .direction = direction,
                      .frames = 0,
                      .bounds = {},
                      .stamping = spec_.stamping,
                      .frame_timeout = ticks_of(spec_.frame_timeout_ns.value_or(0), bed_.clock_hz),
                      .delays = nullptr,
                      .shared = has_several(direction),
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
    expected.arriving = arriving(bed_, spec_, direction, at);
    return expected;
}

std::vector<std::unique_ptr<Receiver>> TrialReceivers::make(std::size_t port) {
    const std::vector<Direction> paths = paths_into(bed_, spec_, port);
    const bool stamped_by_nic = bed_.offloads.contains(Offload::receive_timestamps) && spec_.stamping != Stamping::none;
    const Port& open = *bed_.ports[port];
    std::vector<std::unique_ptr<Receiver>> receivers;
    for (std::uint16_t queue = 0; queue < bed_.queues; ++queue) {
        const auto expect = [&](Direction path) {
            Expected expected = this->expected(path, port, queue);
            if (path == Direction::none) return expected;
            expected.lost = lost_[index_of(path)];
            connections_.watch(path, expected);
            return expected;
        };
        ReceiverParts parts{.queue = open.queue(queue),
                            .neighbours = bed_.hosts[port]->watch(),
                            .control_pool = bed_.control_pool,
                            .control = bed_.control_rings[port],
                            .accepts_unfinished = open.may_leave_checksums_unfinished(),
                            .capture = capture_.make_buffer(),
                            .answers = dns_.answers_into(port),
                            .answering = spec_.server && spec_.server->port == port ? parts_.answering.get() : nullptr,
                            .learner = connections_.learner_at(port),
                            .marks = marks(port),
                            .filled_by_peer = open.peer_queue(),
                            .ring = open.kernel_queue_size()};
        std::ranges::transform(paths, std::back_inserter(parts.expected), expect);
        if (paths.empty()) parts.expected.push_back(expect(Direction::none));
        if (stamped_by_nic) parts.nic = {bed_.clocks[port], receive_time_field()};
        receivers.push_back(std::make_unique<Receiver>(std::move(parts)));
    }
    return receivers;
}

// Arrivals without a tag are noted if the list has frames without one.
void TrialReceivers::note_lengths(Direction direction) {
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

}  // namespace dutperf
