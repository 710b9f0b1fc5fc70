// SPDX-License-Identifier: Apache-2.0
#include "server/requests.hpp"

#include <algorithm>
#include <map>

#include "frame/tag.hpp"
#include "server/additional_requests.hpp"
#include "server/described_requests.hpp"
#include "server/question_requests.hpp"
#include "server/range_requests.hpp"
#include "server/replay_requests.hpp"

namespace dutperf {

namespace {

constexpr std::uint64_t kLargestExact =
    (std::uint64_t{1} << 53U) - 1;  // largest integer that a JSON number holds exactly
constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::uint64_t kHighestFps = 1000 * kMillion;
constexpr std::uint64_t kMostVlan = 4094;  // IEEE 802.1Q table 9-2
constexpr std::uint64_t kMostVlans = 64;   // of a host
constexpr std::uint64_t kMostQueues =
    16;  // of the driver that joins ports in memory, which must be able to do what others do

FieldSpec read_field_members(Reader& field) {
    static const std::map<std::string, FieldMode> modes{{"fixed", FieldMode::fixed},
                                                        {"increasing", FieldMode::increasing},
                                                        {"decreasing", FieldMode::decreasing},
                                                        {"random", FieldMode::random}};
    const std::string mode = field.text("mode");
    if (!modes.contains(mode))
        field.fail("mode", "must be one of fixed, increasing, decreasing, random, not '" + mode + "'");
    const FieldSpec spec{.mode = modes.at(mode),
                         .min = static_cast<std::uint16_t>(field.integer("min", {0, 65535})),
                         .max = static_cast<std::uint16_t>(field.integer("max", {0, 65535}))};
    if (spec.min > spec.max) field.fail("min", "must not be greater than max");
    return spec;
}

FieldSpec read_port_field(Reader& stream, const std::string& name, std::uint16_t otherwise) {
    auto field = stream.optional_object(name);
    if (!field) return {.mode = FieldMode::fixed, .min = otherwise, .max = otherwise};
    const FieldSpec spec = read_field_members(*field);
    field->finish();
    return spec;
}

std::optional<AddressField> read_address_field(Reader& stream, const std::string& name) {
    auto field = stream.optional_object(name);
    if (!field) return std::nullopt;
    AddressField address{.field = read_field_members(*field),
                         .offset4 = static_cast<std::uint8_t>(field->integer("offset4", {0, 2}, 2)),
                         .offset6 = static_cast<std::uint8_t>(field->integer("offset6", {0, 14}, 14))};
    field->finish();
    return address;
}

template <class Address>
Address required(std::optional<Address> address, const Reader& frame, const std::string& name) {
    if (!address) frame.fail(name, "is missing");
    return *address;
}

std::uint64_t read_version(Reader& of, std::optional<std::uint64_t> otherwise = {}) {
    const std::uint64_t version = otherwise ? of.integer("version", {4, 6}, *otherwise) : of.integer("version", {4, 6});
    if (version == 5) of.fail("version", "must be 4 or 6");
    return version;
}

FrameSpec read_frame(Reader frame, std::uint16_t max_frame_size) {
    const std::uint64_t version = read_version(frame);
    FrameSpec spec;
    spec.size = static_cast<std::uint16_t>(
        frame.integer("size", {version == 6 ? kMinFrameSizeIpv6 : kMinFrameSize, max_frame_size}));
    if (version == 6) {
        spec.addresses = {required(frame.ipv6("source"), frame, "source"),
                          required(frame.ipv6("destination"), frame, "destination")};
    } else {
        spec.addresses = {required(frame.ipv4("source"), frame, "source"),
                          required(frame.ipv4("destination"), frame, "destination")};
    }
    frame.finish();
    return spec;
}

// Within the sending time of the trial.
SendingInterval read_interval(Reader& stream, std::uint64_t duration_ns) {
    SendingInterval interval;
    interval.begin_ns = stream.integer("begin_ns", {0, duration_ns - 1}, 0);
    if (stream.has("sends_ns")) interval.sends_ns = stream.integer("sends_ns", {1, duration_ns - interval.begin_ns});
    if (stream.has("grace_ns")) interval.grace_ns = stream.integer("grace_ns", {0, 86'400'000 * kMillion});
    return interval;
}

// The change must be within the stream's own sending time.
std::optional<RateChange> read_change(Reader& stream, std::uint64_t sends_ns) {
    auto then = stream.optional_object("then");
    if (!then) return std::nullopt;
    const RateChange change{.rate_fps = then->integer("rate_fps", {1, kHighestFps}),
                            .after_ns = then->integer("after_ns", {1, sends_ns - 1})};
    then->finish();
    return change;
}

// The rate within bursts must not be lower than the mean rate: bursts would overlap.
Bursts read_bursts(Reader& pattern, std::uint64_t rate_fps) {
    Bursts bursts{.frames = pattern.integer("frames", {2, kMillion})};
    if (!pattern.has("within_fps")) return bursts;
    bursts.within_fps = pattern.integer("within_fps", {1, kHighestFps});
    if (bursts.within_fps < rate_fps) pattern.fail("within_fps", "must not be less than rate_fps");
    return bursts;
}

// Some rate must not be 0.
Profile read_profile(Reader& pattern) {
    constexpr std::size_t kMostSegments = 1024;
    std::vector<Profile::Segment> segments;
    for (Reader& one : pattern.objects("segments")) {
        segments.push_back({.duration_ns = one.integer("duration_ns", {1, 86'400'000 * kMillion}),
                            .from_fps = one.integer("from_fps", {0, kHighestFps}),
                            .to_fps = one.integer("to_fps", {0, kHighestFps})});
        one.finish();
    }
    if (segments.empty() || segments.size() > kMostSegments)
        pattern.fail("segments", "must have 1 to " + std::to_string(kMostSegments) + " segments");
    Profile profile(std::move(segments));
    if (profile.highest_fps() == 0) pattern.fail("segments", "must not all have a rate of 0");
    return profile;
}

Joining read_joining(Reader& pattern, std::uint64_t rate_fps) {
    const auto flows = static_cast<std::uint32_t>(pattern.integer("flows", {2, kMillion}));
    return {rate_fps, flows, pattern.integer("apart_ns", {1, 86'400'000 * kMillion})};
}

// Every kind of frames has the flows that begin one after the other.
void join(Reader& stream, const Joining& joining, DescribedStream& described) {
    const KindOrder order = described.kind_order(0);  // which kinds are drawn does not matter
    const std::vector<std::uint64_t> first = joining.first_frames();
    for (std::size_t kind = 0; kind < described.kinds.size(); ++kind) {
        DescribedFrame& frame = described.kinds[kind];
        if (frame.flows != joining.flows())
            stream.fail("pattern", "joining needs the same flows in every kind of frames");
        std::vector<std::uint64_t> begins;
        begins.reserve(first.size());
        for (const std::uint64_t k : first) begins.push_back(order.number_from(static_cast<std::uint8_t>(kind), k));
        frame.flow_begins = std::make_shared<const std::vector<std::uint64_t>>(std::move(begins));
    }
}

Pattern read_pattern(Reader& stream, std::uint64_t rate_fps, const std::optional<ReplayedStream>& replayed) {
    auto pattern = stream.optional_object("pattern");
    if (!pattern) return {};
    if (stream.has("then")) stream.fail("pattern", "goes with one rate only, not with then");
    const std::string kind = pattern->text("kind");
    Pattern made = Poisson{};
    if (kind == "bursts") {
        made = read_bursts(*pattern, rate_fps);
    } else if (kind == "profile") {
        made = read_profile(*pattern);
    } else if (kind == "joining") {
        made = read_joining(*pattern, rate_fps);
    } else if (kind == "recorded") {
        made = read_recorded(*pattern, replayed);
    } else if (kind != "poisson") {
        pattern->fail("kind", "must be one of poisson, bursts, profile, joining, recorded, not '" + kind + "'");
    }
    pattern->finish();
    return made;
}

std::vector<TrackedBits::Range> read_tracked(Reader& stream) {
    std::vector<TrackedBits::Range> ranges;
    std::size_t bits = 0;
    for (Reader& one : stream.objects("tracked")) {
        ranges.push_back({.bit = static_cast<std::uint32_t>(one.integer("bit", {0, 8 * kMaxFrameSize})),
                          .bits = static_cast<std::uint32_t>(one.integer("bits", {1, TrackedBits::kMostBits}))});
        one.finish();
        bits += ranges.back().bits;
    }
    if (bits > TrackedBits::kMostBits)
        stream.fail("tracked", "must have at most " + std::to_string(TrackedBits::kMostBits) + " bits");
    return ranges;
}

void require_ptp(const Reader& stream, const StreamSpec& spec, std::size_t kinds) {
    if (spec.ptp.empty() || spec.ptp.size() == kinds) return;
    stream.fail("ptp", "must have a message for each kind of frames: " + std::to_string(kinds));
}

StreamSpec read_stream(Reader stream, std::uint16_t max_frame_size, std::uint64_t duration_ns,
                       const std::shared_ptr<const FrameList>& loaded) {
    constexpr std::uint16_t kSourcePort = 0xC020, kDestinationPort = 7;  // RFC 2544 C.2.6.4
    StreamSpec spec;
    spec.rate_fps = stream.integer("rate_fps", {1, kHighestFps});
    spec.interval = read_interval(stream, duration_ns);
    spec.then = read_change(stream, spec.interval.length_ns(duration_ns));
    spec.replayed = read_replay(stream, max_frame_size, loaded);
    spec.questions = read_questions(stream, max_frame_size);
    spec.pattern = read_pattern(stream, spec.rate_fps, spec.replayed);
    spec.additional = read_additional(stream, max_frame_size);
    if (auto answered = stream.optional_object("answers_for")) {
        spec.answered_from = read_ranges(*answered, "from");
        spec.answered_to = read_ranges(*answered, "to");
        spec.translated = read_ranges(*answered, "translated");
        answered->finish();
    }
    spec.tracked = read_tracked(stream);
    spec.ptp = read_ptp(stream, max_frame_size);
    if (!spec.replayed && !spec.questions) spec.described = read_described(stream, max_frame_size);
    if (const auto* joining = std::get_if<Joining>(&spec.pattern)) {
        if (!spec.described) stream.fail("pattern", "joining goes with described frames only");
        join(stream, *joining, *spec.described);
    }
    if (spec.described || spec.replayed || spec.questions) {
        require_ptp(stream, spec, spec.described ? spec.described->kinds.size() : 0);
        stream.finish();
        return spec;
    }
    spec.foreground = read_frame(stream.object("foreground"), max_frame_size);
    if (auto background = stream.optional_object("background"))
        spec.background = read_frame(*background, max_frame_size);
    require_ptp(stream, spec, spec.background ? 2 : 1);
    spec.n = static_cast<std::uint32_t>(stream.integer("n", {1, kMillion}, 2));
    spec.m = static_cast<std::uint32_t>(stream.integer("m", {0, kMillion}, 2));
    if (spec.m > spec.n) stream.fail("m", "must not be greater than n");
    if (spec.is_mixed() && !spec.background) stream.fail("background", "is missing: n and m leave frames for it");
    spec.source_port = read_port_field(stream, "source_port", kSourcePort);
    spec.destination_port = read_port_field(stream, "destination_port", kDestinationPort);
    spec.networks = static_cast<std::uint32_t>(stream.integer("networks", {1, 256}, 1));
    spec.source_address = read_address_field(stream, "source_address");
    spec.destination_address = read_address_field(stream, "destination_address");
    if (spec.networks > 1 && spec.destination_address)
        stream.fail("destination_address", "goes with one destination network only");
    if (stream.has("arrives_with")) spec.arrives_with = read_vlan_tags(stream);
    stream.finish();
    return spec;
}

void read_stamping(Reader& params, TrialSpec& spec) {
    spec.stamping = params.choice<Stamping>(
        "stamping", {{"none", Stamping::none}, {"tagged", Stamping::tagged}, {"every", Stamping::every}});
    spec.stamps = params.choice<Stamps>(
        "stamps",
        {{"loop", Stamps::loop}, {"kernel", Stamps::kernel}, {"card", Stamps::card}, {"auto", Stamps::automatic}});
    if (spec.stamping == Stamping::none) spec.stamps = Stamps::loop;
    auto tagged = params.optional_object("tagged");
    if (tagged.has_value() != (spec.stamping == Stamping::tagged)) params.fail("tagged", "goes with stamping 'tagged'");
    if (tagged) {
        spec.tagging = {.count = tagged->integer("count", {1, 10 * kMillion}),
                        .after_ns = tagged->integer("after_ns", {0, spec.duration_ns - 1})};
        tagged->finish();
    }
    if (params.has("lost_delay_ns")) spec.lost_delay_ns = params.integer("lost_delay_ns", {0, kLargestExact});
    if (params.has("frame_timeout_ns"))
        spec.frame_timeout_ns = params.integer("frame_timeout_ns", {1, 3'600'000 * kMillion});
    if (spec.lost_delay_ns && spec.stamping == Stamping::none) params.fail("lost_delay_ns", "needs stamped frames");
    if (spec.frame_timeout_ns && spec.stamping != Stamping::every)
        params.fail("frame_timeout_ns", "needs stamping 'every'");
}

void read_capture(Reader& params, TrialSpec& spec) {
    constexpr std::uint64_t kMostCaptured = 1'000'000;
    auto capture = params.optional_object("capture");
    if (!capture) return;
    spec.capture.emplace();
    spec.capture->path = capture->text("path");
    if (spec.capture->path.empty()) capture->fail("path", "must name a file");
    for (std::size_t kind = 0; kind < kCaptureKinds; ++kind)
        spec.capture->most[kind] = capture->integer(kCaptureNames[kind], {0, kMostCaptured}, 0);
    capture->finish();
}

void read_pacing(Reader& params, TrialSpec& spec) {
    constexpr std::uint8_t kGroup = 1;
    auto pacing = params.optional_object("pacing");
    if (!pacing) return;
    const std::string kind = pacing->text("kind");
    if (kind != "fill") pacing->fail("kind", "must be fill, not '" + kind + "'");
    const auto destination = pacing->mac("destination");
    if (!destination) pacing->fail("destination", "is missing");
    if (((*destination)[0] & kGroup) != 0)
        pacing->fail("destination", "must be the address of one station, not of a group: every NIC takes those in");
    pacing->finish();
    spec.fill = FillSpec{.destination = *destination};
}

// The parts are unions of those over which losses are counted.
void read_delay_parts(Reader& params, TrialSpec& spec) {
    constexpr std::uint64_t kMostParts = 50;
    if (!params.has("delay_parts")) return;
    spec.delay_parts = params.integer("delay_parts", {1, kMostParts});
    if (MissingFrames::kBins % spec.delay_parts != 0)
        params.fail("delay_parts", "must divide " + std::to_string(MissingFrames::kBins));
    if (spec.stamping == Stamping::none) params.fail("delay_parts", "needs stamped frames");
}

// Only for directions that send, with stamped frames.
void read_delays_files(Reader& params, const std::vector<Path>& paths, TrialSpec& spec) {
    auto files = params.optional_object("delays_files");
    if (!files) return;
    if (spec.stamping == Stamping::none) params.fail("delays_files", "needs stamped frames");
    for (std::size_t path = 0; path < paths.size(); ++path) {
        const std::string& name = paths[path].name;
        if (!files->has(name)) continue;
        std::string& file = spec.delays_files[path];
        file = files->text(name);
        if (file.empty()) files->fail(name, "must not be empty");
        if (!spec.streams[path]) files->fail(name, "is of a direction that does not send");
    }
    files->finish();
}

void read_queries_file(Reader& params, TrialSpec& spec) {
    if (!params.has("queries_file")) return;
    spec.queries_file = params.text("queries_file");
    const bool asks = std::ranges::any_of(
        spec.active(), [&](Direction one) { return spec.streams[index_of(one)]->questions.has_value(); });
    if (spec.queries_file.empty()) params.fail("queries_file", "must not be empty");
    if (!asks || spec.stamping == Stamping::none) params.fail("queries_file", "needs questions, with stamping every");
}

void read_by_flow(Reader& params, TrialSpec& spec) {
    constexpr std::size_t kMostGroups = 100'000;
    spec.by_flow = params.flag("by_flow");
    for (const Direction direction : spec.active()) {
        if (spec.by_flow && spec.streams[index_of(direction)]->described &&
            spec.groups(direction).count() > kMostGroups)
            params.fail("by_flow", "is for at most " + std::to_string(kMostGroups) + " flows in all kinds");
    }
}

void check_connections(const Reader& connections, const std::vector<Path>& paths, const TrialSpec& spec) {
    const ConnectionSpec& wanted = *spec.connections;
    const std::string& initiator = paths[index_of(wanted.initiator)].name;
    const auto& stream = spec.streams[index_of(wanted.initiator)];
    const bool replies = spec.sends(wanted.replying);
    const bool opens = wanted.use == ConnectionUse::open, sends = opens || wanted.use == ConnectionUse::traffic;
    if (stream && !sends) connections.fail("use", "has replies only: leave out " + initiator);
    if (opens && !stream) connections.fail("use", "needs frames of the initiator, " + initiator);
    if (opens && replies) connections.fail("use", "opens connections: the Responder sends nothing");
    if (!sends && !replies) connections.fail("use", "needs frames of the Responder");
    for (const Direction direction : {wanted.initiator, wanted.replying}) {
        if (!spec.sends(direction)) continue;
        const StreamSpec& one = *spec.streams[index_of(direction)];
        if (one.replayed || one.is_mixed() || one.networks > 1)
            connections.fail("initiator",
                             "goes with described frames or one kind of others: not replayed, without a background, in "
                             "one network");
    }
    if (stream && wanted.space(*stream).size() < wanted.count) {
        connections.fail("count", "is " + std::to_string(wanted.count) + ", but the ranges have " +
                                      std::to_string(wanted.space(*stream).size()) + " combinations");
    }
    if (stream && wanted.space(*stream).size() > kLargestPermutation)
        connections.fail("count",
                         "is of ranges with more than " + std::to_string(kLargestPermutation) + " combinations");
    if (opens && wanted.opening == Opening::each && spec.intended(wanted.initiator) > wanted.count)
        connections.fail("count", "is less than the frames of the trial");
}

void check_fields_of_connections(const std::vector<Path>& paths, const TrialSpec& spec) {
    for (const Direction direction : spec.active()) {
        const ConnectionSpec* const connections = spec.connections_of(direction);
        const auto& described = spec.streams[index_of(direction)]->described;
        if (described)
            check_connection_fields(*described, "params." + paths[index_of(direction)].member(), connections,
                                    connections != nullptr && connections->is_initiator(direction));
    }
}

// The paths that are no streams beside others.
std::vector<std::pair<std::string, Direction>> paths_of_ports(const std::vector<Path>& paths) {
    std::vector<std::pair<std::string, Direction>> found;
    for (std::size_t path = 0; path < paths.size(); ++path) {
        if (paths[path].group != Path::kOtherStreams) found.emplace_back(paths[path].name, direction_at(path));
    }
    return found;
}

// The path between the same ports in the other direction; none: there is none.
Direction way_back(const std::vector<Path>& paths, Direction direction) {
    const Path& there = paths[index_of(direction)];
    for (const auto& [name, back] : paths_of_ports(paths)) {
        if (paths[index_of(back)].from == there.to && paths[index_of(back)].to == there.from) return back;
    }
    return Direction::none;
}

void read_connections(Reader& params, const std::vector<Path>& paths, TrialSpec& spec) {
    auto connections = params.optional_object("connections");
    if (!connections) return check_fields_of_connections(paths, spec);
    ConnectionSpec& read = spec.connections.emplace();
    read.use = connections->choice<ConnectionUse>("use", {{"open", ConnectionUse::open},
                                                          {"traffic", ConnectionUse::traffic},
                                                          {"each", ConnectionUse::each},
                                                          {"lost", ConnectionUse::lost}});
    read.initiator = connections->choice<Direction>("initiator", paths_of_ports(paths));
    read.replying = way_back(paths, read.initiator);
    read.count = static_cast<std::uint32_t>(connections->integer("count", {1, kLargestPermutation}));
    read.order = connections->choice<ConnectionOrder>("order", {{"random", ConnectionOrder::random},
                                                                {"increasing", ConnectionOrder::increasing},
                                                                {"decreasing", ConnectionOrder::decreasing}});
    read.seed = connections->integer("seed", {0, kLargestExact}, 0);
    read.opening = connections->choice<Opening>("opening", {{"each", Opening::each}, {"random", Opening::random}});
    read.responder = connections->choice<ResponderOrder>("responder", {{"random", ResponderOrder::random},
                                                                       {"in_order", ResponderOrder::in_order},
                                                                       {"decreasing", ResponderOrder::decreasing},
                                                                       {"first", ResponderOrder::first}});
    read.entries = static_cast<std::uint32_t>(connections->integer("entries", {1, kLargestPermutation}, 0));
    read.ipv6 = read_version(*connections, 4) == 6;
    check_fields_of_connections(paths, spec);
    check_connections(*connections, paths, spec);
    connections->finish();
}

// Every path must have enough frames to tag. Of a stream beside the paths that has fewer, all are tagged.
void check_tagging(const Reader& params, const std::vector<Path>& paths, const TrialSpec& spec) {
    if (spec.stamping != Stamping::tagged) return;
    for (const Direction direction : spec.active()) {
        if (paths[index_of(direction)].group == Path::kOtherStreams) continue;
        const std::uint64_t frames = spec.intended(direction) - spec.due_before(direction, spec.tagging.after_ns);
        if (frames < spec.tagging.count) params.fail("tagged", "wants more frames than are sent after after_ns");
    }
}

// A frame's number has 40 bits in its tag: 20 hours at 14.88 million frames/s.
void check_numbers(const Reader& params, const std::vector<Path>& paths, const TrialSpec& spec) {
    for (const Direction direction : spec.active()) {
        if (spec.intended(direction) <= kMask40 + 1) continue;
        params.fail("duration_ns",
                    "gives " + paths[index_of(direction)].name + " " + std::to_string(spec.intended(direction)) +
                        " frames, more than the 2^40 that can be numbered: take a shorter trial or a lower rate");
    }
}

// The members of the port, or of a further host there.
HostRequest read_host(Reader& of) {
    HostRequest made{
        .host = {.ipv4 = of.ipv4("ipv4"), .ipv6 = of.ipv6("ipv6")},
        .gateway = {.ipv4 = of.ipv4("gateway4"), .ipv6 = of.ipv6("gateway6"), .mac = of.mac("gateway_mac")}};
    made.host.others = read_ranges(of, "answers_for");
    for (const std::uint64_t vlan : of.integers("vlans", {1, kMostVlan}))
        made.host.vlans.push_back(static_cast<std::uint16_t>(vlan));
    of.require_entries("vlans", {0, kMostVlans});
    if (made.gateway.ipv4 && !made.host.ipv4)
        of.fail("ipv4", "is missing: gateway4 is asked for its MAC address from there");
    if (made.gateway.ipv6 && !made.host.ipv6)
        of.fail("ipv6", "is missing: gateway6 is asked for its MAC address from there");
    return made;
}

}  // namespace

SideRequest read_side(Reader side, const std::string& name) {
    SideRequest request;
    request.port_text = side.text("port");
    request.port = {.side = name,
                    .spec = parse_port_spec(request.port_text, side.path_of("port")),
                    .mac = side.mac("mac"),
                    .receive_ring = static_cast<std::uint32_t>(side.integer("receive_ring", {8, 65536}, 4096)),
                    .max_frame_size = 0};
    request.host = read_host(side);
    request.port.in_vlans = !request.host.host.vlans.empty();
    side.finish();
    return request;
}

MemoryChoice read_memory(Reader& params) {
    return params.choice<MemoryChoice>("memory", {{"auto", MemoryChoice::automatic},
                                                  {"huge_pages", MemoryChoice::huge_pages},
                                                  {"no_huge_pages", MemoryChoice::no_huge_pages}});
}

Offloads read_offloads(Reader& params) {
    Offloads offloads;
    for (const std::string& name : params.texts("offloads")) {
        const auto offload = offload_named(name);
        if (!offload)
            params.fail("offloads",
                        "may name " + to_string(Offloads(kOffloads.begin(), kOffloads.end())) + ", not '" + name + "'");
        if (!offloads.insert(*offload).second) params.fail("offloads", "names " + name + " twice");
    }
    return offloads;
}

FlowControl read_flow_control(Reader& params) {
    const std::string wanted = params.text("flow_control", {"off", "receive", "transmit", "full"}, "off");
    return *std::ranges::find_if(kFlowControls, [&](FlowControl mode) { return name_of(mode) == wanted; });
}

Reach reach_of(std::span<const SideRequest> sides) {
    const auto does_dma = [](const SideRequest& side) { return side.port.spec.does_dma(); };
    return std::ranges::any_of(sides, does_dma) ? Reach::device : Reach::processor;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_letter_or_digit(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

std::string read_port_name(Reader& port, const std::vector<SideRequest>& before) {
    constexpr std::size_t kLongest = 12;  // with which names of rings and pools fit
    const auto is_allowed = [](char c) { return is_letter_or_digit(c) || c == '_'; };
    std::string name = port.text("name");
    if (name.empty() || name.size() > kLongest || !is_letter(name.front()) || !std::ranges::all_of(name, is_allowed))
        port.fail("name", "must be a letter and at most 11 letters, digits or _, not '" + name + "'");
    if (std::ranges::any_of(before, [&](const SideRequest& one) { return one.port.side == name; }))
        port.fail("name", "is the name of two ports: " + name);
    return name;
}

// Their number if there is none.
std::size_t port_named(const std::string& name, const std::vector<SideRequest>& ports) {
    const auto port = std::ranges::find_if(ports, [&](const SideRequest& one) { return one.port.side == name; });
    return static_cast<std::size_t>(port - ports.begin());
}

// `of`: begins what an error says of the member; empty for a path.
std::size_t read_end(Reader& path, const std::string& end, const std::vector<SideRequest>& ports,
                     const std::string& of) {
    const std::string name = path.text(end);
    const std::size_t port = port_named(name, ports);
    if (port == ports.size()) path.fail(end, of + "names no port: " + name);
    return port;
}

Path read_ends(Reader& path, const OpenRequest& request, const std::string& of = "") {
    Path made;
    made.from = read_end(path, "from", request.sides, of);
    made.to = read_end(path, "to", request.sides, of);
    path.finish();
    if (made.from == made.to) path.fail("to", of + "must be another port than from");
    return made;
}

bool has_path(const OpenRequest& request, const std::string& name) {
    return std::ranges::find(request.paths, name, &Path::name) != request.paths.end();
}

Path read_path(Reader path, const OpenRequest& request) {
    Path made = read_ends(path, request);
    made.group = Path::kNamed;
    made.name = request.sides[made.from].port.side + "->" + request.sides[made.to].port.side;
    if (has_path(request, made.name)) path.fail("to", "makes the path " + made.name + " a second time");
    return made;
}

std::string read_stream_name(Reader& stream, const OpenRequest& request) {
    constexpr std::size_t kLongest = 64;
    const auto is_allowed = [](char c) {
        return is_letter_or_digit(c) || std::string_view("_.:->").find(c) != std::string_view::npos;
    };
    std::string name = stream.text("name");
    if (name.empty() || name.size() > kLongest || !std::ranges::all_of(name, is_allowed))
        stream.fail("name", "must be 1 to " + std::to_string(kLongest) + " letters, digits or any of _ . : - >, not '" +
                                name + "'");
    if (has_path(request, name)) stream.fail("name", "is the name of a path or of two streams: " + name);
    return name;
}

// After the paths, which keep their numbers.
void read_other_streams(Reader& params, OpenRequest& request) {
    for (Reader& stream : params.objects("other_streams")) {
        const std::string name = read_stream_name(stream, request);
        const std::vector<std::string> also = stream.texts("also_to");
        Path& made = request.paths.emplace_back(read_ends(stream, request, "of the stream " + name + " "));
        for (const std::string& one : also) {
            const std::size_t port = port_named(one, request.sides);
            if (port == request.sides.size() || port == made.from || made.ends_at(port))
                stream.fail("also_to", "of the stream " + name + " must be ports beside from and to, each once");
            made.also_to.push_back(port);
        }
        made.name = name;
        made.group = Path::kOtherStreams;
    }
    if (request.paths.size() > kMostPaths)
        params.fail("other_streams", "and paths must be at most " + std::to_string(kMostPaths) + " together");
}

std::vector<HostRequest> read_further_hosts(Reader& port) {
    std::vector<HostRequest> hosts;
    for (Reader& one : port.objects("hosts")) {
        hosts.push_back(read_host(one));
        hosts.back().host.mac = one.mac("mac").value_or(Mac{});
        one.finish();
    }
    if (hosts.size() >= kMostHosts)
        port.fail("hosts", "must be at most " + std::to_string(kMostHosts - 1) + " further hosts");
    return hosts;
}

void read_ports(Reader& params, OpenRequest& request) {
    constexpr std::size_t kMostPorts = 16;
    for (Reader& port : params.objects("ports")) {
        const std::string name = read_port_name(port, request.sides);
        std::vector<HostRequest> further = read_further_hosts(port);
        request.sides.push_back(read_side(port, name));
        SideRequest& side = request.sides.back();
        for (const HostRequest& one : further) side.port.in_vlans |= !one.host.vlans.empty();
        side.further_hosts = std::move(further);
    }
    if (request.sides.size() < 2 || request.sides.size() > kMostPorts)
        params.fail("ports", "must be 2 to " + std::to_string(kMostPorts) + " ports");
    for (Reader& path : params.objects("paths")) request.paths.push_back(read_path(path, request));
    if (request.paths.empty()) params.fail("paths", "must name a path");
}

void check_rings(const Reader& params, const std::vector<SideRequest>& sides) {
    const auto is_ring = [](const SideRequest& side) { return side.port.spec.kind == PortSpec::Kind::ring; };
    if (std::ranges::none_of(sides, is_ring)) return;
    for (const SideRequest& side : sides) {
        if (!is_ring(side)) params.fail(side.port.side + ".port", "must be ring as well: ring joins all ports");
    }
}

OpenRequest read_open(Reader params) {
    OpenRequest request;
    if (params.has("ports")) {
        read_ports(params, request);
    } else {
        request.sides = {read_side(params.object("left"), "left"), read_side(params.object("right"), "right")};
        request.paths = left_and_right();
    }
    read_other_streams(params, request);
    request.cores = params.cores("cores");
    if (request.cores && request.cores->empty()) params.fail("cores", "must name a core");
    request.dut_cores = params.cores("dut_cores").value_or(std::vector<unsigned>{});
    request.memory = read_memory(params);
    request.max_frame_size =
        static_cast<std::uint16_t>(params.integer("max_frame_size", {kMinFrameSize, kMaxFrameSize}, 1522));
    request.queues = static_cast<std::uint16_t>(params.integer("queues", {1, kMostQueues}, 1));
    request.offloads = read_offloads(params);
    const FlowControl flow_control = read_flow_control(params);
    request.link_timeout = std::chrono::milliseconds(params.integer("link_timeout_ms", {0, 600'000}, 10'000));
    request.resolve_timeout = std::chrono::milliseconds(params.integer("resolve_timeout_ms", {1, 60000}, 3000));
    params.finish();
    check_rings(params, request.sides);
    const Reach reach = reach_of(request.sides);
    for (SideRequest& side : request.sides) {
        side.port.reach = reach;
        side.port.max_frame_size = request.max_frame_size;
        side.port.queues = request.queues;
        side.port.offloads = request.offloads;
        side.port.flow_control = flow_control;
        side.port.link_timeout = request.link_timeout;
    }
    for (std::size_t port = 0; port < request.sides.size(); ++port)
        request.sides[(port + 1) % request.sides.size()].port.ring_before = request.sides[port].port.side;
    return request;
}

// The streams of the paths of a group, which are members of `of`.
void read_streams(Reader& of, const std::string& group, std::uint16_t max_frame_size, const std::vector<Path>& paths,
                  const std::shared_ptr<const FrameList>& loaded, TrialSpec& spec) {
    for (std::size_t path = 0; path < paths.size(); ++path) {
        if (paths[path].group != group) continue;
        auto stream = of.optional_object(paths[path].name);
        if (!stream) continue;
        spec.streams[path] = read_stream(*stream, max_frame_size, spec.duration_ns, loaded);
        if (spec.streams[path]->replayed && spec.stamping != Stamping::none)
            throw Error("bad_request", "goes without replay: its frames have no time stamps", "params.stamping");
    }
}

TrialSpec read_trial(Reader params, std::uint16_t max_frame_size, const std::vector<Path>& paths,
                     const std::shared_ptr<const FrameList>& loaded) {
    TrialSpec spec;
    spec.streams = PerDirection<std::optional<StreamSpec>>(paths.size());
    spec.delays_files = PerDirection<std::string>(paths.size());
    spec.number = static_cast<std::uint16_t>(params.integer("trial", {0, 65535}));
    spec.seed = params.integer("seed", {0, kLargestExact}, 0);
    spec.rest_ns = params.integer("rest_ns", {0, 100'000'000 * kMillion}, 0);
    spec.duration_ns = params.integer("duration_ns", {1, 86'400'000 * kMillion});
    spec.drain_ns = params.integer("drain_ns", {0, 3'600'000 * kMillion});
    spec.burst = static_cast<std::uint32_t>(params.integer("burst", {1, kMaxBurst}, 32));
    spec.progress_ms = static_cast<std::uint32_t>(params.integer("progress_ms", {20, 1000}, 1000));
    read_stamping(params, spec);
    read_streams(params, "", max_frame_size, paths, loaded, spec);
    for (const char* group : {Path::kNamed, Path::kOtherStreams}) {
        const bool is_open = std::ranges::find(paths, group, &Path::group) != paths.end();
        auto streams = is_open ? params.optional_object(group) : std::nullopt;
        if (!streams) continue;
        params.require_entries(group, {1, kMostPaths});
        read_streams(*streams, group, max_frame_size, paths, loaded, spec);
        streams->finish();
    }
    read_by_flow(params, spec);
    read_delays_files(params, paths, spec);
    read_queries_file(params, spec);
    read_capture(params, spec);
    read_pacing(params, spec);
    read_delay_parts(params, spec);
    read_connections(params, paths, spec);
    spec.server = read_server(params, paths);
    if (spec.active().empty() && !spec.capture && !spec.server) {
        if (!are_left_and_right(paths)) params.fail("paths", "must name a path that sends, or a trial needs a capture");
        params.fail("forward", "is missing, and so is reverse: a trial needs a direction, or a capture");
    }
    params.finish();
    check_questions(paths, spec);
    check_numbers(params, paths, spec);
    check_tagging(params, paths, spec);
    return spec;
}

}  // namespace dutperf
