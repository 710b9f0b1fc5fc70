// SPDX-License-Identifier: Apache-2.0
// Frames beside the test frames of a stream: broadcasts, management queries and routing updates (RFC 2544 11.1-11.3).
// They have no tag and no number. The sender sends them between the test frames; the receivers count those that a DUT
// forwards, and replies to them, by bytes at given places.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "flow/described_frame.hpp"
#include "pace/share.hpp"
#include "platform/ticks.hpp"
#include "port/burst.hpp"
#include "port/neighbour.hpp"

namespace dutperf {

// Bytes that a frame has at some place, counted from its first byte, without its VLAN tags.
struct BytesAt {
    std::uint16_t at = 0;
    std::vector<std::uint8_t> bytes;
};

// A frame that has all of them is recognised; without any, no frame is.
using Marks = std::vector<BytesAt>;

bool has_marks(const Marks& marks, const std::uint8_t* frame, std::size_t length);

// One kind of additional frames of a stream.
struct AdditionalFrames {
    std::vector<FrameBytes> frames = {};  // sent in turn; the source MAC is the port's
    NextHop destination = NextHop::given;
    // One follows every so many test frames of the direction; or one is due at the start and after each interval.
    std::uint64_t after_frames = 0, every_ns = 0;
    Marks forwarded = {}, replies = {};

    // How many belong to a trial with so many test frames.
    [[nodiscard]] std::uint64_t among(std::uint64_t frames_of_trial, std::uint64_t duration_ns) const {
        return after_frames != 0 ? frames_of_trial / after_frames : (duration_ns + every_ns - 1) / every_ns;
    }
};

struct AdditionalResult {
    std::uint64_t intended = 0, sent = 0;
    std::uint64_t received = 0;            // forwarded by the DUT
    std::uint64_t replies = 0;             // received by the sending port
    std::vector<std::uint8_t> last_reply;  // its first bytes
};

// Sends the additional frames of a direction, for the first of its senders. A frame that the driver does not accept is
// tried again.
class AdditionalSender {
public:
    struct Kind {
        std::vector<FrameBytes> frames;  // with their MAC addresses
        std::uint64_t intended = 0, after_frames = 0, every_ns = 0;
    };

    AdditionalSender(rte_mempool* pool, std::vector<Kind> kinds, const Share& share, std::uint64_t clock_hz);

    void start(Ticks start);
    // Sends what is due at `now`; `next` is the sender's next test frame, counted among its own.
    void turn(PortQueue queue, Ticks now, std::uint64_t next) {
        while (const std::optional<std::size_t> kind = due(now, next)) {
            if (!send(queue, *kind)) return;
        }
    }
    [[nodiscard]] bool finished() const { return is_all(sent_); }

    // The same in steps, for who hands the frames over: a kind of which a frame is due, the frame (nullptr: no buffer
    // is free), the next one of the kind then, and that the driver took it.
    [[nodiscard]] std::optional<std::size_t> due(Ticks now, std::uint64_t next) const {
        for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
            if (is_due(kind, now, next)) return kind;
        }
        return {};
    }
    [[nodiscard]] rte_mbuf* make(std::size_t kind) const;
    void advance(std::size_t kind);
    void count(std::size_t kind) { ++sent_[kind]; }
    // When a frame is due next, if none is before that after a test frame.
    [[nodiscard]] Ticks next_due() const;
    // Whether frames are still to be made.
    [[nodiscard]] bool has_more() const { return !is_all(made_); }

    // Frames of a kind that were handed over.
    [[nodiscard]] std::uint64_t sent(std::size_t kind) const { return sent_[kind]; }

private:
    // Whether so many of each kind are all of them.
    [[nodiscard]] bool is_all(const std::vector<std::uint64_t>& counts) const {
        return std::ranges::equal(counts, kinds_, {}, {}, &Kind::intended);
    }
    [[nodiscard]] bool is_due(std::size_t kind, Ticks now, std::uint64_t next) const {
        if (made_[kind] == kinds_[kind].intended) return false;
        const std::uint64_t after = kinds_[kind].after_frames;
        return after != 0 ? share_.number(next) >= (made_[kind] + 1) * after : now >= due_[kind];
    }
    bool send(PortQueue queue, std::size_t kind);
    void set_due(std::size_t kind);

    rte_mempool* pool_;
    std::vector<Kind> kinds_;
    Share share_;
    std::uint64_t clock_hz_;
    Ticks start_ = 0;
    std::vector<std::uint64_t> made_, sent_;  // of each kind
    std::vector<Ticks> due_;                  // of the next frame of a kind with an interval
};

}  // namespace dutperf
