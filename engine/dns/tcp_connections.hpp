// SPDX-License-Identifier: Apache-2.0
// DNS over TCP (RFC 7766) to the name server: as much of TCP (RFC 9293) as a server needs that answers each query at
// once. Frames in, frames out; no port and no clock is used here.
//
// A connection has state, in a table of bounded size. Without any, the answers to two queries that a DUT sends one
// after the other, before it has an answer, would have one sequence number; a query in two segments could not be read;
// and an answer that the DUT's own queue dropped would be lost for ever. There are no timers: the DUT repeats what was
// not acknowledged, and its repetition, or its duplicate ACK, makes us repeat. Where the table is full, the connection
// of a row that was unused for longest ends, and its next segment is answered with RST, as of an unknown connection.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "dns/name_server.hpp"
#include "dns/segment.hpp"

namespace dutperf::dns {

class TcpConnections {
public:
    static constexpr std::size_t kMost = 16384;
    // Of both directions: a segment fits where an answer of 512 bytes over UDP fits.
    static constexpr std::uint16_t kMss = 512;
    static constexpr std::size_t kMostFrameSize = kIpv6Layout.transport_at() + tcp::kSize + kMss;

    // `key`: of the initial sequence numbers (RFC 9293 3.4.1).
    explicit TcpConnections(std::uint64_t key, std::size_t most = kMost)
        : key_(key), rows_(std::max<std::size_t>(1, most / kWays)) {}

    // Takes a received frame, if it is a segment to the server, and answers its queries. Afterwards write_next() is to
    // be called as long as has_next().
    bool take(Bytes frame, NameServer& server);
    [[nodiscard]] bool has_next() const;
    // Writes the next frame to send. Returns its length. `to` has room for kMostFrameSize bytes.
    std::size_t write_next(Room to);

    // The connections stay, the counts begin again.
    void begin_trial();
    // Answers made in this trial.
    [[nodiscard]] std::uint64_t answered() const { return answered_; }
    // Connections that were in use in this trial, and ended for lack of room.
    [[nodiscard]] std::uint64_t evicted() const { return evicted_; }

private:
    struct Connection {
        Endpoints between{};  // of what arrives
        bool is_open = false, is_established = false;
        bool is_closing = false, sent_fin = false;  // the DUT has sent all; so have we
        bool has_repeated = false;                  // since the last progress
        std::uint16_t window = 0, mss = 0;          // the DUT's
        std::uint32_t first = 0, next = 0;          // the DUT's initial sequence number, and the one expected next
        std::uint32_t unacknowledged = 0;           // our sequence number where `waiting` begins
        std::size_t sent = 0;                       // bytes of `waiting`, since the last repetition
        std::size_t most_sent = 0;                  // sequence numbers from `unacknowledged` on, at any time
        std::vector<std::uint8_t> waiting;          // what the DUT has not acknowledged
        std::vector<std::uint8_t> part;             // of a query, with its length
        std::uint64_t used = 0;
        std::uint32_t trial = 0;

        [[nodiscard]] std::uint32_t our_next() const {
            return unacknowledged + static_cast<std::uint32_t>(sent) + (sent_fin ? 1U : 0U);
        }
        // Bytes of `waiting` that may be sent now.
        [[nodiscard]] std::size_t sendable() const;
        [[nodiscard]] bool may_send_fin() const {
            return is_closing && !sent_fin && sent + sendable() == waiting.size();
        }
        // Whether the DUT acknowledged our FIN.
        bool acknowledge(std::size_t count);
        void repeat();
    };
    static constexpr std::size_t kWays = 8;
    using Row = std::array<Connection, kWays>;

    Row& row_of(const Endpoints& between);
    Connection* find(const Endpoints& between);
    Connection& room_for(const Endpoints& between);
    void take_segment(const Segment& segment, NameServer& server);
    void take_syn(const Segment& segment, Connection* known);
    void open(const Segment& segment, Connection& made);
    bool take_acknowledgement(const Segment& segment, Connection& of);
    void take_data(const Segment& segment, Connection& of, NameServer& server);
    void take_bytes(Bytes bytes, Connection& of, NameServer& server);
    void answer(Bytes query, Connection& of, NameServer& server);
    void reset(const Segment& segment);

    std::uint64_t key_;
    std::vector<Row> rows_;
    std::uint64_t uses_ = 0, answered_ = 0, evicted_ = 0;
    std::uint32_t trial_ = 0;
    // What the last segment leads to.
    MacPair macs_{};
    Endpoints back_{};
    std::optional<SegmentHeader> reply_;  // without a connection's data
    Connection* current_ = nullptr;
    bool must_acknowledge_ = false;
    std::array<std::uint8_t, 2 + NameServer::kMostAnswerSize> answer_{};  // with its length
};

}  // namespace dutperf::dns
