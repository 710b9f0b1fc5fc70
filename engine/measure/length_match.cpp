// SPDX-License-Identifier: Apache-2.0
#include "measure/length_match.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <numeric>
#include <unordered_map>

namespace dutperf {

namespace {

constexpr std::size_t kLengths = std::size_t{std::numeric_limits<std::uint16_t>::max()} + 1;

// Arrivals that hypotheses leave out, as lists that share their beginnings.
class LeftOut {
public:
    static constexpr std::uint32_t kNothing = ~std::uint32_t{0};

    // The list with another arrival.
    std::uint32_t with(std::uint32_t list, std::uint32_t arrival) {
        keep(list);
        if (free_ == kNothing) {
            entries_.push_back({arrival, list, 1});
            return static_cast<std::uint32_t>(entries_.size() - 1);
        }
        const std::uint32_t made = free_;
        free_ = entries_[made].before;
        entries_[made] = {arrival, list, 1};
        return made;
    }
    void keep(std::uint32_t list) {
        if (list != kNothing) ++entries_[list].users;
    }
    void drop(std::uint32_t list) {
        while (list != kNothing && --entries_[list].users == 0) {
            const std::uint32_t before = entries_[list].before;
            entries_[list].before = free_;
            free_ = list;
            list = before;
        }
    }
    [[nodiscard]] std::vector<std::uint32_t> arrivals(std::uint32_t list) const {
        std::vector<std::uint32_t> all;
        for (; list != kNothing; list = entries_[list].before) all.push_back(entries_[list].arrival);
        std::ranges::reverse(all);
        return all;
    }

private:
    struct Entry {
        std::uint32_t arrival, before, users;
    };
    std::vector<Entry> entries_;
    std::uint32_t free_ = kNothing;  // entries that nobody uses, linked by `before`
};

// `next`: the first frame that a later arrival may be; `left_out`: how many arrivals are none so far.
struct Hypothesis {
    std::uint64_t next = 0;
    std::uint32_t left_out = 0, list = LeftOut::kNothing;
};

class Search {
public:
    Search(const LengthCycle& cycle, std::uint64_t sent, const LengthArrivals& arrived)
        : cycle_(cycle), sent_(sent), arrived_(arrived) {}

    // The arrivals that the best hypothesis leaves out.
    std::vector<std::uint32_t> run() {
        hypotheses_[0] = {};
        count_ = 1;
        for (std::uint32_t j = 0; j < arrived_.lengths.size(); ++j) step(j);
        return lists_.arrivals(hypotheses_[0].list);
    }

private:
    // Each hypothesis goes on with the arrival as the next frame of its length, and without it. In this order what they
    // leave out never decreases.
    void step(std::uint32_t j) {
        const std::uint64_t end = std::min<std::uint64_t>(sent_, arrived_.sent[j]);
        made_count_ = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            const Hypothesis& one = hypotheses_[i];
            const std::uint64_t frame = cycle_.next(one.next, arrived_.lengths[j]);
            if (frame < end) add({frame + 1, one.left_out, one.list}, LeftOut::kNothing);
            add({one.next, one.left_out + 1, one.list}, j);
        }
        for (std::size_t i = 0; i < count_; ++i) lists_.drop(hypotheses_[i].list);
        std::copy_n(made_.begin(), made_count_, hypotheses_.begin());
        count_ = made_count_;
    }

    // Only if it may do better than those that leave out no more. `arrival`: what it leaves out now, or kNothing.
    void add(Hypothesis one, std::uint32_t arrival) {
        if (made_count_ != 0) {
            Hypothesis& last = made_[made_count_ - 1];
            if (last.next <= one.next || (has_no_room(one) && !drop_first_far_ahead())) return;
            if (last.left_out == one.left_out) {
                lists_.drop(last.list);
                --made_count_;
            }
        }
        if (arrival == LeftOut::kNothing)
            lists_.keep(one.list);
        else
            one.list = lists_.with(one.list, arrival);
        made_[made_count_++] = one;
    }

    [[nodiscard]] bool has_no_room(const Hypothesis& one) const {
        return one.left_out - made_[0].left_out >= kHypotheses;
    }
    // Drops the first hypothesis if its next frame is so far ahead that it rather took one frame for another.
    bool drop_first_far_ahead() {
        if (made_count_ < 2) return false;
        const std::uint64_t ahead = made_[0].next - made_[1].next, more = made_[1].left_out - made_[0].left_out;
        if (ahead <= kFarAhead * more) return false;
        lists_.drop(made_[0].list);
        std::copy_n(made_.begin() + 1, --made_count_, made_.begin());
        return true;
    }

    // Frames that a hypothesis may lose more than another for each arrival that it leaves out less.
    static constexpr std::uint64_t kFarAhead = std::uint64_t{1} << 14U;

