// SPDX-License-Identifier: Apache-2.0
// One elementary trial as a value (RFC 2544 section 23), and what was counted in it. protocol/README.md says which
// frame has which content.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "flow/flow_source.hpp"
#include "frame/frame_template.hpp"
#include "measure/histogram.hpp"
#include "measure/late_bursts.hpp"
#include "measure/missing_frames.hpp"
#include "pace/schedule.hpp"
#include "trial/departures.hpp"
#include "trial/nic_stamps.hpp"
#include "trial/transmit_count.hpp"

namespace dutperf {

enum class Direction : std::uint8_t { forward, reverse };  // forward: from the left port to the right one
inline constexpr std::array<Direction, 2> kDirections{Direction::forward, Direction::reverse};

inline const char* name_of(Direction direction) { return direction == Direction::forward ? "forward" : "reverse"; }
inline std::size_t index_of(Direction direction) { return static_cast<std::size_t>(direction); }
template <class T>
using PerDirection = std::array<T, 2>;

struct AddressField {
    FieldSpec field;
    std::uint8_t offset4 = 2, offset6 = 14;
};

// What becomes of a stream's rate `after_ns` from the start on.
struct RateChange {
    std::uint64_t rate_fps = 1, after_ns = 0;
};

// Frames at independent times, uniform over the sending time.
struct Poisson {};

// When the frames of a stream are due. All patterns have as many in a trial: as many as the constant rate has.
using Pattern = std::variant<std::monostate, Poisson, Bursts>;  // the first: the constant rate

struct StreamSpec {
    std::uint64_t rate_fps = 1;
    std::optional<RateChange> then;  // of a constant rate
    Pattern pattern;
    FrameSpec foreground;
    std::optional<FrameSpec> background;
    std::uint32_t n = 2, m = 2;  // frame k is foreground when k mod n < m
    FieldSpec source_port, destination_port;
    std::uint32_t networks = 1;
    std::optional<AddressField> source_address, destination_address;

    [[nodiscard]] bool is_mixed() const { return m < n; }
    [[nodiscard]] bool is_foreground(std::uint64_t k) const { return k % n < m; }
    [[nodiscard]] std::uint64_t highest_rate_fps() const {
        return then ? std::max(rate_fps, then->rate_fps) : rate_fps;
    }
    [[nodiscard]] bool varies_addresses() const { return networks > 1 || source_address || destination_address; }
};

// Each thing that is random in a direction has a generator of its own.
enum class Generator : std::uint8_t { ports, addresses, tags, due_times };
inline std::uint64_t generator_seed(std::uint64_t seed, Direction direction, Generator generator) {
    return random_bits(seed, 4 * static_cast<std::uint64_t>(generator) + index_of(direction));
}

// Which frames carry the time of their sending.
enum class Stamping : std::uint8_t { none, tagged, every };

// Tagged frames: so many, spread evenly over the frames that are due after `after_ns` (RFC 8219 7.2).
struct Tagging {
    std::uint64_t count = 0, after_ns = 0;
};

struct TrialSpec {
    std::uint16_t number = 0;
    std::uint64_t seed = 0;
    std::uint64_t rest_ns = 0, duration_ns = 0,
                  drain_ns = 0;  // after the learning frames, RFC 2544 section 23 (b); sending; receiving after it
    std::uint32_t burst = 32;
    Stamping stamping = Stamping::none;
    Tagging tagging;
    std::optional<std::uint64_t>
        lost_delay_ns;  // what a stamped frame that is lost counts as among the delays; absent: nothing
    std::optional<std::uint64_t> frame_timeout_ns;  // a frame that arrives later than this does not count as received
    PerDirection<std::string> delays_files;         // where every delay is written to; empty: nowhere
    PerDirection<std::optional<StreamSpec>> streams;

    // Frames due before the end of the sending time.
    [[nodiscard]] std::uint64_t intended(Direction direction) const;

    // Frames due before `after_ns` from the start.
    [[nodiscard]] std::uint64_t due_before(Direction direction, std::uint64_t after_ns) const;

    // Mbit/s on the medium that each of so many queues is never to go beyond, a tenth above what the stream needs; 0:
    // none, because its frames come in bursts.
    [[nodiscard]] std::uint32_t rate_ceiling_mbps(Direction direction, std::uint16_t queues) const;

