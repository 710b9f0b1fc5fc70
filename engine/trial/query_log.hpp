// SPDX-License-Identifier: Apache-2.0
// The send times of a trial's last queries, by their numbers: the sender notes them, the receiver of the answers looks
// them up.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "frame/tag.hpp"
#include "platform/ticks.hpp"

namespace dutperf {

class QueryLog {
public:
    static constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 26U;  // 512 MiB

    // Holds at least the last `entries` queries.
    explicit QueryLog(std::uint64_t entries)
        : entries_(std::bit_ceil(std::max(entries, kFewestEntries))),
          rounds_at_(static_cast<unsigned>(std::countr_zero(entries_.size()))) {
        for (auto& entry : entries_) entry.store(kNever, std::memory_order_relaxed);
    }

    // `stamp`: 0 if none is wanted.
    void note(std::uint64_t k, Ticks stamp) {
        entry(k).store((k >> rounds_at_) << kStampBits | (stamp & kMask40), std::memory_order_release);
    }
    // Nothing for a query that was not sent, or long ago.
    [[nodiscard]] std::optional<Ticks> stamp_of(std::uint64_t k) const {
        const std::uint64_t noted = entries_[k & (entries_.size() - 1)].load(std::memory_order_acquire);
        return noted >> kStampBits == k >> rounds_at_ ? std::optional(noted & kMask40) : std::nullopt;
    }

private:
    // A trial has at most 2^30 queries, so that the 24 bits of the round never are all ones.
    static constexpr std::uint64_t kFewestEntries = 1024, kNever = ~std::uint64_t{0};
    static constexpr unsigned kStampBits = 40;

    std::atomic<std::uint64_t>& entry(std::uint64_t k) { return entries_[k & (entries_.size() - 1)]; }

    std::vector<std::atomic<std::uint64_t>> entries_;
    unsigned rounds_at_;
};

}  // namespace dutperf
