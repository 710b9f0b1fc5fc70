// SPDX-License-Identifier: Apache-2.0
// One elementary trial as a value (RFC 2544 section 23), and its counts. protocol/README.md describes the content of
// each frame.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "dns/name_server.hpp"
#include "dns/questions.hpp"
#include "flow/connections.hpp"
#include "flow/described_frame.hpp"
#include "flow/flow_source.hpp"
#include "flow/frame_groups.hpp"
#include "flow/frame_list.hpp"
#include "flow/kind_order.hpp"
#include "frame/frame_template.hpp"
#include "measure/group_delays.hpp"
#include "measure/histogram.hpp"
#include "measure/late_bursts.hpp"
#include "measure/missing_frames.hpp"
#include "measure/tester_time.hpp"
#include "pace/schedule.hpp"
#include "port/neighbour_watch.hpp"
#include "trial/additional.hpp"
#include "trial/any_tag.hpp"
#include "trial/capture.hpp"
#include "trial/departures.hpp"
#include "trial/nic_stamps.hpp"
#include "trial/others.hpp"
#include "trial/stamps.hpp"
#include "trial/tracked_bits.hpp"
#include "trial/transmit_count.hpp"

namespace dutperf {

// A path from one port to another one, by their places among the ports. Several may have the same ends: a stream beside
// a path is one with a name of its own, after all of the ports' paths.
struct Path {
    // Members of requests and events that have a value for each path of a kind, by name.
    static constexpr const char *kNamed = "paths", *kOtherStreams = "other_streams";

    std::string name;
    std::size_t from = 0, to = 1;
    std::string group = {};  // the one that has this path; empty: forward and reverse are members of the message itself
    std::vector<std::size_t> also_to{};  // further ports at any of which its frames may arrive

    [[nodiscard]] bool ends_at(std::size_t port) const {
        return port == to || std::ranges::find(also_to, port) != also_to.end();
    }
    // The path's member of a message.
    [[nodiscard]] std::string member() const { return group.empty() ? name : group + "." + name; }
};

// The paths of two ports, left and right.
inline std::vector<Path> left_and_right() { return {{"forward", 0, 1}, {"reverse", 1, 0}}; }

// Whether the ports are left and right, and the first two paths forward and reverse.
inline bool are_left_and_right(const std::vector<Path>& paths) { return paths.front().group.empty(); }

// The number of a path among those of the ports. With more than two ports there are more than these.
enum class Direction : std::uint16_t { forward, reverse, none = 0xFFFF };

inline std::size_t index_of(Direction direction) { return static_cast<std::size_t>(direction); }
inline Direction direction_at(std::size_t path) { return static_cast<Direction>(path); }

// A value for each path.
template <class T>
class PerDirection {
public:
    explicit PerDirection(std::size_t paths = 2) : of_(paths) {}

    [[nodiscard]] std::size_t size() const { return of_.size(); }
    T& operator[](std::size_t path) { return of_[path]; }
    const T& operator[](std::size_t path) const { return of_[path]; }
    auto begin() { return of_.begin(); }
    auto end() { return of_.end(); }
    [[nodiscard]] auto begin() const { return of_.begin(); }
    [[nodiscard]] auto end() const { return of_.end(); }

private:
    std::vector<T> of_;
};

struct AddressField {
    FieldSpec field;
    std::uint8_t offset4 = 2, offset6 = 14;
};

// When a stream sends, within the sending time of its trial. All its due times count from the beginning.
struct SendingInterval {
    std::uint64_t begin_ns = 0;
    std::optional<std::uint64_t> sends_ns;  // absent: until the end of the trial's sending time
    std::optional<std::uint64_t> grace_ns;  // then frames that were due may still leave; absent: not for long

