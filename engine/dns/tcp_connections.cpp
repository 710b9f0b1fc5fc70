// SPDX-License-Identifier: Apache-2.0
#include "dns/tcp_connections.hpp"

#include <algorithm>
#include <utility>

#include "frame/random_bits.hpp"

namespace dutperf::dns {

namespace {

constexpr std::size_t kLengthSize = 2;              // before each message (RFC 1035 4.2.2)
constexpr std::uint16_t kWindow = 0xFFFF;           // all is taken at once
constexpr std::size_t kMostWaiting = 65536;         // of a DUT that acknowledges nothing no more is taken
constexpr std::uint16_t kMss4 = 536, kMss6 = 1220;  // of a peer that names none (RFC 9293 3.7.1)
constexpr std::uint16_t kSmallestMss = 64;          // smaller ones make more headers than answers

std::uint64_t hash_of(std::uint64_t key, const Endpoints& between) {
    std::uint64_t hash = random_bits(key, std::uint64_t{between.source_port} << 16U | between.destination_port);
    for (const IpAddress* address : {&between.source, &between.destination}) {
        for (std::size_t i = 0; i < sizeof(Ipv6); i += 8) hash = random_bits(hash, load_be64(&address->bytes[i]));
    }
    return hash;
}

// How far `number` is behind `from`; sequence numbers wrap (RFC 9293 3.4).
std::int32_t ahead(std::uint32_t number, std::uint32_t from) { return static_cast<std::int32_t>(number - from); }

}  // namespace

std::size_t TcpConnections::Connection::sendable() const {
    const std::size_t room = window > sent ? window - sent : 0;
    return std::min({waiting.size() - sent, room, std::size_t{mss}});
}

bool TcpConnections::Connection::acknowledge(std::size_t count) {
    const std::size_t bytes = std::min(count, waiting.size());
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(bytes));
    sent -= std::min(sent, bytes);
    most_sent -= count;
    unacknowledged += static_cast<std::uint32_t>(count);
    has_repeated = false;
    return count > bytes;
}

// From the first byte that is not acknowledged on.
void TcpConnections::Connection::repeat() {
    sent = 0;
    sent_fin = false;
}

TcpConnections::Row& TcpConnections::row_of(const Endpoints& between) {
    return rows_[hash_of(key_, between) % rows_.size()];
}

TcpConnections::Connection* TcpConnections::find(const Endpoints& between) {
    Row& row = row_of(between);
    const auto found =
        std::ranges::find_if(row, [&](const Connection& one) { return one.is_open && one.between == between; });
    return found == row.end() ? nullptr : &*found;
}

TcpConnections::Connection& TcpConnections::room_for(const Endpoints& between) {
    const auto last_use = [](const Connection& one) { return one.is_open ? one.used : 0; };
    Connection& chosen = *std::ranges::min_element(row_of(between), {}, last_use);
    if (chosen.is_open && chosen.trial == trial_) ++evicted_;
    return chosen;
}

void TcpConnections::begin_trial() {
    ++trial_;
    answered_ = evicted_ = 0;
}

bool TcpConnections::take(Bytes frame, NameServer& server) {
    const auto segment = read_segment(frame);
    if (!segment || !server.serves(segment->between)) return false;
    if (!is_intact(segment->checksum, server.takes_unfinished())) {
        server.count_malformed();
        return true;
    }
    macs_ = MacPair::back_from(frame.data());
    back_ = segment->between.turned();
    reply_.reset();
    current_ = nullptr;
    must_acknowledge_ = false;
    take_segment(*segment, server);
    return true;
}

void TcpConnections::take_segment(const Segment& segment, NameServer& server) {
    Connection* const known = find(segment.between);
    if (segment.is(tcp::kRst)) {
        const bool is_in_window = known != nullptr && segment.sequence - known->next < kWindow;
        if (is_in_window) known->is_open = false;
        return;
    }
    if (segment.is(tcp::kSyn)) return take_syn(segment, known);
    if (known == nullptr || !segment.is(tcp::kAck)) return reset(segment);
    known->used = ++uses_;
    known->trial = trial_;
    current_ = known;
    if (take_acknowledgement(segment, *known)) take_data(segment, *known, server);
}

// SYN of an open connection: the DUT repeats it, or has begun again from the same port.
void TcpConnections::take_syn(const Segment& segment, Connection* known) {
    if (segment.is(tcp::kAck) || segment.is(tcp::kFin)) return reset(segment);
    if (known != nullptr && known->is_established && known->first == segment.sequence) {
        current_ = known;
        must_acknowledge_ = true;
        return;
    }
    open(segment, known != nullptr ? *known : room_for(segment.between));
}

void TcpConnections::open(const Segment& segment, Connection& made) {
    const auto own_first = static_cast<std::uint32_t>(random_bits(hash_of(key_, segment.between), segment.sequence));
    const std::uint16_t mss = segment.mss.value_or(segment.between.source.is_ipv6 ? kMss6 : kMss4);
    made.waiting.clear();
    made.part.clear();
    made = {.between = segment.between,
            .is_open = true,
            .window = segment.window,
            .mss = std::clamp(mss, kSmallestMss, kMss),
            .first = segment.sequence,
            .next = segment.sequence + 1,
            .unacknowledged = own_first + 1,
            .waiting = std::move(made.waiting),  // their memory is used again
            .part = std::move(made.part),
            .used = ++uses_,
            .trial = trial_};
    reply_ = {.sequence = own_first,
              .acknowledgement = made.next,
              .flags = tcp::kSyn | tcp::kAck,
              .window = kWindow,
              .mss = kMss};
}

