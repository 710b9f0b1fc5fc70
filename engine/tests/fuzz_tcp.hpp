// SPDX-License-Identifier: Apache-2.0
// TCP segments of any shape for the name server, beside a DUT that speaks TCP as it should over a line that loses,
// repeats and splits: its stream of answers is the right one to the last byte, whatever others send.
#pragma once

#include <span>

#include "dns/tcp_connections.hpp"
#include "tests/fuzz_mutation.hpp"

namespace dutperf {

class TcpFuzz {
public:
    explicit TcpFuzz(Mutation& mutation) : mutation_(mutation) { connect(); }

    void turn() {
        take_all(any_segment());
        if (mutation_.below(2000) == 0) connect();
        talk();
    }

    [[nodiscard]] std::uint64_t segments() const { return segments_; }
    // Bytes of answers that the DUT got.
    [[nodiscard]] std::uint64_t answered() const { return answered_; }

private:
    static constexpr std::uint16_t kOwnPort = 999;
    using Segments = std::vector<dns::Segment>;

    struct Peer {
        std::uint32_t next = 0, acknowledged = 0;
    };

    static Endpoints between(bool six, std::uint16_t port) {
        IpAddress one{.is_ipv6 = six, .bytes = {}};
        return {.source = one, .destination = one, .source_port = port, .destination_port = dns::kServerPort};
    }
    static FuzzBytes frame_of(bool six, std::uint16_t port, const SegmentHeader& header, const FuzzBytes& payload) {
        const std::size_t at = segment_payload_at(six, header);
        FuzzBytes made(at + payload.size());
        std::ranges::copy(payload, made.begin() + static_cast<std::ptrdiff_t>(at));
        write_segment(made.data(), {}, between(six, port), header, payload.size());
        return made;
    }

    FuzzBytes query() {
        FuzzBytes name{1, static_cast<std::uint8_t>('a' + mutation_.below(26)), 4, 'f', 'u', 'z', 'z', 0}, message(64);
        message.resize(
            dns::write_query({.id = static_cast<std::uint16_t>(mutation_.below(65536)), .name = name}, message));
        message.insert(message.begin(), {0, static_cast<std::uint8_t>(message.size())});
        return message;
    }

    // Of other DUTs: one that might be valid, or not.
    FuzzBytes any_segment() {
        constexpr std::array<std::uint8_t, 8> kFlags{tcp::kSyn,
                                                     tcp::kAck,
                                                     tcp::kAck | tcp::kPsh,
                                                     tcp::kAck | tcp::kPsh,
                                                     tcp::kAck | tcp::kPsh,
                                                     tcp::kFin | tcp::kAck,
                                                     tcp::kRst,
                                                     0};
        const std::size_t index = mutation_.below(peers_.size());
        Peer& peer = peers_[index];
        SegmentHeader header{.sequence = peer.next,
                             .acknowledgement = peer.acknowledged,
                             .flags = kFlags[mutation_.below(kFlags.size())],
                             .window = static_cast<std::uint16_t>(mutation_.below(65536))};
        if (header.flags == tcp::kSyn) header.mss = static_cast<std::uint16_t>(mutation_.below(2000));
        if (mutation_.below(8) == 0) header.sequence += static_cast<std::uint32_t>(mutation_.below(200)) - 100U;
        if (mutation_.below(8) == 0) header.acknowledgement += static_cast<std::uint32_t>(mutation_.below(200)) - 100U;
        FuzzBytes payload = (header.flags & tcp::kPsh) != 0 ? query() : FuzzBytes{};
        if (mutation_.below(2) == 0) payload = mutation_.changed({payload, query(), {0xFF, 0xFF}});
        peer.next = header.sequence + static_cast<std::uint32_t>(payload.size()) +
                    ((header.flags & (tcp::kSyn | tcp::kFin)) != 0 ? 1U : 0U);
        const bool six = index % 2 == 0;
        return corrupted(frame_of(six, static_cast<std::uint16_t>(index), header, payload), six);
    }

    // Some bits of some frames differ, of a part of these with right checksums.
    FuzzBytes corrupted(FuzzBytes frame, bool six) {
        if (mutation_.below(2) == 0) return frame;
        const Layout& at = layout_of(six);
        for (std::size_t changes = mutation_.below(4); changes > 0; --changes)
            frame[mutation_.below(frame.size())] ^= mutation_.some_bit();
        if (mutation_.below(4) == 0) frame.resize(mutation_.below(frame.size() + 1));
        frame.shrink_to_fit();
        if (frame.size() < at.transport_at() + tcp::kSize || mutation_.below(4) == 0) return frame;
        // changes of the DUT's own port are taken back: nobody speaks for it
        store_be16(&frame[at.transport_at()], static_cast<std::uint16_t>(mutation_.below(8)));
        store<std::uint16_t>(&frame[at.transport_at() + tcp::kChecksum], 0);
        const std::size_t length = frame.size() - at.transport_at();
        const std::uint64_t sum = pseudo_header_sum(&frame[at.addresses().from], at.addresses().size(),
                                                    static_cast<std::uint16_t>(length), kProtocolTcp) +
                                  checksum_add(&frame[at.transport_at()], length);
        store(&frame[at.transport_at() + tcp::kChecksum], checksum_finish(sum));
        return frame;
    }

