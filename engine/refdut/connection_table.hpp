// SPDX-License-Identifier: Apache-2.0
// The connection tracking table of a NAT, with the properties that RFC 9693 measures: capacity, establishment rate,
// what happens when it is full, timeout and tear-down. All are exact, and its counts are the ground truth. The caller
// passes the time, which must not decrease, so the table can be tested without a clock.
//
// A connection is one inside endpoint, one remote endpoint and the outside endpoint that the table chose (RFC 4787:
// address- and port-dependent mapping and filtering, as Linux). All memory is allocated at the start: 64 bytes for each
// connection, and two hash tables of 4 bytes for each, rounded up to a power of two.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "frame/address.hpp"
#include "platform/huge_page_allocator.hpp"
#include "refdut/loss.hpp"
#include "refdut/service_queue.hpp"

namespace dutperf {

struct Endpoint {
    Ipv4 address{};
    std::uint16_t port = 0;

    bool operator==(const Endpoint&) const = default;
};

struct InsideEndpoint {
    Ipv6 address{};  // an IPv4 address is in the last four bytes; the others are 0
    std::uint16_t port = 0;

    bool operator==(const InsideEndpoint&) const = default;
};

// What happens to the frame of a new connection when the table is full.
enum class WhenFull : std::uint8_t {
    refuse,            // the frame is lost
    evict,             // the connections unused for longest are evicted, `evict_count` at once
    evict_unanswered,  // the one unused for longest of those without a reverse frame; without any, the frame is lost
    pass,              // the frame is translated and forwarded, but there is no connection
};

// Choice of the outside endpoint of a new connection.
enum class PortChoice : std::uint8_t {
    next,      // the next one of the pool that is free for this remote endpoint
    preserve,  // the inside port, if it is free; otherwise the next one
};

struct ConnectionProperties {
    std::uint32_t capacity = 262'144;
    WhenFull when_full = WhenFull::refuse;
    std::uint32_t evict_count = 1;
    std::uint64_t timeout_ns = 0;              // without a frame in either direction; 0: none
    std::uint64_t establishment_cps = 0;       // connections/s; 0: no limit
    std::uint32_t establishment_queue = 1000;  // that may exceed the rate, besides the one being established
    std::uint64_t deletion_cps = 0;            // connections/s deleted on request; 0: all at once
    PortChoice ports = PortChoice::next;
    std::uint32_t remap_every = 0;     // every Nth forward frame of a connection; 0: none
    std::uint32_t remap_after_ms = 0;  // after the last mapping; 0: never
};

// The outside endpoints: every port of a range on every address.
struct OutsidePool {
    std::vector<Ipv4> addresses;
    std::uint16_t first_port = 1024, last_port = 65535;

    [[nodiscard]] std::uint64_t ports() const { return std::uint64_t{last_port} - first_port + 1; }
    [[nodiscard]] std::uint64_t size() const { return addresses.size() * ports(); }
    // All ports of an address before those of the next one.
    [[nodiscard]] Endpoint at(std::uint64_t index) const {
        return {addresses[index / ports()], static_cast<std::uint16_t>(first_port + index % ports())};
    }
};

struct ConnectionCounts {
    std::uint64_t created = 0;
    std::uint64_t refused = 0;    // frames of new connections that were lost, by any cause
    std::uint64_t untracked = 0;  // frames of new connections that passed without one
    std::uint64_t evicted = 0, expired = 0;
    std::uint64_t deleted = 0;  // on request or by a reset
    std::uint64_t remapped = 0;
    std::uint32_t current = 0, highest = 0;
};

class ConnectionTable {
public:
    ConnectionTable(OutsidePool pool, const ConnectionProperties& properties, std::uint64_t clock_hz);

    // A frame from the inside: the outside endpoint of its connection, which is created if there is none.
    std::variant<Endpoint, Loss> outward(const InsideEndpoint& inside, const Endpoint& remote, Ticks now);
    // A frame from the outside: the inside endpoint of its connection; nothing if there is none.
    std::optional<InsideEndpoint> inward(const Endpoint& outside, const Endpoint& remote, Ticks now);