    // When frame k is due, in ns from the start, rounded down.
    [[nodiscard]] std::uint64_t due_ns(Direction direction, std::uint64_t k) const;

    // The times of a Poisson stream's frames.
    [[nodiscard]] UniformTimes uniform_times(Direction direction) const {
        return {generator_seed(seed, direction, Generator::due_times), intended(direction)};
    }
};

// What became of a file of delays.
struct DelaysWritten {
    std::uint64_t written = 0, unwritten = 0;
    std::string error;  // of the operating system; empty: none
};

// Frames that never came, by the time at which they were due.
struct Losses {
    double first_s = 0, last_s = 0;  // from the start
    std::uint64_t longest_run = 0;   // of frames with consecutive numbers
    MissingFrames::Bins bins{};      // over equal parts of the sending time
};

// Of a receive queue: frames that waited in it at once, at most, and that it has room for; whether somebody on this
// side counts those that find it full.
struct ReceiveBacklog {
    std::uint32_t frames = 0, ring = 0;
    bool counted = false;
};

// When undamaged frames of the trial arrived, by the receiving loop's clock, in seconds from the start.
struct Arrivals {
    double first_s = 0, last_s = 0;
    double longest_gap_from_s = 0, longest_gap_to_s = 0;  // the longest time between two of them
};

// How the arrivals of stamped frames were told, where the NIC was to tell them.
struct NicArrivals : StampCounts {
    double uncertainty = 0;  // of its clock against the tester's, at most, in ticks
};

// How frames left where the NIC was told when.
struct NicDepartures : DepartureCounts {
    std::uint64_t impossible = 0;  // stamped frames that were polled before they were to leave
    double uncertainty = 0;        // of its clock against the tester's, at most, in ticks
};

// A stream at the rate of the media, whose clock may be slower than the tester's.
struct MediaLimit {
    double line_rate_fps = 0;
    std::uint64_t tolerance_ns = 0;  // by so much frames may be late and sending may take longer
};

// What may wait in a card's transmit rings, unseen by what the sender knows: their delays have it.
struct TransmitWait {
    std::uint64_t frames = 0;
    std::optional<double>
        us;  // that they take at the media's rate; nothing where that is not known, or the other end may stop the port
    bool full = false;  // so many did wait: the driver took no more
};

struct DirectionResult {
    std::uint64_t intended = 0, sent = 0, received = 0;
    std::uint64_t foreground_sent = 0, background_sent = 0, foreground_received = 0, background_received = 0;
    std::uint64_t duplicates = 0, out_of_order = 0, stale = 0, corrupted = 0, not_accepted = 0, dut_input_drops = 0;
    std::uint64_t stamped_sent = 0, stamped_received = 0, late = 0;
    std::uint64_t early =
        0;  // stamped frames that arrived before they were sent, by the counters of the cores; their delay counts as 0
    double send_time_s = 0, sender_stall_us = 0, receiver_stall_us = 0;
    Histogram lateness;  // ticks
    LateBursts late_bursts;
    std::optional<Histogram> delay;  // ticks; where frames are stamped
    std::optional<SignedHistogram>
        delay_change;  // ticks, from one frame to the next (RFC 8219 7.3.2); where every frame is stamped
    std::optional<DelaysWritten> delays_file;
    std::optional<NicArrivals> nic_arrivals;
    std::optional<NicDepartures> nic_departures;
    std::optional<std::uint32_t> rate_limit_mbps;  // of each queue; 0: none
    std::optional<TransmitCount> transmitted;      // what left the port, against what was handed over
    std::optional<MediaLimit> media;               // where the media's rate is the limit
    std::optional<TransmitWait> transmit_wait;     // where a card sends
    std::optional<double> receive_ring_us;  // that the ring of a receiving card takes to fill at the trial's rate
    std::optional<ReceiveBacklog> receive_backlog;  // of queues that the DUT or the kernel fills
    std::optional<Losses> losses;                   // where frames are missing
    std::optional<Arrivals> arrivals;               // where any came
    std::map<std::string, std::uint64_t> tester_drops, other_received;
};

struct TrialResult {
    std::uint16_t number = 0;
    bool stopped = false;
    PerDirection<std::optional<DirectionResult>> directions;
    std::array<std::uint64_t, 2> link_changes{};  // left, right
    std::array<bool, 2> link_up{}, link_down{},
        dut_answered{};  // at the end; at any time, where the link is the port's own; before the trial
};

}  // namespace dutperf
