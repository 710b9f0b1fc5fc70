// SPDX-License-Identifier: Apache-2.0
// DNS messages over UDP (RFC 1035 section 4) with EDNS (RFC 6891): reads queries and responses of any content, and
// writes queries and answers. Nothing is allocated, and nothing is read or written outside the bytes that are given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "frame/address.hpp"

namespace dutperf::dns {

using Bytes = std::span<const std::uint8_t>;
using Room = std::span<std::uint8_t>;

inline constexpr std::size_t kHeaderSize = 12, kMaxNameSize = 255, kMaxLabelSize = 63;  // RFC 1035 2.3.4
inline constexpr std::uint16_t kServerPort = 53;
inline constexpr std::uint16_t kUdpSize = 1232;  // that we announce: fits into the smallest MTU of IPv6
inline constexpr std::uint16_t kClassIn = 1;
inline constexpr std::array<std::uint8_t, 3> kNsLabel{2, 'n', 's'};  // before the zone: its server

namespace type {
inline constexpr std::uint16_t kA = 1, kNs = 2, kSoa = 6, kAaaa = 28, kOpt = 41;
}

namespace header {
inline constexpr std::size_t kId = 0, kFlags = 2, kQuestions = 4, kAnswers = 6, kAuthorities = 8, kAdditional = 10;
inline constexpr std::uint16_t kResponse = 0x8000, kAuthoritative = 0x0400, kTruncated = 0x0200,
                               kRecursionDesired = 0x0100, kRecursionAvailable = 0x0080, kRcodeMask = 0x000F;
inline constexpr unsigned kOpcodeShift = 11;
}  // namespace header

// RFC 1035 4.1.1, RFC 6891 9
enum class Rcode : std::uint16_t {
    noerror = 0,
    formerr = 1,
    servfail = 2,
    nxdomain = 3,
    notimp = 4,
    refused = 5,
    badvers = 16,
};

struct Header {
    std::uint16_t id = 0, flags = 0;
    std::array<std::uint16_t, 4> counts{};  // of questions, answers, authorities, additional records

    [[nodiscard]] bool is(std::uint16_t flag) const { return (flags & flag) != 0; }
    [[nodiscard]] unsigned opcode() const { return flags >> header::kOpcodeShift & 0xFU; }  // 0: QUERY
    [[nodiscard]] Rcode rcode() const { return static_cast<Rcode>(flags & header::kRcodeMask); }
};

// Nothing if the message is shorter.
std::optional<Header> read_header(Bytes message);

struct Question {
    Bytes name;  // as in the message, with the root label
    std::uint16_t type, klass;

    // Offset behind it, in a message that has it as its first question.
    [[nodiscard]] std::size_t end() const { return kHeaderSize + name.size() + 4; }
};

// The only question of a message, which directly follows the header. Nothing if there are several or none, or if its
// name is compressed or too long.
std::optional<Question> read_question(Bytes message);

enum class Section : std::uint8_t { answer, authority, additional };

struct Record {
    Section section = Section::answer;
    Bytes owner;  // as in the message, maybe with a compression pointer
    std::uint16_t type = 0, klass = 0;
    std::uint32_t ttl_s = 0;
    Bytes data;
};

// The resource records of a message, in order.
class Records {
public:
    // They begin behind the question.
    Records(Bytes message, const Question& question);

    // The next one; nothing behind the last one and behind one that cannot be read.
    std::optional<Record> next();
    // Whether next() ended behind the last one.
    [[nodiscard]] bool are_whole() const { return left() == 0; }

private:
    [[nodiscard]] std::size_t left() const;

    Bytes message_;
    std::size_t at_;
    std::array<std::uint16_t, 3> left_;  // of each section
};

// The offset behind the name at `at`. Nothing if it is too long or has a pointer that does not point to an earlier
// name: so no pointers make a loop.
std::optional<std::size_t> name_end(Bytes message, std::size_t at);

// Whether two names without pointers are equal; letters in any case (RFC 1035 2.3.3, RFC 4343).
bool are_equal_names(Bytes one, Bytes other);

// The OPT record (RFC 6891 6.1).
struct Edns {
    std::uint16_t udp_size = kUdpSize;
    std::uint8_t extended_rcode = 0;  // the upper bits
    std::uint8_t version = 0;
    bool dnssec_ok = false;
};

// Of an OPT record.
Edns edns_of(const Record& opt);

// A whole query, or a whole response but its records.
struct Message {
    Header header;
    Question question;
    std::optional<Edns> edns;

    [[nodiscard]] Rcode rcode() const {
        const unsigned upper = edns ? unsigned{edns->extended_rcode} << 4U : 0U;
        return static_cast<Rcode>(upper | static_cast<unsigned>(header.rcode()));
    }
};

// Nothing if it cannot be read to the end or has several OPT records. `take` is called with each record but OPT.
template <class Take>
std::optional<Message> read_message(Bytes message, const Take& take) {
    const auto header = read_header(message);
    const auto question = read_question(message);
    if (!header || !question) return std::nullopt;
    Message read{.header = *header, .question = *question, .edns = std::nullopt};
    Records records(message, *question);
    while (const auto record = records.next()) {
        if (record->type != type::kOpt) {
            take(*record);
            continue;
        }
        if (read.edns || record->section != Section::additional || record->owner.size() != 1) return std::nullopt;
        read.edns = edns_of(*record);
    }
    return records.are_whole() ? std::optional(read) : std::nullopt;
}
inline std::optional<Message> read_message(Bytes message) {
    return read_message(message, [](const Record&) {});
}

struct Query {
    std::uint16_t id = 0;
    Bytes name;  // with the root label
    std::uint16_t type = type::kAaaa;
    bool recursion_desired = true;
    std::optional<Edns> edns = Edns{};
};

// Returns its size; 0: `to` is too small.
std::size_t write_query(const Query& query, Room to);

// What an answer says besides what it copies from the query: ID, opcode, RD and the question.
struct Reply {
    Rcode rcode = Rcode::noerror;
    bool authoritative = false, recursion_available = false;
    std::uint32_t ttl_s = 0;          // of all records
    const Ipv4* a = nullptr;          // A record of the question's name
    std::span<const Ipv6> aaaa = {};  // AAAA records of the question's name
    // Of these records the owner is the zone, which is the question's name from byte `zone_at` on.
    bool soa = false, soa_as_answer = false, ns = false;  // SOA in the authority or the answer section; NS as answer
    std::size_t zone_at = 0;
    std::optional<Edns> edns = std::nullopt;
};

// Turns the query at the beginning of `room` into its answer, in place. Returns its size; 0: `room` is too small.
std::size_t write_reply(Room room, const Question& question, const Reply& reply);

// The same for a query with a header only that could be read: the answer has no question.
std::size_t write_error(Room room, Rcode rcode);

}  // namespace dutperf::dns