    const LengthCycle& cycle_;
    std::uint64_t sent_;
    LengthArrivals arrived_;
    LeftOut lists_;
    std::array<Hypothesis, kHypotheses> hypotheses_{};
    std::array<Hypothesis, kHypotheses + 1> made_{};
    std::size_t count_ = 0, made_count_ = 0;
};

// Whether all arrivals are frames in their order: nothing but losses, or nothing at all.
bool all_in_order(const LengthCycle& cycle, std::uint64_t sent, const LengthArrivals& arrived) {
    std::uint64_t next = 0;
    for (std::size_t j = 0; j < arrived.lengths.size(); ++j) {
        const std::uint64_t frame = cycle.next(next, arrived.lengths[j]);
        if (frame >= std::min<std::uint64_t>(sent, arrived.sent[j])) return false;
        next = frame + 1;
    }
    return true;
}

// Pairs frames that are missing in their order with arrivals that are out of order, by length and within a distance.
class Pairing {
public:
    void miss(std::uint64_t frame, std::uint16_t length) {
        auto& [frames, arrivals] = waiting_[length];
        drop_before(arrivals, frame, [](const Arrival& one) { return one.place; });
        if (!arrivals.empty() && frame < arrivals.front().sent) {
            arrivals.pop_front();
            ++pairs_;
        } else {
            frames.push_back(frame);
        }
    }
    // `place`: the frame that was next in order when it came.
    void leave_out(std::uint64_t place, std::uint16_t length, std::uint64_t sent) {
        auto& [frames, arrivals] = waiting_[length];
        drop_before(frames, place, [](std::uint64_t frame) { return frame; });
        if (!frames.empty()) {
            frames.pop_front();
            ++pairs_;
        } else {
            arrivals.push_back({place, sent});
        }
    }
    [[nodiscard]] std::uint64_t pairs() const { return pairs_; }

private:
    struct Arrival {
        std::uint64_t place, sent;
    };
    struct Waiting {
        std::deque<std::uint64_t> frames;
        std::deque<Arrival> arrivals;
    };

    template <class Queue, class Place>
    static void drop_before(Queue& queue, std::uint64_t now, Place place) {
        while (!queue.empty() && place(queue.front()) + kReorderedWithin < now) queue.pop_front();
    }

    std::unordered_map<std::uint16_t, Waiting> waiting_;
    std::uint64_t pairs_ = 0;
};

std::uint64_t pairs_among(const LengthCycle& cycle, std::uint64_t sent, const LengthArrivals& arrived,
                          const std::vector<std::uint32_t>& left_out) {
    Pairing pairing;
    std::uint64_t next = 0;
    auto out = left_out.begin();
    const auto miss_until = [&](std::uint64_t end) {
        for (; next < end; ++next) pairing.miss(next, cycle.of(next));
    };
    for (std::uint32_t j = 0; j < arrived.lengths.size(); ++j) {
        if (out != left_out.end() && *out == j) {
            pairing.leave_out(next, arrived.lengths[j], arrived.sent[j]);
            ++out;
            continue;
        }
        miss_until(cycle.next(next, arrived.lengths[j]));
        ++next;
    }
    miss_until(sent);
    return pairing.pairs();
}

}  // namespace

LengthCycle::LengthCycle(std::vector<std::uint16_t> lengths)
    : lengths_(std::move(lengths)), places_(lengths_.size()), begins_(kLengths + 1) {
    for (const std::uint16_t length : lengths_) ++begins_[std::size_t{length} + 1];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    std::vector<std::uint32_t> next(begins_.begin(), begins_.end() - 1);
    for (std::uint32_t place = 0; place < lengths_.size(); ++place) places_[next[lengths_[place]]++] = place;
}

std::uint64_t LengthCycle::next(std::uint64_t from, std::uint16_t length) const {
    const auto first = places_.begin() + begins_[length], last = places_.begin() + begins_[std::size_t{length} + 1];
    if (first == last) return kNone;
    const auto place = static_cast<std::uint32_t>(from % size());
    if (lengths_[place] == length) return from;
    const std::uint64_t round = from - place;
    const auto found = std::lower_bound(first, last, place);
    return found != last ? round + *found : round + size() + *first;
}

std::vector<std::uint64_t> LengthCycle::histogram(std::uint64_t frames) const {
    std::vector<std::uint64_t> counts(kLengths);
    for (std::uint64_t place = 0; place < size(); ++place)
        counts[lengths_[place]] += frames / size() + (place < frames % size() ? 1 : 0);
    return counts;
}

LengthMatch match_lengths(const LengthCycle& cycle, std::uint64_t sent, const LengthArrivals& arrived) {
    LengthMatch match{.in_order = arrived.lengths.size()};
    if (arrived.lengths.empty()) return match;
    if (cycle.size() == 0) return {.extra = arrived.lengths.size()};
    if (all_in_order(cycle, sent, arrived)) return match;
    const std::vector<std::uint32_t> left_out = Search(cycle, sent, arrived).run();
    match.left_out = static_cast<std::uint32_t>(left_out.size());
    match.in_order -= left_out.size();
    match.reordered = pairs_among(cycle, sent, arrived, left_out);
    match.extra = left_out.size() - match.reordered;
    return match;
}

int fitting_change(const LengthCycle& cycle, std::uint64_t sent, std::span<const std::uint16_t> arrived,
                   std::uint64_t matched) {
    constexpr int kLargest = 256;
    if (cycle.size() == 0) return 0;
    const std::vector<std::uint64_t> of_sent = cycle.histogram(sent);
    std::vector<std::uint64_t> of_arrived(kLengths);
    for (const std::uint16_t length : arrived) ++of_arrived[length];
    int best = 0;
    std::uint64_t most = std::max<std::uint64_t>(matched, arrived.size() / 2);
    for (int change = -kLargest; change <= kLargest; ++change) {
        std::uint64_t common = 0;
        for (int length = std::max(0, -change); length < static_cast<int>(kLengths) - std::max(0, change); ++length) {
            const int changed = length + change;
            common +=
                std::min(of_sent[static_cast<std::size_t>(length)], of_arrived[static_cast<std::size_t>(changed)]);
        }
        if (change == 0 || common <= most) continue;
        most = common;
        best = change;
    }
    return best;
}

}  // namespace dutperf
