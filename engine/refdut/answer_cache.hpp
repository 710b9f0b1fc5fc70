// SPDX-License-Identifier: Apache-2.0
// The cache of the reference DUT's DNS64: answers by name, exactly as many as its capacity. The answer that was neither
// cached nor asked for for longest is evicted (LRU). An answer whose TTL is over counts until it is asked for or
// evicted. The caller passes the time, so it can be tested without a clock.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frame/address.hpp"
#include "platform/ticks.hpp"

namespace dutperf {

struct AddressAnswer {
    std::vector<Ipv6> addresses;
    bool is_synthesised = false;
    std::uint32_t ttl_s = 0;
};

class AnswerCache {
public:
    struct Entry {
        std::string name;
        AddressAnswer answer;
        Ticks expires_at = 0;
    };

    // `capacity`: names; 0: nothing is cached.
    AnswerCache(std::size_t capacity, std::uint64_t clock_hz) : capacity_(capacity), clock_hz_(clock_hz) {
        by_name_.reserve(capacity);
    }

    // `name` in lower case. nullptr: it is not cached. Valid until the next call.
    const Entry* find(std::string_view name, Ticks now);
    // An answer with a TTL of 0 is not cached (RFC 1035 3.2.1).
    void insert(std::string_view name, const AddressAnswer& answer, Ticks now);
    void clear();

    // The whole seconds until it expires, at least 1.
    [[nodiscard]] std::uint32_t remaining_ttl_s(const Entry& entry, Ticks now) const;
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] std::uint64_t evicted() const { return evicted_; }
    void clear_counts() { evicted_ = 0; }

private:
    using Entries = std::list<Entry>;  // the last used one first

    Entry& entry_for(std::string_view name);
    Entry& reuse_oldest(std::string_view name);

    std::size_t capacity_;
    std::uint64_t clock_hz_;
    Entries entries_;
    std::unordered_map<std::string_view, Entries::iterator> by_name_;  // the keys are the entries' names
    std::uint64_t evicted_ = 0;
};

}  // namespace dutperf