    [[nodiscard]] bool is_whole() const { return begin_ns == 0 && !sends_ns; }
    [[nodiscard]] std::uint64_t length_ns(std::uint64_t duration_ns) const {
        return sends_ns.value_or(duration_ns - begin_ns);
    }
    [[nodiscard]] std::uint64_t end_ns(std::uint64_t duration_ns) const { return begin_ns + length_ns(duration_ns); }
};

// A stream's rate from `after_ns` after its beginning on.
struct RateChange {
    std::uint64_t rate_fps = 1, after_ns = 0;
};

// Frames at independent times, uniform over the stream's sending time.
struct Poisson {};

// When the frames of a stream are due. A trial has the same number of frames with every pattern but those that say
// themselves how many there are: a profile, which has rates of its own, flows that begin one after the other, and the
// times of a list.
using Pattern =
    std::variant<std::monostate, Poisson, Bursts, Profile, Joining, Recorded>;  // std::monostate: constant rate
template <class P>
concept HasOwnTimes = requires(const P& pattern, std::uint64_t number) {
    { pattern.frames_before(number) } -> std::same_as<std::uint64_t>;
    { pattern.due_ns(number) } -> std::same_as<std::uint64_t>;
};

// Several kinds of described frames, in turn (`order`) or drawn at random (`shares`).
struct DescribedStream {
    std::vector<DescribedFrame> kinds;
    std::vector<std::uint8_t> order;
    std::vector<std::uint32_t> shares;  // empty: in turn
    std::vector<std::uint8_t> streams;  // of each kind the number of its stream; empty: all are of one

    // `seed`: of the generator of kinds.
    [[nodiscard]] KindOrder kind_order(std::uint64_t seed) const {
        return shares.empty() ? KindOrder(order) : KindOrder(shares, seed);
    }
    // The first kind of the stream that this one is of.
    [[nodiscard]] std::size_t first_of_its_stream(std::size_t kind) const;
    // The kinds whose frames belong to connections, a bit each.
    [[nodiscard]] std::uint32_t connected_kinds() const;
    // The kinds whose lengths and checksums may be wrong, a bit each.
    [[nodiscard]] std::uint32_t unchecked_kinds() const;
    // The same for all of these kinds.
    [[nodiscard]] FieldSpec combined(ConnectionPart part) const;
};

// The frames of a list, one after the other, and again from its beginning.
struct ReplayedStream {
    std::shared_ptr<const FrameList> list;
    std::array<std::int32_t, kLengthsOf> length_changes{};  // bytes by which the DUT changes packet lengths

    [[nodiscard]] std::uint64_t untagged_among(std::uint64_t frames) const {
        return frames - list->tagged_among(frames);
    }
};

// Frames are replayed, described, DNS queries, or foreground and background.
struct StreamSpec {
    std::uint64_t rate_fps = 1;
    SendingInterval interval;
    std::optional<RateChange> then;  // of a constant rate
    Pattern pattern;
    std::optional<DescribedStream> described;
    std::optional<ReplayedStream> replayed;
    std::optional<dns::Questions> questions;
    FrameSpec foreground;
    std::optional<FrameSpec> background;
    std::uint32_t n = 2, m = 2;  // frame k is foreground when k mod n < m
    FieldSpec source_port, destination_port;
    std::uint32_t networks = 1;
    std::optional<AddressField> source_address, destination_address;
    std::vector<AdditionalFrames> additional;
    AddressRanges answered_from, answered_to;  // for which the sending and the receiving port answer
    AddressRanges translated;                  // the same of the receiving port: to which a DUT may translate
    std::vector<TrackedBits::Range> tracked;   // by which received frames are counted
    std::vector<VlanTags> arrives_with{{}};    // VLAN tags with which foreground and background may arrive
    // Messages of PTP that leave in place of stamped frames where cards stamp no others: one for each kind of frames,
    // of which foreground and background are two.
    std::vector<DescribedFrame> ptp;

