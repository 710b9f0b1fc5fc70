// SPDX-License-Identifier: Apache-2.0
#include "refdut/pending_queries.hpp"

namespace dutperf {

namespace {

// The place of a query says its port and the upper bits of its ID; the lower ones are a serial number.
constexpr std::uint16_t kFirstPort = 49152;  // RFC 6335 6: dynamic ports
constexpr unsigned kPortBits = 14, kSerialBits = 10;
constexpr std::uint32_t kPorts = 1U << kPortBits, kSerialMask = (1U << kSerialBits) - 1;
static_assert(kFirstPort + kPorts == 65536);
static_assert(PendingQueries::kMost >> kPortBits == 1U << (16 - kSerialBits));

}  // namespace

PendingQuery* PendingQueries::add(const ClientQuery& from) {
    if (queries_.size() < most_) {
        const auto place = static_cast<std::uint32_t>(queries_.size());
        PendingQuery& made = queries_.emplace_back();
        made.port = static_cast<std::uint16_t>(kFirstPort + place % kPorts);
        made.id = static_cast<std::uint16_t>((place >> kPortBits) << kSerialBits);
        free_.push_back(place);
    }
    if (free_.empty()) return nullptr;
    PendingQuery& pending = queries_[free_.front()];
    free_.pop_front();
    pending.is_free = false;
    pending.from = from;
    pending.from.name = {};
    pending.name.assign(from.name.begin(), from.name.end());
    pending.negative_ttl_s = 0;
    return &pending;
}

void PendingQueries::ask(PendingQuery& pending, std::uint16_t type) {
    pending.type = type;
    pending.tries = 0;
    pending.awaited = 0;
    pending.id = static_cast<std::uint16_t>((pending.id & ~kSerialMask) | ((pending.id + 1U) & kSerialMask));
}

PendingQuery* PendingQueries::find(std::uint16_t port, std::uint16_t id) {
    if (port < kFirstPort) return nullptr;
    const std::size_t place = (std::size_t{id} >> kSerialBits) << kPortBits | (port - kFirstPort);
    if (place >= queries_.size()) return nullptr;
    PendingQuery& pending = queries_[place];
    return !pending.is_free && pending.id == id ? &pending : nullptr;
}

void PendingQueries::remove(PendingQuery& pending) {
    pending.is_free = true;
    pending.awaited = 0;
    free_.push_back(static_cast<std::uint32_t>((std::size_t{pending.id} >> kSerialBits) << kPortBits |
                                               (pending.port - kFirstPort)));
}

void PendingQueries::clear() {
    for (PendingQuery& one : queries_) {
        if (!one.is_free) remove(one);
    }
    deadlines_.clear();
}

PendingQuery* PendingQueries::next_overdue(Ticks now) {
    while (!deadlines_.empty() && deadlines_.front().at <= now) {
        const Deadline due = deadlines_.front();
        deadlines_.pop_front();
        if (due.pending->awaited == due.awaited) return due.pending;
    }
    return nullptr;
}

}  // namespace dutperf
