// SPDX-License-Identifier: Apache-2.0
#include "refdut/answer_cache.hpp"

#include <algorithm>

namespace dutperf {

namespace {

constexpr std::uint32_t kMaxTtlS = 0x7FFF'FFFF;  // RFC 2181 8: above it, it is 0

}  // namespace

const AnswerCache::Entry* AnswerCache::find(std::string_view name, Ticks now) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return nullptr;
    const Entries::iterator entry = found->second;
    if (entry->expires_at <= now) {
        by_name_.erase(found);
        entries_.erase(entry);
        return nullptr;
    }
    entries_.splice(entries_.begin(), entries_, entry);
    return &*entry;
}

void AnswerCache::insert(std::string_view name, const AddressAnswer& answer, Ticks now) {
    if (capacity_ == 0 || answer.ttl_s == 0 || answer.ttl_s > kMaxTtlS) return;
    Entry& entry = entry_for(name);
    entry.answer = answer;
    entry.expires_at = now + answer.ttl_s * clock_hz_;
}

AnswerCache::Entry& AnswerCache::entry_for(std::string_view name) {
    if (const auto found = by_name_.find(name); found != by_name_.end()) {
        entries_.splice(entries_.begin(), entries_, found->second);
        return entries_.front();
    }
    if (entries_.size() == capacity_) return reuse_oldest(name);
    entries_.push_front({.name = std::string(name), .answer = {}, .expires_at = 0});
    by_name_.emplace(entries_.front().name, entries_.begin());
    return entries_.front();
}

// Takes the memory of the oldest entry for a new one: a full cache allocates nothing.
AnswerCache::Entry& AnswerCache::reuse_oldest(std::string_view name) {
    ++evicted_;
    auto node = by_name_.extract(entries_.back().name);
    entries_.splice(entries_.begin(), entries_, std::prev(entries_.end()));
    entries_.front().name = name;
    node.key() = entries_.front().name;
    by_name_.insert(std::move(node));
    return entries_.front();
}

void AnswerCache::clear() {
    by_name_.clear();
    entries_.clear();
}

std::uint32_t AnswerCache::remaining_ttl_s(const Entry& entry, Ticks now) const {
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (entry.expires_at - now) / clock_hz_));
}

}  // namespace dutperf