    [[nodiscard]] AddressVariations variations(bool ipv6, bool foreground) const;
    // With which VLAN tags each kind of frames may arrive; empty: they are not compared.
    [[nodiscard]] std::vector<std::vector<VlanTags>> vlan_tags() const;
    [[nodiscard]] bool may_arrive_tagged() const;
    [[nodiscard]] bool is_mixed() const { return m < n; }
    [[nodiscard]] bool is_foreground(std::uint64_t k) const { return k % n < m; }
    [[nodiscard]] std::uint64_t highest_rate_fps() const {
        if (const auto* profile = std::get_if<Profile>(&pattern)) return profile->highest_fps();
        if (const auto* recorded = std::get_if<Recorded>(&pattern)) return recorded->highest_fps();
        return then ? std::max(rate_fps, then->rate_fps) : rate_fps;
    }
    // Whether the frames leave one by one, at rates that are at most the highest one.
    [[nodiscard]] bool is_paced() const {
        return std::holds_alternative<std::monostate>(pattern) || std::holds_alternative<Profile>(pattern) ||
               std::holds_alternative<Joining>(pattern);
    }
    // Sizes in bytes incl. FCS.
    [[nodiscard]] std::uint16_t longest_frame() const;
    [[nodiscard]] double mean_frame_size() const;
    [[nodiscard]] bool varies_ports() const {
        return source_port.mode != FieldMode::fixed || destination_port.mode != FieldMode::fixed;
    }
    [[nodiscard]] bool varies_addresses() const { return networks > 1 || source_address || destination_address; }
    // The kinds whose frames belong to connections if the trial has any, a bit each.
    [[nodiscard]] std::uint32_t connected_kinds() const { return described ? described->connected_kinds() : ~0U; }
    // The numbers that a part of the connections' combinations has in these frames.
    [[nodiscard]] FieldSpec combined(ConnectionPart part) const;
};

// Everything random on a path has its own generator.
enum class Generator : std::uint8_t { ports, addresses, tags, due_times, kinds, fields, connections, opening };
inline std::uint64_t generator_seed(std::uint64_t seed, Direction direction, Generator generator) {
    constexpr std::uint64_t kGenerators = 32;  // of each path after the first two
    const std::uint64_t path = index_of(direction), number = static_cast<std::uint64_t>(generator);
    return random_bits(seed, path < 2 ? 4 * number + path : kGenerators * path + number);
}

// What a trial does with connections (RFC 9693 sections 4.2, 4.4 to 4.7).
enum class ConnectionUse : std::uint8_t {
    open,     // the Initiator's frame k opens connection k, or a random one; the Responder learns
    traffic,  // the Initiator's frames belong to random connections, the Responder's as its order says
    each,     // one reply in each connection
    lost,     // one reply in each connection that lost frames in the trial before
};
enum class Opening : std::uint8_t { each, random };
enum class ResponderOrder : std::uint8_t { random, in_order, decreasing, first };

struct ConnectionSpec {
    ConnectionUse use = ConnectionUse::open;
    Direction initiator = Direction::forward;  // the path of the Initiator's frames
    Direction replying = Direction::reverse;   // of the Responder's, the way back; none: no path leads there
    std::uint32_t count = 1;
    ConnectionOrder order = ConnectionOrder::random;
    std::uint64_t seed = 0;  // of the order
    Opening opening = Opening::each;
    ResponderOrder responder = ResponderOrder::random;
    std::uint32_t entries = 0;  // the Responder replies in so many of the connections that it learned; 0: in all
    bool ipv6 = false;          // the IP version at the Responder

