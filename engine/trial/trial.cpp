// SPDX-License-Identifier: Apache-2.0
#include "trial/trial.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace dutperf {

namespace {

constexpr std::uint64_t kNsPerS = 1'000'000'000;

// Frames of a constant rate that are due before `ns`.
std::uint64_t frames_in(std::uint64_t ns, std::uint64_t rate_fps) {
    return static_cast<std::uint64_t>((static_cast<Wide>(rate_fps) * ns + kNsPerS - 1) / kNsPerS);
}

std::uint64_t steady_before(const StreamSpec& stream, std::uint64_t after_ns) {
    if (!stream.then || after_ns <= stream.then->after_ns) return frames_in(after_ns, stream.rate_fps);
    return frames_in(stream.then->after_ns, stream.rate_fps) +
           frames_in(after_ns - stream.then->after_ns, stream.then->rate_fps);
}

std::uint64_t steady_due_ns(const StreamSpec& stream, std::uint64_t k) {
    const std::uint64_t before_change = stream.then ? frames_in(stream.then->after_ns, stream.rate_fps) : k + 1;
    if (k < before_change) return due_after(k, kNsPerS, stream.rate_fps);
    return stream.then->after_ns + due_after(k - before_change, kNsPerS, stream.then->rate_fps);
}

// Frames of the bursts that have begun; only in the last burst some may not be due yet.
std::uint64_t before(const Bursts& bursts, std::uint64_t rate_fps, std::uint64_t after_ns) {
    const std::uint64_t at_constant_rate = frames_in(after_ns, rate_fps);
    if (at_constant_rate == 0) return 0;
    const std::uint64_t first_of_last = (at_constant_rate - 1) / bursts.frames * bursts.frames;
    const std::uint64_t since_ns = after_ns - due_after(first_of_last, kNsPerS, rate_fps);
    return first_of_last +
           (bursts.within_fps == 0 ? bursts.frames : std::min(bursts.frames, frames_in(since_ns, bursts.within_fps)));
}

// What a pattern that has times of its own says; nothing of any other.
template <class Question>
std::optional<std::uint64_t> of_own_times(const Pattern& pattern, const Question& question) {
    return std::visit(
        [&]<class P>(const P& times) -> std::optional<std::uint64_t> {
            if constexpr (HasOwnTimes<P>) return question(times);
            return std::nullopt;
        },
        pattern);
}

std::optional<std::uint64_t> own_before(const StreamSpec& stream, std::uint64_t after_ns) {
    return of_own_times(stream.pattern, [after_ns](const auto& times) { return times.frames_before(after_ns); });
}

// When frame k is due, in ns from the beginning of the stream.
std::uint64_t due_within_ns(const TrialSpec& spec, Direction direction, std::uint64_t k) {
    const StreamSpec& stream = *spec.streams[index_of(direction)];
    if (const auto* bursts = std::get_if<Bursts>(&stream.pattern)) return bursts->due_of(k, kNsPerS, stream.rate_fps);
    if (const auto own = of_own_times(stream.pattern, [k](const auto& times) { return times.due_ns(k); })) return *own;
    if (!std::holds_alternative<Poisson>(stream.pattern)) return steady_due_ns(stream, k);
    return PoissonTimes::scaled(spec.uniform_times(direction).at(k), spec.sends_ns(direction));
}

template <class Predicate>
std::uint32_t kinds_that(const std::vector<DescribedFrame>& kinds, const Predicate& are_so) {
    std::uint32_t bits = 0;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        if (are_so(kinds[kind])) bits |= 1U << kind;
    }
    return bits;
}

void add_tags_from_end(const FrameList& list, std::set<std::uint16_t>& from_end) {
    for (std::uint64_t i = 0; i < list.tagged(); ++i) {
        const FrameList::Frame& frame = list.frame(list.number_of_tagged(i));
        from_end.insert(static_cast<std::uint16_t>(frame.length - frame.tag_at));
    }
}

}  // namespace