    // What the server sends for a frame.
    std::vector<FuzzBytes> take_all(const FuzzBytes& frame) {
        ++segments_;
        std::vector<FuzzBytes> sent;
        if (!connections_.take(frame, server_)) return sent;
        while (connections_.has_next()) {
            FuzzBytes to(dns::TcpConnections::kMostFrameSize);
            to.resize(connections_.write_next(to));
            const auto segment = dns::read_segment(to);
            require(segment && segment->checksum == dns::Checksum::good, "a segment that is none", frame);
            require(segment->payload.size() <= dns::TcpConnections::kMss, "a segment that is too large", frame);
            const std::uint16_t port = segment->between.destination_port;
            if (port < peers_.size()) peers_[port].acknowledged = segment->sequence + segment->length();
            sent.push_back(std::move(to));
            require(sent.size() <= 1 + 65536 / 64, "no end of segments", frame);
        }
        return sent;
    }

    // --- the DUT that speaks as it should ---

    void connect() {
        own_ = {.next = static_cast<std::uint32_t>(mutation_.below(std::size_t{1} << 32U))};
        queries_.clear();
        expected_.clear();
        sent_ = 0;
        const SegmentHeader header{.sequence = own_.next++, .flags = tcp::kSyn, .window = 65535, .mss = 1400};
        const auto sent = take_all(frame_of(true, kOwnPort, header, {}));
        require(sent.size() == 1, "no answer to SYN", {});
        const auto segment = dns::read_segment(sent[0]);
        require(segment->flags == (tcp::kSyn | tcp::kAck) && segment->acknowledgement == own_.next, "no SYN-ACK",
                sent[0]);
        own_.acknowledged = segment->sequence + 1;
    }

    void talk() {
        if (queries_.size() < 2000) ask();
        // the rest of what was sent is lost, or its ACK: again from there
        if (mutation_.below(6) == 0) sent_ = 0;
        const std::size_t size = std::min(queries_.size() - sent_, mutation_.below(150));
        const auto from = queries_.begin() + static_cast<std::ptrdiff_t>(sent_);
        const FuzzBytes part(from, from + static_cast<std::ptrdiff_t>(size));
        const SegmentHeader header{.sequence = own_.next + static_cast<std::uint32_t>(sent_),
                                   .acknowledgement = own_.acknowledged,
                                   .flags = tcp::kAck,
                                   .window = static_cast<std::uint16_t>(mutation_.below(3000))};
        sent_ += size;
        if (mutation_.below(8) == 0) return;  // lost
        for (const FuzzBytes& frame : take_all(frame_of(true, kOwnPort, header, part))) {
            if (mutation_.below(8) != 0) accept(*dns::read_segment(frame));
        }
    }
    void ask() {
        const FuzzBytes message = query();
        queries_.insert(queries_.end(), message.begin(), message.end());
        FuzzBytes answer(dns::NameServer::kMostAnswerSize);
        const std::span asked = std::span(message).subspan(2);
        std::ranges::copy(asked, answer.begin());
        answer.resize(reference_.answer_message(asked, answer));
        expected_.insert(expected_.end(), {0, static_cast<std::uint8_t>(answer.size())});
        expected_.insert(expected_.end(), answer.begin(), answer.end());
    }
    void accept(const dns::Segment& segment) {
        require(!segment.is(tcp::kRst | tcp::kFin), "the connection ended", {});
        const std::uint32_t taken = segment.acknowledgement - own_.next;
        require(taken <= queries_.size() || taken > (1U << 31U), "an acknowledgement of nothing", {});
        if (taken <= queries_.size()) {
            queries_.erase(queries_.begin(), queries_.begin() + taken);
            own_.next += taken;
            sent_ -= std::min<std::size_t>(sent_, taken);
        }
        if (segment.sequence != own_.acknowledged) return;
        const FuzzBytes got(segment.payload.begin(), segment.payload.end());
        require(got.size() <= expected_.size() && std::ranges::equal(got, std::span(expected_).first(got.size())),
                "another answer than the right one", got);
        expected_.erase(expected_.begin(), expected_.begin() + static_cast<std::ptrdiff_t>(got.size()));
        own_.acknowledged += static_cast<std::uint32_t>(got.size());
        answered_ += got.size();
    }

    static dns::NameServerOptions options() {
        return {.zone = *dns::parse_zone("fuzz"), .ipv4 = Ipv4{}, .ipv6 = {Ipv6{}}};
    }

    Mutation& mutation_;
    dns::NameServer server_{options()}, reference_{options()};
    dns::TcpConnections connections_{1};
    std::array<Peer, 8> peers_{};
    Peer own_;
    FuzzBytes queries_, expected_;  // not acknowledged; answers that have not come
    std::size_t sent_ = 0;          // of queries_
    std::uint64_t segments_ = 0, answered_ = 0;
};

}  // namespace dutperf