    [[nodiscard]] bool is_initiator(Direction direction) const { return direction == initiator; }
    [[nodiscard]] bool is_responder(Direction direction) const { return direction == replying; }
    // Whether each frame is the only one of its connection.
    [[nodiscard]] bool has_a_frame_each() const {
        return use == ConnectionUse::open ? opening == Opening::each : use != ConnectionUse::traffic;
    }
    // The connections of the Initiator's stream.
    [[nodiscard]] ConnectionSpace space(const StreamSpec& stream) const;
};

// The connections after a trial.
struct StateCounts {
    std::uint32_t learned = 0, remapped = 0, lost = 0;
};

// Which frames carry their send time.
enum class Stamping : std::uint8_t { none, tagged, every };

// `count` tagged frames, spread evenly over the frames that are due after `after_ns` (RFC 8219 7.2), or all of these.
struct Tagging {
    std::uint64_t count = 0, after_ns = 0;
};

// Pacing by the wire: the gaps between the test frames are filled with frames to this address.
struct FillSpec {
    Mac destination{};
};

// The name server of a port, which answers what the DUT asks.
struct ServerSpec {
    std::size_t port = 1;
    dns::Zone zone;
    std::uint32_t ttl_s = 3600;
};

struct TrialSpec {
    std::uint16_t number = 0;
    std::uint64_t seed = 0;
    std::uint64_t rest_ns = 0, duration_ns = 0,
                  drain_ns = 0;  // after the learning frames, RFC 2544 section 23 (b); sending; receiving after it
    std::uint32_t burst = 32;
    std::uint32_t progress_ms = 1000;  // between two reports of the counts
    Stamping stamping = Stamping::none;
    Stamps stamps = Stamps::loop;
    Tagging tagging;
    std::optional<std::uint64_t> lost_delay_ns;  // delay that a lost stamped frame counts as; absent: it does not count
    std::optional<std::uint64_t> frame_timeout_ns;  // a frame with a longer delay does not count as received
    bool by_flow = false;                           // statistics of each flow
    std::uint64_t delay_parts = 0;                  // equal parts of the sending time with delays of their own; 0: none
    PerDirection<std::string> delays_files;         // files for all delays; empty: none
    std::string queries_file;                       // for the times of each query; empty: none
    std::optional<CaptureSpec> capture;             // frames for a file
    std::optional<ConnectionSpec> connections;
    std::optional<ServerSpec> server;
    std::optional<FillSpec> fill;  // absent: each frame is handed over when it is due
    PerDirection<std::optional<StreamSpec>> streams;

    // Those that send.
    [[nodiscard]] std::vector<Direction> active() const;
    [[nodiscard]] bool sends(Direction direction) const {
        return direction != Direction::none && streams[index_of(direction)].has_value();
    }

    // The connections that frames of a path belong to; nullptr: none, as of all streams beside these.
    [[nodiscard]] const ConnectionSpec* connections_of(Direction direction) const {
        const bool has_any =
            connections && (connections->is_initiator(direction) || connections->is_responder(direction));
        return has_any ? &*connections : nullptr;
    }

    // Whether a path has the Responder's frames.
    [[nodiscard]] bool replies(Direction direction) const {
        return connections && connections->is_responder(direction);
    }

    // The stream's own sending time.
    [[nodiscard]] std::uint64_t sends_ns(Direction direction) const {
        return streams[index_of(direction)]->interval.length_ns(duration_ns);
    }

    // Frames due before the end of the sending time.
    [[nodiscard]] std::uint64_t intended(Direction direction) const;

    // Frames due before `after_ns` from the start of the trial.
    [[nodiscard]] std::uint64_t due_before(Direction direction, std::uint64_t after_ns) const;

    // How many of the first `frames` frames carry a number.
    [[nodiscard]] std::uint64_t numbered_among(Direction direction, std::uint64_t frames) const {
        const auto& replayed = streams[index_of(direction)]->replayed;
        return replayed ? replayed->list->tagged_among(frames) : frames;
    }
    // Which frame carries the number i.
    [[nodiscard]] std::uint64_t frame_numbered(Direction direction, std::uint64_t i) const {
        const auto& replayed = streams[index_of(direction)]->replayed;
        return replayed ? replayed->list->number_of_tagged(i) : i;
    }

