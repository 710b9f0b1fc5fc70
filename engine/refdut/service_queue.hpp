// SPDX-License-Identifier: Apache-2.0
// One simulated core: it serves frames one after the other at an exact rate and drops frames that arrive while its
// queue is full (tail drop). A frame leaves when it has been served. The caller passes the time, which must not
// decrease, so the model can be tested without a clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "pace/schedule.hpp"

namespace dutperf {

template <class Item>
class ServiceQueue {
public:
    struct Served {
        Item item;
        Ticks at;
    };

    // `rate_fps` 0: service takes no time. `room`: frames that may wait besides the one in service.
    ServiceQueue(std::uint64_t clock_hz, std::uint64_t rate_fps, std::uint32_t room)
        : clock_hz_(clock_hz), rate_fps_(rate_fps), room_(room) {}

    [[nodiscard]] std::size_t size() const { return items_.size(); }

    [[nodiscard]] bool has_room() const { return items_.size() <= room_; }

    // Returns false if there is no room. Frames due by `now` must be popped first. The item is served `longer` than
    // others.
    bool push(Ticks now, Item item, Ticks longer = 0) {
        if (!has_room()) return false;
        if (items_.empty()) {
            busy_since_ = std::max(now, paused_until_);
            served_ = 0;
        }
        items_.push_back({std::move(item), longer});
        return true;
    }

    // The time at which the head of the queue leaves.
    [[nodiscard]] std::optional<Ticks> next() const {
        if (items_.empty()) return std::nullopt;
        return busy_since_ + items_.front().longer +
               (rate_fps_ == 0 ? 0 : due_after(served_ + 1, clock_hz_, rate_fps_));
    }

    // Removes the head of the queue.
    Served pop() {
        Served served{std::move(items_.front().item), *next()};
        busy_since_ += items_.front().longer;
        items_.pop_front();
        ++served_;
        return served;
    }

    // Stops service from `from` to `until`; the frame in service takes that much longer. Frames due by `from` must be
    // popped first.
    void pause(Ticks from, Ticks until) {
        const Ticks begin = std::max(from, paused_until_);
        if (until <= begin) return;
        paused_until_ = until;
        if (!items_.empty()) busy_since_ += until - begin;
    }

private:
    struct Waiting {
        Item item;
        Ticks longer;
    };

    std::uint64_t clock_hz_, rate_fps_;
    std::uint32_t room_;
    std::deque<Waiting> items_;
    Ticks busy_since_ = 0, paused_until_ = 0;
    std::uint64_t served_ = 0;  // since the core became busy
};

}  // namespace dutperf
