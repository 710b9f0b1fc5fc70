// SPDX-License-Identifier: Apache-2.0
#include "dns/message.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "frame/bytes.hpp"

namespace dutperf::dns {

namespace {

constexpr std::uint8_t kPointer = 0xC0;  // both bits set: a pointer of 14 bits (RFC 1035 4.1.4)
constexpr std::size_t kRecordFixedSize = 10, kQuestionFixedSize = 4;
constexpr std::uint16_t kDnssecOk = 0x8000;                            // RFC 3225
constexpr std::uint16_t kCopied = 0x7800 | header::kRecursionDesired;  // of the query's flags: opcode, RD

constexpr std::array<std::uint8_t, 11> kHostmasterLabel{10, 'h', 'o', 's', 't', 'm', 'a', 's', 't', 'e', 'r'};
constexpr std::uint32_t kSerial = 1, kRefresh = 3600, kRetry = 600, kExpire = 86400;

std::uint8_t lower(std::uint8_t letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<std::uint8_t>(letter | 0x20U) : letter;
}

// Offset of the end of the labels from `at` on: of the root label or of a pointer. Nothing if they do not end.
std::optional<std::size_t> labels_end(Bytes message, std::size_t at) {
    const std::size_t limit = std::min(message.size(), at + kMaxNameSize);
    while (at < limit) {
        const std::uint8_t size = message[at];
        if (size == 0 || size >= kPointer) return at;
        if (size > kMaxLabelSize) return std::nullopt;
        at += 1U + size;
    }
    return std::nullopt;
}

// Writes one after the other. What does not fit makes the whole message not fit.
class Writer {
public:
    Writer(Room to, std::size_t at) : to_(to), at_(at) {}

    void put(Bytes bytes) {
        if (!fits(bytes.size())) return;
        std::ranges::copy(bytes, to_.begin() + static_cast<std::ptrdiff_t>(at_ - bytes.size()));
    }
    void put16(std::uint16_t number) {
        if (fits(2)) store_be16(&to_[at_ - 2], number);
    }
    void put32(std::uint32_t number) {
        if (fits(4)) store_be32(&to_[at_ - 4], number);
    }
    void pointer_to(std::size_t at) { put16(static_cast<std::uint16_t>(unsigned{kPointer} << 8U | at)); }
    // What precedes the data of a record whose owner is the name at `owner`.
    void record(std::size_t owner, std::uint16_t type, std::uint32_t ttl_s, std::size_t data_size) {
        pointer_to(owner);
        put16(type);
        put16(kClassIn);
        put32(ttl_s);
        put16(static_cast<std::uint16_t>(data_size));
    }
    [[nodiscard]] std::size_t size() const { return fit_ ? at_ : 0; }

private:
    bool fits(std::size_t size) {
        fit_ = fit_ && size <= to_.size() - at_;
        at_ += fit_ ? size : 0;
        return fit_;
    }

