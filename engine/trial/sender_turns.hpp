// SPDX-License-Identifier: Apache-2.0
// The turns of the senders of one loop. A few senders have one in each turn of the loop. Of more, each has one when its
// next frame is due: 1,000 would not fit into the core's caches, and a loop that looks at all of them is late.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "trial/transmitter.hpp"

namespace dutperf {

class SenderTurns {
public:
    static constexpr std::size_t kFew = 16;  // also the most that have their turn between two of the receivers

    explicit SenderTurns(const std::vector<Sender*>& senders) {
        // one that only answers ARP and NDP does not count
        const bool few = std::ranges::count_if(senders, is_sending) <= std::ptrdiff_t{kFew};
        std::vector<const rte_ring*> served;
        for (Sender* sender : senders) {
            const bool serves = std::ranges::find(served, sender->control()) == served.end();
            if (few || serves || !is_sending(sender)) {
                each_.push_back(sender);
                served.push_back(sender->control());
            } else {
                waiting_.push_back({.at = 0, .sender = sender});
            }
        }
    }

    // Returns the time at the end if a sender read the clock, otherwise 0.
    Ticks turn(Ticks now) {
        Ticks known = 0;
        for (Sender* sender : each_) known = std::max(known, sender->turn(now));
        if (!waiting_.empty()) [[unlikely]]
            known = std::max(known, turn_waiting(now));
        return known;
    }

    // All senders have a turn soon. Called again until none sends any more.
    void wake() {
        for (Waiting& one : waiting_) one.at = 0;
    }

    // How many still send.
    [[nodiscard]] std::size_t sending() const {
        return waiting_.size() + static_cast<std::size_t>(std::ranges::count_if(each_, is_sending));
    }

private:
    static bool is_sending(const Sender* sender) { return !sender->done(); }

    struct Waiting {
        Ticks at;
        Sender* sender;
    };

    // One that waits for room in its port has its next turn after all that are due before.
    Ticks turn_waiting(Ticks now) {
        Ticks known = 0;
        for (std::size_t turns = 0; turns < kFew && !waiting_.empty() && waiting_.front().at <= now; ++turns) {
            std::ranges::pop_heap(waiting_, std::greater{}, &Waiting::at);
            Waiting& one = waiting_.back();
            known = std::max(known, one.sender->turn(now));
            if (one.sender->done()) {
                waiting_.pop_back();
                continue;
            }
            one.at = std::max(one.sender->next_turn(), now + 1);
            std::ranges::push_heap(waiting_, std::greater{}, &Waiting::at);
        }
        return known;
    }

    std::vector<Sender*> each_;     // among them one of each port, which answers ARP and NDP
    std::vector<Waiting> waiting_;  // a heap, the next one first
};

}  // namespace dutperf