    // Removes at most `most` connections that have expired; those that are left count as current, but no frame finds
    // them.
    void expire(Ticks now, std::uint32_t most);

    // Deletes all connections at once.
    void clear();
    // Begins to delete as many connections as there are, at `deletion_cps`.
    void begin_deletion(Ticks now);
    // Deletes those that are due. Returns whether the deletion goes on.
    bool continue_deletion(Ticks now);

    [[nodiscard]] const ConnectionCounts& counts() const { return counts_; }
    // Current connections stay, and are the new highest count.
    void clear_counts();

private:
    using Index = std::uint32_t;
    static constexpr Index kNone = UINT32_MAX;

    struct Entry {
        Ipv6 inside_address;
        Ipv4 remote_address, outside_address;
        std::uint16_t inside_port, remote_port, outside_port;
        bool answered;  // there was a reverse frame
        Ticks last_use;
        Index older, newer;                     // in the order of use, apart for answered and others
        Index next_by_inside, next_by_outside;  // in the chain of a bucket; of a free entry: the next free one
        std::uint32_t forwarded;                // forward frames
        std::uint32_t mapped_at_ms;

        [[nodiscard]] InsideEndpoint inside() const { return {inside_address, inside_port}; }
        [[nodiscard]] Endpoint remote() const { return {remote_address, remote_port}; }
        [[nodiscard]] Endpoint outside() const { return {outside_address, outside_port}; }
    };
    static_assert(sizeof(Entry) == 64, "a cache line");

    // Entries in the order of their last use.
    struct UseOrder {
        Index oldest = kNone, newest = kNone;
    };
    struct Deletion {
        Ticks since = 0;
        std::uint64_t wanted = 0, done = 0;
    };

    [[nodiscard]] std::size_t bucket(const InsideEndpoint& inside, const Endpoint& remote) const;
    [[nodiscard]] std::size_t bucket(const Endpoint& outside, const Endpoint& remote) const;
    [[nodiscard]] Index find(const InsideEndpoint& inside, const Endpoint& remote) const;
    [[nodiscard]] Index find(const Endpoint& outside, const Endpoint& remote) const;
    [[nodiscard]] bool has_expired(const Entry& entry, Ticks now) const {
        return timeout_ != 0 && entry.last_use + timeout_ <= now;
    }
    [[nodiscard]] Index unused_for_longest() const;
    [[nodiscard]] std::uint32_t milliseconds(Ticks now) const;

    std::variant<Endpoint, Loss> create(const InsideEndpoint& inside, const Endpoint& remote, Ticks now);
    Loss refuse(Loss cause);
    bool may_establish(Ticks now);
    void make_room();
    std::optional<Endpoint> choose_outside(const InsideEndpoint& inside, const Endpoint& remote);
    void insert(const InsideEndpoint& inside, const Endpoint& remote, const Endpoint& outside, Ticks now);
    bool is_due_for_remapping(const Entry& entry, Ticks now) const;
    void remap(Index index, Ticks now);
    void remove(Index index);
    void remove_expired(Index index);

    UseOrder& order_of(const Entry& entry) { return by_use_[entry.answered ? 1 : 0]; }
    void append_to_order(Index index, Ticks now);
    void take_from_order(Index index);
    void link_outside(Index index);
    void unlink_outside(Index index);

    OutsidePool pool_;
    ConnectionProperties properties_;
    std::uint64_t clock_hz_;
    Ticks timeout_;
    std::vector<Entry, HugePageAllocator<Entry>> entries_;
    std::vector<Index, HugePageAllocator<Index>> by_inside_, by_outside_;  // heads of the chains
    std::array<UseOrder, 2> by_use_;                                       // unanswered, answered
    Index first_free_ = kNone, never_used_ = 0;
    ServiceQueue<std::monostate> establishments_;
    std::uint64_t next_outside_ = 0;  // in the pool
    Ticks last_use_ = 0;
    Deletion deletion_;
    ConnectionCounts counts_;
};

}  // namespace dutperf