    Room to_;
    std::size_t at_;
    bool fit_ = true;
};

void put_opt(Writer& writer, const Edns& edns) {
    constexpr std::array<std::uint8_t, 1> kRoot{0};
    writer.put(kRoot);
    writer.put16(type::kOpt);
    writer.put16(edns.udp_size);
    writer.put16(static_cast<std::uint16_t>(edns.extended_rcode << 8U | edns.version));
    writer.put16(edns.dnssec_ok ? kDnssecOk : 0);
    writer.put16(0);
}

void put_soa(Writer& writer, std::size_t zone, std::uint32_t ttl_s) {
    writer.record(zone, type::kSoa, ttl_s, kNsLabel.size() + 2 + kHostmasterLabel.size() + 2 + 5 * 4);
    writer.put(kNsLabel);
    writer.pointer_to(zone);
    writer.put(kHostmasterLabel);
    writer.pointer_to(zone);
    for (const std::uint32_t number : {kSerial, kRefresh, kRetry, kExpire, ttl_s}) writer.put32(number);
}

// Returns how many there are.
std::size_t put_answers(Writer& writer, const Reply& reply, std::size_t zone) {
    if (reply.a != nullptr) {
        writer.record(kHeaderSize, type::kA, reply.ttl_s, reply.a->size());
        writer.put(*reply.a);
    }
    for (const Ipv6& address : reply.aaaa) {
        writer.record(kHeaderSize, type::kAaaa, reply.ttl_s, address.size());
        writer.put(address);
    }
    if (reply.soa_as_answer) put_soa(writer, zone, reply.ttl_s);
    if (reply.ns) {
        writer.record(zone, type::kNs, reply.ttl_s, kNsLabel.size() + 2);
        writer.put(kNsLabel);
        writer.pointer_to(zone);
    }
    return (reply.a != nullptr ? 1U : 0U) + reply.aaaa.size() + (reply.soa_as_answer ? 1U : 0U) + (reply.ns ? 1U : 0U);
}

std::uint16_t flags_of(std::uint16_t query, const Reply& reply) {
    return static_cast<std::uint16_t>(header::kResponse | (query & kCopied) |
                                      (reply.authoritative ? header::kAuthoritative : 0U) |
                                      (reply.recursion_available ? header::kRecursionAvailable : 0U) |
                                      (static_cast<unsigned>(reply.rcode) & header::kRcodeMask));
}

void write_counts(Room room, const std::array<std::size_t, 4>& counts) {
    for (std::size_t i = 0; i < counts.size(); ++i)
        store_be16(&room[header::kQuestions + 2 * i], static_cast<std::uint16_t>(counts[i]));
}

}  // namespace

std::optional<Header> read_header(Bytes message) {
    if (message.size() < kHeaderSize) return std::nullopt;
    Header header{.id = load_be16(&message[header::kId]), .flags = load_be16(&message[header::kFlags]), .counts = {}};
    for (std::size_t i = 0; i < header.counts.size(); ++i)
        header.counts[i] = load_be16(&message[header::kQuestions + 2 * i]);
    return header;
}

std::optional<Question> read_question(Bytes message) {
    if (message.size() < kHeaderSize || load_be16(&message[header::kQuestions]) != 1) return std::nullopt;
    const auto root = labels_end(message, kHeaderSize);
    if (!root || message[*root] != 0 || message.size() - *root < 1 + kQuestionFixedSize) return std::nullopt;
    return Question{.name = message.subspan(kHeaderSize, *root + 1 - kHeaderSize),
                    .type = load_be16(&message[*root + 1]),
                    .klass = load_be16(&message[*root + 3])};
}

std::optional<std::size_t> name_end(Bytes message, std::size_t at) {
    std::optional<std::size_t> end;
    std::size_t size = 0;
    for (;;) {
        const auto stop = labels_end(message, at);
        if (!stop) return std::nullopt;
        size += *stop - at;
        if (message[*stop] == 0) return size < kMaxNameSize ? end.value_or(*stop + 1) : std::optional<std::size_t>();
        if (message.size() - *stop < 2) return std::nullopt;
        const std::size_t target = load_be16(&message[*stop]) & 0x3FFFU;
        if (target >= at || target < kHeaderSize || size >= kMaxNameSize) return std::nullopt;
        if (!end) end = *stop + 2;
        at = target;
    }
}

bool are_equal_names(Bytes one, Bytes other) {
    if (one.size() != other.size()) return false;
    if (std::memcmp(one.data(), other.data(), one.size()) == 0) return true;
    return std::ranges::equal(one, other, {}, lower, lower);  // sizes of labels are below the letters
}

Records::Records(Bytes message, const Question& question) : message_(message), at_(question.end()), left_{} {
    for (std::size_t i = 0; i < left_.size(); ++i) left_[i] = load_be16(&message[header::kAnswers + 2 * i]);
}

std::size_t Records::left() const { return std::accumulate(left_.begin(), left_.end(), std::size_t{0}); }

std::optional<Record> Records::next() {
    const auto section = std::ranges::find_if(left_, [](std::uint16_t count) { return count != 0; });
    if (section == left_.end()) return std::nullopt;
    const auto end = name_end(message_, at_);
    if (!end || message_.size() - *end < kRecordFixedSize) return std::nullopt;
    const std::uint8_t* fixed = &message_[*end];
    const std::size_t data_at = *end + kRecordFixedSize, data_size = load_be16(fixed + 8);
    if (message_.size() - data_at < data_size) return std::nullopt;
    Record record{.section = static_cast<Section>(section - left_.begin()),
                  .owner = message_.subspan(at_, *end - at_),
                  .type = load_be16(fixed),
                  .klass = load_be16(fixed + 2),
                  .ttl_s = load_be32(fixed + 4),
                  .data = message_.subspan(data_at, data_size)};
    at_ = data_at + data_size;
    --*section;
    return record;
}

Edns edns_of(const Record& opt) {
    return {.udp_size = opt.klass,
            .extended_rcode = static_cast<std::uint8_t>(opt.ttl_s >> 24U),
            .version = static_cast<std::uint8_t>(opt.ttl_s >> 16U),
            .dnssec_ok = (opt.ttl_s & kDnssecOk) != 0};
}

std::size_t write_query(const Query& query, Room to) {
    if (to.size() < kHeaderSize) return 0;
    store_be16(&to[header::kId], query.id);
    store_be16(&to[header::kFlags], query.recursion_desired ? header::kRecursionDesired : 0);
    write_counts(to, {1, 0, 0, query.edns ? 1U : 0U});
    Writer writer(to, kHeaderSize);
    writer.put(query.name);
    writer.put16(query.type);
    writer.put16(kClassIn);
    if (query.edns) put_opt(writer, *query.edns);
    return writer.size();
}

std::size_t write_reply(Room room, const Question& question, const Reply& reply) {
    if (room.size() < question.end()) return 0;
    const std::size_t zone = kHeaderSize + reply.zone_at;
    Writer writer(room, question.end());
    const std::size_t answers = put_answers(writer, reply, zone);
    if (reply.soa) put_soa(writer, zone, reply.ttl_s);
    if (reply.edns) {
        Edns edns = *reply.edns;
        edns.extended_rcode = static_cast<std::uint8_t>(static_cast<unsigned>(reply.rcode) >> 4U);
        put_opt(writer, edns);
    }
    store_be16(&room[header::kFlags], flags_of(load_be16(&room[header::kFlags]), reply));
    write_counts(room, {1, answers, reply.soa ? 1U : 0U, reply.edns ? 1U : 0U});
    return writer.size();
}

std::size_t write_error(Room room, Rcode rcode) {
    if (room.size() < kHeaderSize) return 0;
    store_be16(&room[header::kFlags], flags_of(load_be16(&room[header::kFlags]), {.rcode = rcode}));
    write_counts(room, {0, 0, 0, 0});
    return kHeaderSize;
}

}  // namespace dutperf::dns