// RFC 9293 3.10.7.4. Returns whether the segment's data are to be taken.
bool TcpConnections::take_acknowledgement(const Segment& segment, Connection& of) {
    const std::int32_t fresh = ahead(segment.acknowledgement, of.unacknowledged);
    if (!of.is_established && fresh != 0) {
        reset(segment);
        return false;
    }
    of.is_established = true;
    if (std::cmp_greater(fresh, of.most_sent)) {
        must_acknowledge_ = true;
        return false;
    }
    const bool is_duplicate = fresh == 0 && segment.length() == 0 && segment.window == of.window && of.most_sent != 0;
    if (fresh >= 0) of.window = segment.window;
    if (is_duplicate && !std::exchange(of.has_repeated, true)) of.repeat();  // RFC 5681 3.2, but at the first one
    const bool has_ended = fresh > 0 && of.acknowledge(static_cast<std::size_t>(fresh));
    of.is_open = !has_ended;
    return of.is_open;
}

void TcpConnections::take_data(const Segment& segment, Connection& of, NameServer& server) {
    const bool is_keep_alive = segment.length() == 0 && segment.sequence == of.next - 1;
    if (segment.length() == 0 && !is_keep_alive) return;
    must_acknowledge_ = true;
    const std::int32_t known = ahead(of.next, segment.sequence);
    if (known < 0 || is_keep_alive) return;                                   // something before it is missing
    if (std::cmp_greater_equal(known, segment.length())) return of.repeat();  // an answer was lost, or an ACK
    if (of.is_closing || of.waiting.size() > kMostWaiting) return;
    if (std::cmp_less(known, segment.payload.size())) {
        take_bytes(segment.payload.subspan(static_cast<std::size_t>(known)), of, server);
        if (!of.is_open) return reset(segment);
    }
    if (!segment.is(tcp::kFin)) return;
    ++of.next;
    of.is_closing = true;
}

// Answers the whole messages, and keeps the rest.
void TcpConnections::take_bytes(Bytes bytes, Connection& of, NameServer& server) {
    of.next += static_cast<std::uint32_t>(bytes.size());
    const bool has_part = !of.part.empty();
    if (has_part) {
        of.part.insert(of.part.end(), bytes.begin(), bytes.end());
        bytes = of.part;
    }
    std::size_t at = 0;
    while (bytes.size() - at >= kLengthSize) {
        const std::size_t size = load_be16(&bytes[at]);
        if (size > NameServer::kMostQuerySize) {
            server.count_malformed();
            of.is_open = false;
            return;
        }
        if (bytes.size() - at - kLengthSize < size) break;
        answer(bytes.subspan(at + kLengthSize, size), of, server);
        at += kLengthSize + size;
    }
    if (has_part)
        of.part.erase(of.part.begin(), of.part.begin() + static_cast<std::ptrdiff_t>(at));
    else
        of.part.assign(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end());
}

void TcpConnections::answer(Bytes query, Connection& of, NameServer& server) {
    std::ranges::copy(query, answer_.begin() + kLengthSize);
    const std::size_t size = server.answer_over_tcp(query, Room(answer_).subspan(kLengthSize));
    if (size == 0) return;
    store_be16(answer_.data(), static_cast<std::uint16_t>(size));
    of.waiting.insert(of.waiting.end(), answer_.begin(),
                      answer_.begin() + static_cast<std::ptrdiff_t>(kLengthSize + size));
    ++answered_;
}

// To a segment of no connection (RFC 9293 3.10.7.1).
void TcpConnections::reset(const Segment& segment) {
    current_ = nullptr;
    must_acknowledge_ = false;
    if (segment.is(tcp::kAck)) {
        reply_ = {.sequence = segment.acknowledgement, .flags = tcp::kRst};
    } else {
        reply_ = {.acknowledgement = segment.sequence + segment.length(), .flags = tcp::kRst | tcp::kAck};
    }
}

bool TcpConnections::has_next() const {
    if (reply_) return true;
    if (current_ == nullptr || !current_->is_open) return false;
    return must_acknowledge_ || current_->sendable() != 0 || current_->may_send_fin();
}

std::size_t TcpConnections::write_next(Room to) {
    if (reply_) return write_segment(to.data(), macs_, back_, *std::exchange(reply_, std::nullopt), 0);
    Connection& of = *current_;
    const std::size_t size = of.sendable();
    const bool fin = of.may_send_fin();
    SegmentHeader header{.sequence = of.our_next(), .acknowledgement = of.next, .flags = tcp::kAck, .window = kWindow};
    if (size != 0) header.flags |= tcp::kPsh;
    if (fin) header.flags |= tcp::kFin;
    const auto from = of.waiting.begin() + static_cast<std::ptrdiff_t>(of.sent);
    std::copy_n(from, size, &to[segment_payload_at(back_.source.is_ipv6, header)]);
    of.sent += size;
    of.sent_fin |= fin;
    of.most_sent = std::max(of.most_sent, of.sent + (of.sent_fin ? 1U : 0U));
    must_acknowledge_ = false;
    return write_segment(to.data(), macs_, back_, header, size);
}

}  // namespace dutperf::dns