AddressVariations StreamSpec::variations(bool ipv6, bool foreground) const {
    const auto variation = [&](const std::optional<AddressField>& field) {
        return foreground && field ? AddressVariation::word : AddressVariation::none;
    };
    const auto offset = [ipv6](const std::optional<AddressField>& field) {
        return !field ? std::uint8_t{0} : ipv6 ? field->offset6 : field->offset4;
    };
    AddressVariations vary{.source = variation(source_address),
                           .destination = variation(destination_address),
                           .source_offset = offset(source_address),
                           .destination_offset = offset(destination_address)};
    if (networks > 1) vary.destination = AddressVariation::network;
    return vary;
}

std::vector<std::vector<VlanTags>> StreamSpec::vlan_tags() const {
    if (replayed || questions) return {};
    if (!described && !background) return {arrives_with};
    if (!described) return {arrives_with, arrives_with};
    std::vector<std::vector<VlanTags>> of_kinds;
    for (const DescribedFrame& kind : described->kinds) of_kinds.push_back(kind.arrives_with);
    return of_kinds;
}

bool StreamSpec::may_arrive_tagged() const {
    return std::ranges::any_of(vlan_tags(), [](const std::vector<VlanTags>& choices) {
        return !std::ranges::all_of(choices, &VlanTags::empty);
    });
}

std::uint16_t StreamSpec::longest_frame() const {
    if (questions) return static_cast<std::uint16_t>(questions->frame_length() + kFcsSize);
    if (replayed) return static_cast<std::uint16_t>(replayed->list->longest() + kFcsSize);
    if (!described) return std::max(foreground.size, background ? background->size : std::uint16_t{0});
    return std::ranges::max_element(described->kinds, {}, &DescribedFrame::size)->size;
}

double StreamSpec::mean_frame_size() const {
    if (questions) return static_cast<double>(questions->frame_length() + kFcsSize);
    if (replayed) return replayed->list->mean_length() + kFcsSize;
    double size = 0;
    if (described) {
        const KindOrder order = described->kind_order(0);
        for (std::size_t kind = 0; kind < described->kinds.size(); ++kind)
            size += order.share(kind) * described->kinds[kind].size;
        return size;
    }
    const double share = static_cast<double>(m) / n;
    return share * foreground.size + (1 - share) * (background ? background->size : 0);
}

std::vector<Direction> TrialSpec::active() const {
    std::vector<Direction> active;
    for (std::size_t path = 0; path < streams.size(); ++path) {
        if (streams[path]) active.push_back(direction_at(path));
    }
    return active;
}

std::uint32_t DescribedStream::connected_kinds() const {
    return kinds_that(kinds, [](const DescribedFrame& kind) { return kind.is_connected(); });
}

std::uint32_t DescribedStream::unchecked_kinds() const {
    return kinds_that(kinds, [](const DescribedFrame& kind) { return !kind.checked; });
}

std::size_t DescribedStream::first_of_its_stream(std::size_t kind) const {
    if (streams.empty()) return 0;
    return static_cast<std::size_t>(std::ranges::find(streams, streams[kind]) - streams.begin());
}

FieldSpec DescribedStream::combined(ConnectionPart part) const {
    for (const DescribedFrame& kind : kinds) {
        for (const VaryingBits& field : kind.fields) {
            if (field.source == FieldSource::connection && field.part == part) return field.combined();
        }
    }
    return {};
}

FieldSpec StreamSpec::combined(ConnectionPart part) const {
    const auto of_address = [](const std::optional<AddressField>& address) {
        return address ? address->field : FieldSpec{};
    };
    if (described) return described->combined(part);
    switch (part) {
        case ConnectionPart::source_port: return source_port;
        case ConnectionPart::destination_port: return destination_port;
        case ConnectionPart::source_address: return of_address(source_address);
        case ConnectionPart::destination_address: return of_address(destination_address);
    }
    return {};
}

ConnectionSpace ConnectionSpec::space(const StreamSpec& stream) const {
    return {.source_port = stream.combined(ConnectionPart::source_port),
            .destination_port = stream.combined(ConnectionPart::destination_port),
            .source_address = stream.combined(ConnectionPart::source_address),
            .destination_address = stream.combined(ConnectionPart::destination_address),
            .order = order,
            .seed = seed};
}

