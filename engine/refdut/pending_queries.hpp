// SPDX-License-Identifier: Apache-2.0
// Queries that a DNS64 has sent to the server and whose responses it awaits, by UDP source port and message ID. Their
// number is bounded. The caller passes the time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "dns/message.hpp"
#include "platform/ticks.hpp"

namespace dutperf {

// Who asked, and when.
struct DnsClient {
    Ipv6 address{};
    std::uint16_t port = 0;
    Ticks arrived = 0;
};

// A client's query for AAAA records, as far as its answer depends on it.
struct ClientQuery {
    DnsClient client;
    std::uint16_t id = 0;
    bool recursion_desired = false;
    std::optional<dns::Edns> edns;
    dns::Bytes name;  // of somebody else's memory
};

struct PendingQuery {
    [[nodiscard]] ClientQuery query() const {
        ClientQuery whole = from;
        whole.name = name;
        return whole;
    }

    ClientQuery from;  // without its name
    std::vector<std::uint8_t> name;
    std::uint16_t type = 0;  // that the server was asked for
    std::uint16_t port = 0, id = 0;
    std::uint64_t awaited = 0;  // number of the message whose response it awaits; 0: it awaits none
    std::uint8_t tries = 0;
    bool is_free = true;
    std::uint32_t negative_ttl_s = 0;  // of the answer that there is no AAAA
};

class PendingQueries {
public:
    static constexpr std::uint32_t kMost = 1U << 20U;

    // At most `most` at once, up to kMost.
    explicit PendingQueries(std::uint32_t most) : most_(most) {}

    // A new one; nullptr: there is no room.
    PendingQuery* add(const ClientQuery& from);
    // Gives it an ID that it did not have before, and asks for `type`. Responses to its last query are none any more.
    void ask(PendingQuery& pending, std::uint16_t type);
    // nullptr: none has this port and ID.
    PendingQuery* find(std::uint16_t port, std::uint16_t id);
    void remove(PendingQuery& pending);
    void clear();

    // It was sent, and is overdue at `at`, which does not decrease from call to call.
    void await(PendingQuery& pending, Ticks at) {
        pending.awaited = ++awaited_;
        deadlines_.push_back({at, awaited_, &pending});
    }
    // One that has had no response by `now`; each once. nullptr: there is none.
    PendingQuery* next_overdue(Ticks now);

    [[nodiscard]] std::size_t size() const { return queries_.size() - free_.size(); }

private:
    struct Deadline {
        Ticks at;
        std::uint64_t awaited;
        PendingQuery* pending;
    };

    std::uint32_t most_;
    std::deque<PendingQuery> queries_;  // their memory is used again
    std::deque<std::uint32_t> free_;    // free for longest first: so ports and IDs come again late
    std::deque<Deadline> deadlines_;
    std::uint64_t awaited_ = 0;
};

}  // namespace dutperf
