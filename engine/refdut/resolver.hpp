// SPDX-License-Identifier: Apache-2.0
// A DNS64 server (RFC 6147) without packets and without a clock: messages in, messages out. It asks one authoritative
// server and answers queries for AAAA records only. It follows no CNAME, has no TCP, and caches no negative answers.
// Clients that ask for the same name at the same time are resolved each on its own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "dns/message.hpp"
#include "refdut/address_map.hpp"
#include "refdut/answer_cache.hpp"
#include "refdut/pending_queries.hpp"
#include "refdut/properties.hpp"

namespace dutperf {

inline constexpr std::uint64_t kUpstreamTimeoutNs = 1'000'000'000;
inline constexpr std::uint8_t kUpstreamTries = 2;
inline constexpr std::size_t kMostAddresses = 8;  // of an answer, whose message then fits into 512 bytes

// What a resolver sends.
class ResolverOutput {
public:
    virtual ~ResolverOutput() = default;
    ResolverOutput() = default;
    ResolverOutput(const ResolverOutput&) = delete;
    ResolverOutput& operator=(const ResolverOutput&) = delete;

    virtual void answer(Ticks now, const DnsClient& client, dns::Bytes message) = 0;
    // To the server, from this port.
    virtual void ask(Ticks now, std::uint16_t port, dns::Bytes message) = 0;
};

struct ResolverCounts {
    std::uint64_t queries = 0;   // of clients
    std::uint64_t answered = 0;  // answers made, right or wrong, but no copies
    std::uint64_t cache_hits = 0;
    std::uint64_t synthesised = 0, existing = 0;  // answers with addresses, cached ones too
    std::uint64_t asked_a = 0, asked_aaaa = 0;    // messages to the server, retries too
    std::uint64_t retries = 0;
    std::uint64_t timed_out = 0;     // queries that the server did not answer at all: SERVFAIL
    std::uint64_t pending_full = 0;  // queries that were lost
    std::uint64_t malformed = 0;     // messages of clients that are no query, without an answer or with FORMERR
    std::uint64_t unsupported = 0;   // queries of other types, classes and opcodes: NOTIMP
    std::uint64_t unexpected = 0;    // messages from the server that answer no pending query
};

class Resolver {
public:
    Resolver(const Prefix<Ipv6>& prefix, const Dns64Properties& properties, std::uint64_t clock_hz,
             ResolverOutput& output);

    // A client's message. `now` must not decrease.
    void query(Ticks now, const DnsClient& client, dns::Bytes message);
    // A message from the server to this port.
    void response(Ticks now, std::uint16_t port, dns::Bytes message);
    // Asks again, or gives up, where the server did not answer in time.
    void expire(Ticks now);
    // Forgets all queries and the cache.
    void clear();

    [[nodiscard]] const ResolverCounts& counts() const { return counts_; }
    [[nodiscard]] const ByWrong& wrong() const { return wrong_.counts(); }
    [[nodiscard]] const AnswerCache& cache() const { return cache_; }
    [[nodiscard]] std::size_t pending() const { return pending_.size(); }
    void clear_counts();

private:
    void resolve(Ticks now, const ClientQuery& query);
    void ask(Ticks now, PendingQuery& pending, std::uint16_t type);
    void send(Ticks now, PendingQuery& pending);
    std::optional<dns::Message> read_response(dns::Bytes message, PendingQuery& pending);
    void take_aaaa(Ticks now, PendingQuery& pending, const dns::Message& message);
    void take_a(Ticks now, PendingQuery& pending, const dns::Message& message);
    void finish(Ticks now, PendingQuery& pending, bool is_synthesised);
    void fail(Ticks now, PendingQuery& pending, dns::Rcode rcode);
    void answer_addresses(Ticks now, const ClientQuery& query, const AddressAnswer& answer, std::uint32_t ttl_s);
    void reply(Ticks now, const ClientQuery& query, dns::Reply reply, std::optional<Wrong> wrong = std::nullopt);
    void reject(Ticks now, const DnsClient& client, dns::Bytes message, dns::Rcode rcode);
    [[nodiscard]] Ipv6 with_other_address(const Ipv6& address, bool is_synthesised) const;

    AddressMap map_;
    std::uint64_t clock_hz_;
    ResolverOutput& output_;
    AnswerCache cache_;
    PendingQueries pending_;
    WrongAnswers wrong_;
    ResolverCounts counts_;
    // memory for the message that is being read or written
    AddressAnswer found_;
    std::string key_;
    std::array<std::uint8_t, 1024> room_{};
};

}  // namespace dutperf
