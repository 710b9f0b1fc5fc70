// SPDX-License-Identifier: Apache-2.0
// The authoritative server of the test names' zone (RFC 8219 section 9, RFC 1035, RFC 6891). It has no state: a name
// says its addresses (dns/test_name.hpp). Frames in, frames out; no port is used here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dns/datagram.hpp"
#include "dns/test_name.hpp"

namespace dutperf::dns {

// Queries, by what they ask for.
struct QueryCounts {
    std::uint64_t a = 0, aaaa = 0, other = 0;  // of this trial's names; `other`: also of the zone's own names
    std::uint64_t stale = 0;                   // of names of another run or trial
    std::uint64_t unknown = 0;                 // within the zone, but no name of it
    std::uint64_t refused = 0;                 // out of the zone, and what only other servers do
    std::uint64_t malformed = 0;
    std::uint64_t tcp = 0;  // of all these, over TCP
};

struct NameServerOptions {
    Zone zone;
    std::uint32_t ttl_s = 3600;
    std::optional<Ipv4> ipv4 = {};  // its addresses
    std::vector<Ipv6> ipv6 = {};    // the first one is in its AAAA record
    std::uint16_t run = 0;
    std::vector<std::uint16_t> trials = {};  // whose names are not stale
    bool takes_unfinished = false;           // checksums, as of a kernel on this machine
};

class NameServer {
public:
    explicit NameServer(NameServerOptions options) : options_(std::move(options)) {}

    // Whether what goes between these is for this server.
    [[nodiscard]] bool serves(const Endpoints& between) const {
        return between.destination_port == kServerPort && is_own(between.destination);
    }
    [[nodiscard]] bool takes_unfinished() const { return options_.takes_unfinished; }
    // The datagram in a received frame that is for this server; nothing for any other frame.
    [[nodiscard]] std::optional<Datagram> datagram_in(Bytes frame) const;
    // Writes the answer to a received frame, as a frame, and counts the query. Returns its length; 0: there is none.
    // `to` has room for kMostAnswerSize bytes.
    std::size_t answer(Bytes frame, const Datagram& datagram, Room to);
    // The longest query that is answered, and how much longer an answer may be.
    static constexpr std::size_t kMostQuerySize = 1500, kMostAnswerSize = kMostQuerySize + 512;
    // The same for a message alone, which is also at the beginning of `to`.
    std::size_t answer_message(Bytes query, Room to);
    std::size_t answer_over_tcp(Bytes query, Room to) {
        ++counts_.tcp;
        return answer_message(query, to);
    }
    // What came for the server and is no query.
    void count_malformed() { ++counts_.malformed; }

    [[nodiscard]] const QueryCounts& counts() const { return counts_; }

private:
    [[nodiscard]] bool is_own(const IpAddress& address) const;
    std::size_t answer_query(const Message& query, Room to);
    Reply reply_to(const Question& question);
    Reply reply_of_apex(std::uint16_t type);
    Reply reply_of_ns(std::uint16_t type);
    Reply reply_of(const TestName& name, std::uint16_t type);
    void count(const TestName& name, std::uint16_t type);
    [[nodiscard]] Reply no_data() const { return {.authoritative = true, .ttl_s = options_.ttl_s, .soa = true}; }

    NameServerOptions options_;
    QueryCounts counts_;
    Ipv4 a_{};  // of the answer at hand
    Ipv6 aaaa_{};
};

}  // namespace dutperf::dns