    // For each of `parts` equal parts of the trial's sending time, the first number of a frame that is due after it.
    [[nodiscard]] std::vector<std::uint64_t> ends_of_parts(Direction direction, std::uint64_t parts) const;

    // The groups of a direction with described frames: its kinds, or with `by_flow` the flows of each.
    [[nodiscard]] FrameGroups groups(Direction direction) const;

    // The questions of a direction that asks any, in this run.
    [[nodiscard]] dns::TrialQuestions questions(Direction direction, std::uint16_t run) const;

    // The kinds of a direction with described frames.
    [[nodiscard]] KindOrder kind_order(Direction direction) const {
        return streams[index_of(direction)]->described->kind_order(generator_seed(seed, direction, Generator::kinds));
    }

    // Where tags may be behind headers that the engine does not know, in bytes before the end of the packet. Of all
    // paths: a DUT may send a frame back.
    [[nodiscard]] std::vector<std::uint16_t> tags_from_end() const;

    // The generator of a kind's flows and of its fields by frame.
    [[nodiscard]] std::uint64_t kind_seed(Direction direction, std::size_t kind) const {
        return random_bits(generator_seed(seed, direction, Generator::fields), kind);
    }
    // That of its fields by flow: kinds of one stream have the same flows.
    [[nodiscard]] std::uint64_t flow_seed(Direction direction, std::size_t kind) const {
        return kind_seed(direction, streams[index_of(direction)]->described->first_of_its_stream(kind));
    }

    // The most that `of` is in sum for those of these paths that send at one time.
    template <class Of>
    [[nodiscard]] auto most_at_once(const std::vector<Direction>& paths, const Of& of) const {
        decltype(of(Direction{})) most{};
        std::set<std::uint64_t> begins;  // a sum only grows where a stream begins
        for (const Direction path : paths) begins.insert(streams[index_of(path)]->interval.begin_ns);
        for (const std::uint64_t at_ns : begins) {
            decltype(most) sum{};
            for (const Direction path : paths) sum += sends_at(path, at_ns) ? of(path) : decltype(most){};
            most = std::max(most, sum);
        }
        return most;
    }
    [[nodiscard]] bool sends_at(Direction direction, std::uint64_t after_ns) const {
        const SendingInterval& interval = streams[index_of(direction)]->interval;
        return interval.begin_ns <= after_ns && after_ns < interval.end_ns(duration_ns);
    }
    [[nodiscard]] bool send_together(Direction one, Direction other) const {
        return sends_at(one, streams[index_of(other)]->interval.begin_ns) ||
               sends_at(other, streams[index_of(one)]->interval.begin_ns);
    }

    // Limit of each of `queues` queues in Mbit/s on the medium, a tenth above the stream's need; 0: no limit, because
    // the frames come in bursts.
    [[nodiscard]] std::uint32_t rate_ceiling_mbps(Direction direction, std::uint16_t queues) const;

    // When frame k is due, in ns from the start of the trial, rounded down.
    [[nodiscard]] std::uint64_t due_ns(Direction direction, std::uint64_t k) const;

