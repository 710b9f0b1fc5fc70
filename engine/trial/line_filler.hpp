// SPDX-License-Identifier: Apache-2.0
// Pacing `fill`: lays out bursts of test frames, fillers, additional frames and replies in the order of the line, and
// records what the driver took. A filler is a frame to a unicast address that nobody has, so the NIC of the DUT drops
// it. The driver's transmit ring is kept full, and its room for more frames is the sender's clock.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include <array>
#include <cstdint>

#include "flow/flow_source.hpp"
#include "frame/address.hpp"
#include "measure/histogram.hpp"
#include "pace/filled_line.hpp"
#include "port/neighbour.hpp"
#include "trial/additional.hpp"
#include "trial/frame_source.hpp"

namespace dutperf {

// The longest frame of Ethernet without tags, without FCS.
inline constexpr std::size_t kLongestFiller = 1518 - kFcsSize;

// Fillers before the first test frame; less than the time between RunningTrial::begin() and its start.
inline constexpr double kLineLeadS = 0.0015;

struct LineFillerParts {
    rte_mempool* pool;  // of this sender alone
    Mac source{}, destination{};
    std::size_t path = 0;              // its number
    std::uint32_t longest_length = 0;  // of a filler, in bytes without FCS
    std::uint32_t generation = 0;      // of the fillers' template
    std::uint32_t ring = 0;            // of the driver, in frames
    std::uint64_t line_hz = 0, clock_hz = 0;
    double clock_difference = 0;  // of card and tester, at most, as a share
    std::uint32_t burst = 1;
    AdditionalSender* additional = nullptr;  // by the clock of the line
};

// The longest filler that the buffers of a pool hold, in bytes without FCS.
inline std::uint32_t longest_filler(rte_mempool* pool) {
    const std::size_t room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
    return static_cast<std::uint32_t>(std::min(room, kLongestFiller));
}

// What the receivers recognise fillers of a path by.
Marks filler_marks(std::size_t path);

class LineFiller {
public:
    explicit LineFiller(const LineFillerParts& parts);
    LineFiller(const LineFiller&) = delete;  // the image is in its own bytes
    LineFiller& operator=(const LineFiller&) = delete;

    // Sending starts at `start`. Returns that place on the line: before it, fillers fill the driver's ring.
    std::uint64_t start(Ticks start);
    [[nodiscard]] Ticks begins() const { return begins_; }

    // Test frames that were made and have no place yet. Room for a burst.
    [[nodiscard]] std::uint32_t waiting() const { return made_count_ - made_from_; }
    rte_mbuf** made() { return made_.data(); }
    void set_due(std::uint32_t i, std::uint64_t due) { dues_[i] = due; }
    void set_made(std::uint32_t count) {
        made_from_ = 0;
        made_count_ = count;
    }

    // A burst: begin(), then place_*() until it is full, then taken() for what the driver took.
    void begin() { count_ = 0; }
    [[nodiscard]] bool is_full() const { return count_ == burst_; }
    [[nodiscard]] std::uint32_t count() const { return count_; }
    // Places a reply of the ring, if there is one.
    bool place_reply(rte_ring* control, rte_mbuf** burst);
    // Whether additional frames have no place yet.
    [[nodiscard]] bool has_additional() const { return additional_ != nullptr && additional_->has_more(); }
    // Places an additional frame, the next test frame, or a filler before both; false: no buffer is free. `next`: the
    // number of that test frame among the sender's.
    bool place_next(std::uint64_t next, rte_mbuf** burst);

    // What a call of the driver took.
    struct Taken {
        std::uint32_t frames = 0, replies = 0;
    };
    // The driver took `count` buffers from `from` on, and was offered `more`. `lateness(due, late)` is called for each
    // test frame, both in ticks.
    template <class Record>
    Taken taken(std::uint32_t from, std::uint32_t count, bool more, Ticks began, Ticks ended, const Record& record);

    // Frees the test frames without a place.
    void drop_waiting();

    // Valid after the trial.
    [[nodiscard]] std::uint64_t fillers() const { return fillers_; }
    [[nodiscard]] const LineWatch& watch() const { return watch_; }
    [[nodiscard]] const Histogram& errors() const { return errors_; }  // in byte times
    // By how much a test frame left early at least, in ticks: the line is faster than the card says.
    [[nodiscard]] double early() const { return early_; }

private:
    enum class Kind : std::uint8_t { frame, filler, additional, reply };
    struct Item {
        Kind kind = Kind::filler;
        std::uint32_t length = 0;          // on the line
        std::uint64_t place = 0, due = 0;  // of a test frame
        std::size_t of_kind = 0;           // of an additional frame
    };

    Item& place(rte_mbuf** burst, rte_mbuf* frame, Kind kind);
    rte_mbuf* make_filler(std::uint32_t length);
    [[nodiscard]] double since_start(Ticks at) const {
        return static_cast<double>(static_cast<std::int64_t>(at - start_));
    }

    std::array<std::uint8_t, kLongestFiller> bytes_;
    ImagePool pool_;
    LinePlan plan_;
    LineWatch watch_;
    std::uint64_t line_hz_, clock_hz_;
    std::uint32_t burst_;
    AdditionalSender* additional_;
    Ticks start_ = 0, begins_ = 0;
    std::uint64_t lead_ = 0;  // the place of the start on the line
    std::array<rte_mbuf*, kMaxBurst> made_{};
    std::array<std::uint64_t, kMaxBurst> dues_{};
    std::uint32_t made_from_ = 0, made_count_ = 0;
    std::array<Item, kMaxBurst> items_{};
    std::uint32_t count_ = 0;
    std::uint64_t frames_ = 0, fillers_ = 0;
    double early_ = 0;
    Histogram errors_;
};

template <class Record>
LineFiller::Taken LineFiller::taken(std::uint32_t from, std::uint32_t count, bool more, Ticks began, Ticks ended,
                                    const Record& record) {
    Taken taken;
    if (count != 0) watch_.begin_call(since_start(began), since_start(ended), frames_ != 0);
    const double ticks_per_byte = static_cast<double>(clock_hz_) / static_cast<double>(line_hz_);
    for (std::uint32_t i = from; i < from + count; ++i) {
        const Item& item = items_[i];
        const double earliest = watch_.add(item.length);
        if (item.kind == Kind::reply) ++taken.replies;
        if (item.kind == Kind::filler) ++fillers_;
        if (item.kind == Kind::additional) additional_->count(item.of_kind);
        if (item.kind != Kind::frame) continue;
        ++taken.frames;
        const std::uint64_t error = item.place - item.due;
        errors_.record(error);
        const double due = static_cast<double>(item.due - lead_) * ticks_per_byte;
        early_ = std::max(early_, due - watch_.latest(since_start(ended)));
        const double late = std::max(static_cast<double>(error) * ticks_per_byte, earliest - due);
        record(start_ + static_cast<Ticks>(due), static_cast<Ticks>(late));
    }
    frames_ += taken.frames;
    if (more) watch_.ring_was_full(since_start(began));
    return taken;
}

}  // namespace dutperf
