// SPDX-License-Identifier: Apache-2.0
#include "refdut/connection_table.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "frame/bytes.hpp"
#include "frame/random_bits.hpp"

namespace dutperf {

namespace {

// Outside endpoints that are tried for a new connection. Where 99 % of them are in use at random, 34 new connections in
// a million fail.
constexpr std::uint64_t kMostTried = 1024;

std::uint64_t hash_of(std::uint64_t hash, const Endpoint& endpoint) {
    return random_bits(hash, std::uint64_t{load_be32(endpoint.address.data())} << 16U | endpoint.port);
}

std::uint64_t hash_of(std::uint64_t hash, const InsideEndpoint& endpoint) {
    hash = random_bits(hash, load_be64(endpoint.address.data()));
    return random_bits(hash, load_be64(endpoint.address.data() + 8) ^ std::uint64_t{endpoint.port} << 48U);
}

}  // namespace

ConnectionTable::ConnectionTable(OutsidePool pool, const ConnectionProperties& properties, std::uint64_t clock_hz)
    : pool_(std::move(pool)),
      properties_(properties),
      clock_hz_(clock_hz),
      timeout_(ticks_of(properties.timeout_ns, clock_hz)),
      entries_(properties.capacity),
      by_inside_(std::bit_ceil(properties.capacity), kNone),
      by_outside_(by_inside_.size(), kNone),
      establishments_(clock_hz, properties.establishment_cps, properties.establishment_queue) {}

std::variant<Endpoint, Loss> ConnectionTable::outward(const InsideEndpoint& inside, const Endpoint& remote, Ticks now) {
    const Index index = find(inside, remote);
    if (index == kNone) return create(inside, remote, now);
    Entry& entry = entries_[index];
    if (has_expired(entry, now)) {
        remove_expired(index);
        return create(inside, remote, now);
    }
    take_from_order(index);
    append_to_order(index, now);
    ++entry.forwarded;
    if (is_due_for_remapping(entry, now)) remap(index, now);
    return entry.outside();
}

std::optional<InsideEndpoint> ConnectionTable::inward(const Endpoint& outside, const Endpoint& remote, Ticks now) {
    const Index index = find(outside, remote);
    if (index == kNone) return std::nullopt;
    Entry& entry = entries_[index];
    if (has_expired(entry, now)) {
        remove_expired(index);
        return std::nullopt;
    }
    take_from_order(index);
    entry.answered = true;
    append_to_order(index, now);
    return entry.inside();
}

std::variant<Endpoint, Loss> ConnectionTable::create(const InsideEndpoint& inside, const Endpoint& remote, Ticks now) {
    if (counts_.current == properties_.capacity) expire(now, 1);
    const bool full = counts_.current == properties_.capacity;
    if (full && properties_.when_full == WhenFull::pass) {
        const auto outside = choose_outside(inside, remote);
        if (!outside) return refuse(Loss::no_port);
        ++counts_.untracked;
        return *outside;
    }
    const bool nothing_to_evict = properties_.when_full == WhenFull::refuse ||
                                  (properties_.when_full == WhenFull::evict_unanswered && by_use_[0].oldest == kNone);
    if (full && nothing_to_evict) return refuse(Loss::table_full);
    if (!may_establish(now)) return refuse(Loss::establishment);
    if (full) make_room();
    const auto outside = choose_outside(inside, remote);
    if (!outside) return refuse(Loss::no_port);
    insert(inside, remote, *outside, now);
    return *outside;
}

Loss ConnectionTable::refuse(Loss cause) {
    ++counts_.refused;
    return cause;
}

bool ConnectionTable::may_establish(Ticks now) {
    if (properties_.establishment_cps == 0) return true;
    while (establishments_.next().value_or(now + 1) <= now) establishments_.pop();
    return establishments_.push(now, {});
}

void ConnectionTable::make_room() {
    if (properties_.when_full == WhenFull::evict_unanswered) {
        remove(by_use_[0].oldest);
        ++counts_.evicted;
        return;
    }
    for (std::uint32_t i = 0; i < properties_.evict_count && counts_.current != 0; ++i) {
        remove(unused_for_longest());
        ++counts_.evicted;
    }
}

std::optional<Endpoint> ConnectionTable::choose_outside(const InsideEndpoint& inside, const Endpoint& remote) {
    const auto is_free = [&](const Endpoint& outside) { return find(outside, remote) == kNone; };
    if (properties_.ports == PortChoice::preserve && inside.port >= pool_.first_port &&
        inside.port <= pool_.last_port) {
        const Endpoint same{pool_.addresses[hash_of(0, {inside.address, 0}) % pool_.addresses.size()], inside.port};
        if (is_free(same)) return same;
    }
    for (std::uint64_t tried = 0; tried < std::min(kMostTried, pool_.size()); ++tried) {
        const Endpoint outside = pool_.at(next_outside_);
        next_outside_ = next_outside_ + 1 == pool_.size() ? 0 : next_outside_ + 1;
        if (is_free(outside)) return outside;
    }
    return std::nullopt;
}

void ConnectionTable::insert(const InsideEndpoint& inside, const Endpoint& remote, const Endpoint& outside, Ticks now) {
    const Index index = first_free_ != kNone ? first_free_ : never_used_++;
    Entry& entry = entries_[index];
    if (first_free_ != kNone) first_free_ = entry.next_by_inside;
    entry.inside_address = inside.address;
    entry.inside_port = inside.port;
    entry.remote_address = remote.address;
    entry.remote_port = remote.port;
    entry.outside_address = outside.address;
    entry.outside_port = outside.port;
    entry.answered = false;
    entry.forwarded = 1;
    entry.mapped_at_ms = milliseconds(now);
    Index& head = by_inside_[bucket(inside, remote)];
    entry.next_by_inside = std::exchange(head, index);
    link_outside(index);
    append_to_order(index, now);
    ++counts_.created;
    counts_.highest = std::max(counts_.highest, ++counts_.current);
    if (is_due_for_remapping(entry, now)) remap(index, now);
}

bool ConnectionTable::is_due_for_remapping(const Entry& entry, Ticks now) const {
    if (properties_.remap_every != 0 && entry.forwarded % properties_.remap_every == 0) return true;
    return properties_.remap_after_ms != 0 && milliseconds(now) - entry.mapped_at_ms >= properties_.remap_after_ms;
}

// Keeps the outside endpoint if no other one is free.
void ConnectionTable::remap(Index index, Ticks now) {
    Entry& entry = entries_[index];
    const auto outside = choose_outside(entry.inside(), entry.remote());
    if (!outside) return;
    unlink_outside(index);
    entry.outside_address = outside->address;
    entry.outside_port = outside->port;
    entry.mapped_at_ms = milliseconds(now);
    link_outside(index);
    ++counts_.remapped;
}

void ConnectionTable::remove(Index index) {
    Entry& entry = entries_[index];
    Index* at = &by_inside_[bucket(entry.inside(), entry.remote())];
    while (*at != index) at = &entries_[*at].next_by_inside;
    *at = entry.next_by_inside;
    unlink_outside(index);
    take_from_order(index);
    entry.next_by_inside = std::exchange(first_free_, index);
    --counts_.current;
}

void ConnectionTable::remove_expired(Index index) {
    remove(index);
    ++counts_.expired;
}

void ConnectionTable::expire(Ticks now, std::uint32_t most) {
    for (std::uint32_t i = 0; i < most; ++i) {
        const Index index = unused_for_longest();
        if (index == kNone || !has_expired(entries_[index], now)) return;
        remove_expired(index);
    }
}

void ConnectionTable::clear() {
    counts_.deleted += std::exchange(counts_.current, 0);
    std::ranges::fill(by_inside_, kNone);
    std::ranges::fill(by_outside_, kNone);
    by_use_ = {};
    first_free_ = kNone;
    never_used_ = 0;
    deletion_ = {};
}

void ConnectionTable::begin_deletion(Ticks now) { deletion_ = {.since = now, .wanted = counts_.current, .done = 0}; }

bool ConnectionTable::continue_deletion(Ticks now) {
    if (properties_.deletion_cps == 0) clear();
    while (deletion_.done < deletion_.wanted && counts_.current != 0) {
        if (deletion_.since + due_after(deletion_.done + 1, clock_hz_, properties_.deletion_cps) > now) return true;
        remove(unused_for_longest());
        ++counts_.deleted;
        ++deletion_.done;
    }
    deletion_ = {};
    return false;
}

void ConnectionTable::clear_counts() { counts_ = {.current = counts_.current, .highest = counts_.current}; }

std::size_t ConnectionTable::bucket(const InsideEndpoint& inside, const Endpoint& remote) const {
    return hash_of(hash_of(0, inside), remote) & (by_inside_.size() - 1);
}

std::size_t ConnectionTable::bucket(const Endpoint& outside, const Endpoint& remote) const {
    return hash_of(hash_of(0, outside), remote) & (by_outside_.size() - 1);
}

ConnectionTable::Index ConnectionTable::find(const InsideEndpoint& inside, const Endpoint& remote) const {
    Index index = by_inside_[bucket(inside, remote)];
    while (index != kNone && !(entries_[index].inside() == inside && entries_[index].remote() == remote))
        index = entries_[index].next_by_inside;
    return index;
}

ConnectionTable::Index ConnectionTable::find(const Endpoint& outside, const Endpoint& remote) const {
    Index index = by_outside_[bucket(outside, remote)];
    while (index != kNone && !(entries_[index].outside() == outside && entries_[index].remote() == remote))
        index = entries_[index].next_by_outside;
    return index;
}

ConnectionTable::Index ConnectionTable::unused_for_longest() const {
    const Index unanswered = by_use_[0].oldest, answered = by_use_[1].oldest;
    if (unanswered == kNone || answered == kNone) return unanswered == kNone ? answered : unanswered;
    return entries_[unanswered].last_use < entries_[answered].last_use ? unanswered : answered;
}

std::uint32_t ConnectionTable::milliseconds(Ticks now) const {
    return static_cast<std::uint32_t>(now / (clock_hz_ / 1000));
}

// No two uses have the same time, so that their order is that of the frames.
void ConnectionTable::append_to_order(Index index, Ticks now) {
    last_use_ = std::max(now, last_use_ + 1);
    Entry& entry = entries_[index];
    UseOrder& order = order_of(entry);
    entry.last_use = last_use_;
    entry.older = std::exchange(order.newest, index);
    entry.newer = kNone;
    (entry.older == kNone ? order.oldest : entries_[entry.older].newer) = index;
}

void ConnectionTable::take_from_order(Index index) {
    const Entry& entry = entries_[index];
    UseOrder& order = order_of(entry);
    (entry.older == kNone ? order.oldest : entries_[entry.older].newer) = entry.newer;
    (entry.newer == kNone ? order.newest : entries_[entry.newer].older) = entry.older;
}

void ConnectionTable::link_outside(Index index) {
    Entry& entry = entries_[index];
    Index& head = by_outside_[bucket(entry.outside(), entry.remote())];
    entry.next_by_outside = std::exchange(head, index);
}

void ConnectionTable::unlink_outside(Index index) {
    const Entry& entry = entries_[index];
    Index* at = &by_outside_[bucket(entry.outside(), entry.remote())];
    while (*at != index) at = &entries_[*at].next_by_outside;
    *at = entry.next_by_outside;
}

}  // namespace dutperf
