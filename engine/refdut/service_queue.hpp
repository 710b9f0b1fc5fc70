// SPDX-License-Identifier: Apache-2.0
// One simulated core: it serves frames one after the other at an exact rate and drops what arrives while its queue is
// full (tail drop). A frame leaves when it has been served. Time is the caller's: any value that does not go back, so
// that the model can be tested without a clock.
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

    // `rate_fps` 0: serving takes no time. `room`: frames that may wait besides the one that is being served.
    ServiceQueue(std::uint64_t clock_hz, std::uint64_t rate_fps, std::uint32_t room)
        : clock_hz_(clock_hz), rate_fps_(rate_fps), room_(room) {}

    [[nodiscard]] std::size_t size() const { return items_.size(); }

    // False where there is no room. What is due by `now` has to be popped before.
    bool push(Ticks now, Item item) {
        if (items_.size() > room_) return false;
        if (items_.empty()) {
            busy_since_ = std::max(now, paused_until_);
            served_ = 0;
        }
        items_.push_back(std::move(item));
        return true;
    }

    // When the frame at the head leaves.
    [[nodiscard]] std::optional<Ticks> next() const {
        if (items_.empty()) return std::nullopt;
        return busy_since_ + (rate_fps_ == 0 ? 0 : due_after(served_ + 1, clock_hz_, rate_fps_));
    }

    // The frame at the head.
    Served pop() {
        Served served{std::move(items_.front()), *next()};
        items_.pop_front();
        ++served_;
        return served;
    }

    // Nobody is served from `from` to `until`; the one that is being served takes that much longer. What is due by
    // `from` has to be popped before.
    void pause(Ticks from, Ticks until) {
        const Ticks begin = std::max(from, paused_until_);
        if (until <= begin) return;
        paused_until_ = until;
        if (!items_.empty()) busy_since_ += until - begin;
    }

private:
    std::uint64_t clock_hz_, rate_fps_;
    std::uint32_t room_;
    std::deque<Item> items_;
    Ticks busy_since_ = 0, paused_until_ = 0;
    std::uint64_t served_ = 0;  // since the core became busy
};

}  // namespace dutperf