    // The times of a Poisson stream's frames.
    [[nodiscard]] UniformTimes uniform_times(Direction direction) const {
        return {generator_seed(seed, direction, Generator::due_times), intended(direction)};
    }
};

// Records written to a file.
struct RecordsWritten {
    std::uint64_t written = 0, unwritten = 0;
    std::string error;  // of the operating system; empty: none
};

// Frames that never arrived, by their due times.
struct Losses {
    double first_s = 0, last_s = 0;  // from the start
    std::uint64_t longest_run = 0;   // of frames with consecutive numbers
    MissingFrames::Bins bins{};      // over equal parts of the sending time
};

// A receive queue: most frames that waited in it at once, its capacity if it is known, and whether this side counts
// frames dropped at a full queue.
struct ReceiveBacklog {
    std::uint32_t frames = 0;
    std::optional<std::uint32_t> ring;
    bool counted = false;
};

// As soft interrupts that wait for less lose nothing (docs/decisions/0003-validity.md).
constexpr std::uint64_t kLongGapNs = 1'000'000;

// Arrival times of intact frames of the trial, by the receiving loop's clock, in seconds from the start.
struct Arrivals {
    double first_s = 0, last_s = 0;
    double longest_gap_from_s = 0, longest_gap_to_s = 0;  // the longest gap between two of them
    std::optional<double> in_long_gaps_s;                 // of more than kLongGapNs; none: not known
};

// Sources of the arrival times of stamped frames, if the NIC was to stamp them.
struct NicArrivals : StampCounts {
    double uncertainty = 0;  // largest, of its clock against the tester's, in ticks
};

// How frames left, if the NIC got their send times.
struct NicDepartures : DepartureCounts {
    std::uint64_t impossible = 0;  // stamped frames that were polled before their send time
    double uncertainty = 0;        // largest, of its clock against the tester's, in ticks
};

// Limit of a stream at the rate of the media, whose clock may be slower than the tester's.
struct MediaLimit {
    double line_rate_fps = 0;
    std::uint64_t tolerance_ns = 0;  // by which frames may be late and sending may take longer
};

// Frames that may wait in a card's transmit rings. The sender does not see the wait; delays include it.
struct TransmitWait {
    std::uint64_t frames = 0;
    std::optional<double>
        us;  // their time at the media's rate; absent: the rate is unknown, or the other end may stop the port
    bool full = false;  // this many did wait: the driver did not accept more
};

// Frames without a tag, matched with arrivals by order and length.
struct MatchedByLength {
    std::uint64_t sent = 0, in_order = 0, reordered = 0, extra = 0;
    std::uint64_t not_noted = 0;  // arrivals beyond those that could be noted
    int fitting_change = 0;       // bytes by which arrivals would match better; 0: none
};

// How a line was filled.
struct LineResult {
    std::uint32_t mbps = 0;
    std::uint64_t fillers = 0;              // that the driver took
    std::uint64_t forwarded = 0, back = 0;  // ... that came out of the DUT at the receiving port, at the sending port
    std::uint64_t times_idle = 0;           // the line may have been idle between test frames
    double longest_idle = 0;                // in ticks
    double early = 0;                       // of a test frame at least, in ticks: the line is faster than the card says
    Histogram errors;                       // of the test frames' places, in byte times
};

// The frames of one kind; with statistics by flow also those of each of its flows.
struct KindResult {
    std::uint64_t sent = 0, received = 0;
    GroupDelay delay;  // if frames are stamped
    std::vector<std::uint64_t> flows_sent, flows_received;
    std::vector<GroupDelay> flows_delay;
};

// Answers to DNS queries that are not the right ones.
using WrongCounts = std::array<std::uint64_t, dns::kWrongKinds>;

// What the name server did.
struct ServerResult {
    dns::QueryCounts queries;
    std::uint64_t answered = 0, unsent = 0;
    Histogram delay;  // ticks, from when the query may have arrived until the port had its answer
    std::map<std::string, std::uint64_t> tester_drops;
};

struct DirectionResult {
    std::uint64_t intended = 0, sent = 0, received = 0;
    std::uint64_t foreground_sent = 0, background_sent = 0, foreground_received = 0, background_received = 0;
    std::optional<unsigned> dut_input_mtu;  // of the other end, if it took no frame of dut_input_drops
    std::uint64_t duplicates = 0, out_of_order = 0, stale = 0, corrupted = 0, not_accepted = 0, dut_input_drops = 0;
    CorruptedBy corrupted_by{};
    std::uint64_t unfinished_checksums = 0, zero_checksums = 0;  // see frame/dissect.hpp
    // Frames that arrived still in a tunnel, and outside of one.
    std::uint64_t not_decapsulated = 0, not_encapsulated = 0;
    std::uint64_t stamped_sent = 0, stamped_received = 0, late = 0;
    std::uint64_t early =
        0;  // stamped frames that arrived before they were sent, by the counters of the cores; their delay counts as 0
    double send_time_s = 0, sender_stall_us = 0, receiver_stall_us = 0;
    Histogram lateness;  // ticks
    LateBursts late_bursts;
    std::optional<Histogram> delay;        // ticks; if frames are stamped
    std::vector<Histogram> delay_parts;    // ticks; of each part of the sending time, if asked for
    std::vector<Histogram> stream_delays;  // ticks; of each stream of described frames, if asked for
    std::optional<SignedHistogram>
        delay_change;  // ticks, from one frame to the next (RFC 8219 7.3.2); if every frame is stamped
    TesterTime sending_time, receiving_time;  // the tester's, in these delays
    TesterShare delay_share;                  // what it may have added to their quantiles
    std::vector<TesterShare> part_shares, stream_shares;
    TesterChange change_share;
    std::optional<RecordsWritten> delays_file, queries_file;
    std::optional<NicArrivals> nic_arrivals;
    std::optional<StampsMatched> stamps;  // if the kernel or cards stamped frames
    std::optional<Clocks> clocks;         // if frames are stamped
    bool ptp = false;                     // whether messages of PTP left in place of the stamped frames
    std::optional<NicDepartures> nic_departures;
    std::optional<std::uint32_t> rate_limit_mbps;   // of each queue; 0: none
    std::optional<TransmitCount> transmitted;       // frames that left the port, and frames handed over
    std::optional<MediaLimit> media;                // if the media's rate is the limit
    std::optional<TransmitWait> transmit_wait;      // if a card sends
    std::optional<HeldFrames> held;                 // if a queue discipline may have held frames back
    std::optional<double> receive_ring_us;          // time in which a receiving card's ring fills at the trial's rate
    std::optional<ReceiveBacklog> receive_backlog;  // of queues that the DUT or the kernel fills
    std::optional<Losses> losses;                   // if frames are missing
    std::optional<Arrivals> arrivals;               // if any arrived
    std::vector<KindResult> kinds;                  // if frames are described
    std::vector<AdditionalResult> additional;       // of each kind of additional frames
    std::optional<MatchedByLength> matched;         // if frames have no tag
    std::optional<LineResult> line;                 // if the line was filled
    std::optional<WrongCounts> wrong_answers;       // if it asks questions
    std::map<std::string, std::uint64_t> tester_drops, other_received;
    std::optional<TrackedBits> tracked;
    std::map<std::string, std::uint64_t> received_at;   // with duplicates, by port, if it has several
    std::map<std::string, std::uint64_t> misdelivered;  // frames that arrived at another port than the path's
    IcmpErrors icmp_errors;                             // that arrived at the sending port
    std::vector<std::string> switched_on;               // by others, at the receiving port: clauses
    OtherTags other_tags;
    OtherDestinations other_destinations;
    bool tags_are_hidden = false;  // frames are to arrive with VLAN tags, which the receiving port does not see
};

// Of one port.
struct PortResult {
    std::uint64_t link_changes = 0;
    bool link_up = false;       // at the end
    bool link_down = false;     // at any time: its own link, or an interface of the kernel that was taken down
    bool dut_answered = false;  // before the trial
    std::string change;         // of the port since it was opened, at the end: a clause
    NeighbourEvidence neighbours;
};

struct TrialResult {
    std::uint16_t number = 0;
    bool stopped = false;
    double began_s = 0;  // when the first frame was due, by CLOCK_MONOTONIC
    PerDirection<std::optional<DirectionResult>> directions;
    std::optional<CaptureWritten> capture;
    std::optional<StateCounts> connections;
    std::optional<ServerResult> server;
    std::vector<PortResult> ports;
    std::string loop_stamps_because;  // why the kernel does not time the delays, if it was to where it can
};

}  // namespace dutperf