std::uint64_t TrialSpec::intended(Direction direction) const {
    const auto& stream = streams[index_of(direction)];
    if (!stream) return 0;
    const std::uint64_t all_ns = sends_ns(direction);
    return own_before(*stream, all_ns).value_or(steady_before(*stream, all_ns));
}

FrameGroups TrialSpec::groups(Direction direction) const {
    const DescribedStream& stream = *streams[index_of(direction)]->described;
    std::vector<FlowChoice> flows;
    for (const DescribedFrame& kind : stream.kinds)
        flows.push_back(by_flow ? kind.flow_choice(kind_seed(direction, flows.size())) : FlowChoice{});
    return {kind_order(direction), std::move(flows), stream.streams};
}

dns::TrialQuestions TrialSpec::questions(Direction direction, std::uint16_t run) const {
    dns::TrialQuestions made;
    static_cast<dns::Questions&>(made) = *streams[index_of(direction)]->questions;
    made.run = run;
    made.trial = number;
    made.first_id = static_cast<std::uint16_t>(random_bits(generator_seed(seed, direction, Generator::fields), 0));
    // names of addresses do not have the run in them, so that the IDs tell the answers to another one
    if (made.addresses) made.first_id = static_cast<std::uint16_t>(made.first_id + run);
    made.count = intended(direction);
    return made;
}

std::uint64_t TrialSpec::due_before(Direction direction, std::uint64_t after_ns) const {
    if (!streams[index_of(direction)]) return 0;
    const StreamSpec& stream = *streams[index_of(direction)];
    if (after_ns <= stream.interval.begin_ns) return 0;
    if (after_ns >= stream.interval.end_ns(duration_ns)) return intended(direction);
    const std::uint64_t within_ns = after_ns - stream.interval.begin_ns, all_ns = sends_ns(direction);
    if (const auto* bursts = std::get_if<Bursts>(&stream.pattern))
        return std::min(before(*bursts, stream.rate_fps, within_ns), intended(direction));
    if (const auto own = own_before(stream, within_ns)) return *own;
    if (!std::holds_alternative<Poisson>(stream.pattern)) return steady_before(stream, within_ns);
    // scaled(time, all) < within if time < within * 2^64 / all, rounded up
    return uniform_times(direction).before(
        static_cast<std::uint64_t>(((static_cast<Wide>(within_ns) << 64U) + all_ns - 1) / all_ns));
}

std::vector<std::uint64_t> TrialSpec::ends_of_parts(Direction direction, std::uint64_t parts) const {
    std::vector<std::uint64_t> ends;
    for (std::uint64_t part = 1; part <= parts; ++part)
        ends.push_back(due_before(direction, duration_ns * part / parts));
    return ends;
}

std::uint32_t TrialSpec::rate_ceiling_mbps(Direction direction, std::uint16_t queues) const {
    constexpr std::uint64_t kBitsPerMbit = 1'000'000;
    const auto& stream = streams[index_of(direction)];
    if (!stream || !stream->is_paced()) return 0;
    const std::uint64_t size = kPreambleAndGap + stream->longest_frame();
    const Wide needed = static_cast<Wide>(stream->highest_rate_fps()) * size * 8 * 11 / 10 / queues;
    return static_cast<std::uint32_t>(
        std::min<Wide>(needed / kBitsPerMbit + 1, std::numeric_limits<std::uint32_t>::max()));
}

std::uint64_t TrialSpec::due_ns(Direction direction, std::uint64_t k) const {
    return streams[index_of(direction)]->interval.begin_ns + due_within_ns(*this, direction, k);
}

std::vector<std::uint16_t> TrialSpec::tags_from_end() const {
    std::set<std::uint16_t> from_end;
    for (const auto& stream : streams) {
        if (stream && stream->replayed) add_tags_from_end(*stream->replayed->list, from_end);
        const auto add = [&](const DescribedFrame& kind) {
            from_end.insert(static_cast<std::uint16_t>(kind.length() - kind.tag_at));
        };
        if (stream) std::ranges::for_each(stream->ptp, add);
        if (stream && stream->described) std::ranges::for_each(stream->described->kinds, add);
    }
    return {from_end.begin(), from_end.end()};
}

}  // namespace dutperf
