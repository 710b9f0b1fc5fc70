// SPDX-License-Identifier: Apache-2.0
// The stages of the reference DUT, in this order: reset, core and queue, loss, bit errors, delay and duplication,
// reordering. Frame handles and time come from the caller, so the pipeline can run in virtual time. Its counts are the
// ground truth.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "refdut/chance.hpp"
#include "refdut/flow_cache.hpp"
#include "refdut/loss.hpp"
#include "refdut/service_queue.hpp"

namespace dutperf {

struct PipelineCounts {
    std::array<std::uint64_t, kLosses> lost{};
    std::uint64_t duplicated = 0, reordered = 0, delayed = 0, corrupted = 0;
};

// Buffers: `Frame`, a cheap handle; release(Frame); std::optional<Frame> copy(Frame); corruption(Frame, random bits).
template <class Buffers>
class Pipeline {
public:
    using Frame = typename Buffers::Frame;

    struct Departure {
        Frame frame;
        std::size_t direction;
        Ticks arrived, due;
        bool copy;  // a duplicate of a frame that has left
    };

    Pipeline(Buffers& buffers, const Properties& properties, std::uint64_t clock_hz)
        : Pipeline(buffers, {properties, properties}, clock_hz) {}
    // With properties of its own for each direction. The cores and the flow cache are those of the first.
    Pipeline(Buffers& buffers, const std::array<Properties, 2>& properties, std::uint64_t clock_hz)
        : buffers_(buffers),
          seed_(properties[0].seed),
          clock_hz_(clock_hz),
          known_flows_(properties[0].flow_cache),
          flow_miss_(ticks_of(properties[0].flow_miss_ns, clock_hz)) {
        cores_.assign(properties[0].cores,
                      ServiceQueue<Arrived>(clock_hz, properties[0].capacity_fps, properties[0].queue_frames));
        for (std::size_t direction = 0; direction < 2; ++direction)
            directions_.emplace_back(properties[direction], direction);
    }
    ~Pipeline() { discard_all(std::nullopt); }
    Pipeline(const Pipeline&) = delete;
    Pipeline& operator=(const Pipeline&) = delete;

    // Takes a frame to forward. `now` must not decrease.
    void arrive(Ticks now, Frame frame, std::size_t direction, std::uint64_t flow) {
        if (const auto loss = loss_on_arrival(now, flow)) return lose(frame, directions_[direction], *loss);
        accept(now, frame, direction, flow);
    }

    // Why a frame that arrives now would be lost: asked before anything is done for it that stays, such as a
    // connection.
    [[nodiscard]] std::optional<Loss> loss_on_arrival(Ticks now, std::uint64_t flow) {
        for (Event& event : events_) event.start_clock(now, clock_hz_);
        if (is_resetting(now)) return Loss::reset;
        serve(now);
        return core_of(flow).has_room() ? std::nullopt : std::optional(Loss::queue);
    }

    // Takes a frame that is not lost on arrival.
    void accept(Ticks now, Frame frame, std::size_t direction, std::uint64_t flow) {
        Direction& way = directions_[direction];
        const Ticks longer = flow_miss_ == 0 || known_flows_.meet(flow) ? 0 : flow_miss_;
        core_of(flow).push(now, {frame, direction, way.arrived++, now}, longer);
        ++way.held;
    }

    // Takes a frame that the DUT has made because of one that arrived at `arrived` and was served: no core serves it.
    void accept_served(Ticks now, Ticks arrived, Frame frame, std::size_t direction) {
        Direction& way = directions_[direction];
        ++way.held;
        take_from_core({frame, direction, way.arrived++, arrived}, now);
    }

    // Appends the frames that leave by `now` to `out`, in order.
    void advance(Ticks now, std::vector<Departure>& out) {
        while (Event* next = next_event(now)) {
            work(next->begin, out);
            next->started = true;
            if (next == &stall()) {
                for (auto& core : cores_) core.pause(next->begin, next->end);
            } else {
                discard_all(Loss::reset);
                ++resets_;
            }
        }
        work(now, out);
    }

    // Injects a stall: nothing is served, and arriving frames wait in the queues. Its time counts from the next frame
    // that arrives.
    void stall_for(const Disturbance& disturbance) { stall().schedule(disturbance); }
    // Injects a reset: held frames and arriving frames are lost.
    void reset_for(const Disturbance& disturbance) { reset().schedule(disturbance); }
    [[nodiscard]] bool is_resetting(Ticks now) const { return events_[1].covers(now); }
    // Resets that have begun.
    [[nodiscard]] std::uint64_t resets() const { return resets_; }

    [[nodiscard]] const PipelineCounts& counts(std::size_t direction) const { return directions_[direction].counts; }
    void clear_counts() {
        for (Direction& direction : directions_) direction.counts = {};
    }
    // Frames of a direction inside the DUT, without copies.
    [[nodiscard]] std::uint64_t held(std::size_t direction) const { return directions_[direction].held; }

private:
    struct Arrived {
        Frame frame;
        std::size_t direction;
        std::uint64_t number;
        Ticks at;
    };
    struct Delayed {
        Ticks due;
        std::uint64_t order;
        Arrived what;
        bool copy, held_back;
    };
    struct Later {
        bool operator()(const Delayed& a, const Delayed& b) const {
            return a.due != b.due ? a.due > b.due : a.order > b.order;
        }
    };
    struct Event {
        std::optional<Disturbance> pending;
        Ticks begin = 0, end = 0;
        bool started = true;

        void schedule(const Disturbance& disturbance) { pending = disturbance; }
        void start_clock(Ticks now, std::uint64_t clock_hz) {
            if (!pending) return;
            begin = now + ticks_of(pending->after_ns, clock_hz);
            end = begin + ticks_of(pending->duration_ns, clock_hz);
            started = false;
            pending.reset();
        }
        [[nodiscard]] bool covers(Ticks now) const { return begin <= now && now < end; }
    };
    struct Direction {
        Direction(const Properties& of_direction, std::size_t direction)
            : properties(of_direction),
              loss(properties.loss, {properties.seed, Purpose::loss, direction}),
              duplicate(properties.duplicate, {properties.seed, Purpose::duplicate, direction}),
              reorder(properties.reorder, {properties.seed, Purpose::reorder, direction}),
              bit_error(properties.bit_error, {properties.seed, Purpose::bit_error, direction}),
              extra_delay(properties.extra_delay, {properties.seed, Purpose::extra_delay, direction}),
              jitter(properties.seed, Purpose::jitter, direction),
              bit(properties.seed, Purpose::bit, direction) {}

        Properties properties;
        Chooser loss, duplicate, reorder, bit_error, extra_delay;
        Chance jitter, bit;
        PipelineCounts counts;
        std::uint64_t arrived = 0, served = 0, held = 0;
        std::uint64_t highest = 0;  // highest number that has left + 1
        std::optional<Delayed> held_back;
    };

    // the longest time that a frame to be reordered waits for the next one
    static constexpr std::uint64_t kLongestHoldNs = 100'000'000;

    Event& stall() { return events_[0]; }
    Event& reset() { return events_[1]; }

    ServiceQueue<Arrived>& core_of(std::uint64_t flow) { return cores_[random_bits(seed_, flow) % cores_.size()]; }

    Event* next_event(Ticks now) {
        Event* earliest = nullptr;
        for (Event& one : events_) {
            if (!one.started && one.begin <= now && (earliest == nullptr || one.begin < earliest->begin))
                earliest = &one;
        }
        return earliest;
    }

    void lose(Frame frame, Direction& way, Loss loss) {
        ++way.counts.lost[static_cast<std::size_t>(loss)];
        buffers_.release(frame);
    }

    void work(Ticks now, std::vector<Departure>& out) {
        serve(now);
        while (!delayed_.empty() && delayed_.front().due <= now) {
            std::pop_heap(delayed_.begin(), delayed_.end(), Later{});
            Delayed next = std::move(delayed_.back());
            delayed_.pop_back();
            leave(std::move(next), out);
        }
        for (Direction& way : directions_) {
            if (way.held_back && way.held_back->due + ticks_of(kLongestHoldNs, clock_hz_) <= now)
                depart(*std::exchange(way.held_back, {}), out);
        }
    }

    // Takes served frames from all cores in the order of their times.
    void serve(Ticks now) {
        while (ServiceQueue<Arrived>* core = first_to_finish(now)) {
            auto [arrived, at] = core->pop();
            take_from_core(arrived, at);
        }
    }

    ServiceQueue<Arrived>* first_to_finish(Ticks now) {
        ServiceQueue<Arrived>* first = nullptr;
        Ticks earliest = now;
        for (auto& core : cores_) {
            const auto next = core.next();
            if (!next || *next > earliest || (first != nullptr && *next == earliest)) continue;
            first = &core;
            earliest = *next;
        }
        return first;
    }

    void take_from_core(const Arrived& arrived, Ticks at) {
        Direction& way = directions_[arrived.direction];
        const std::uint64_t k = way.served++;
        const auto loss = way.loss.cause(k);
        if (loss != Chooser::Cause::none) {
            --way.held;
            return lose(arrived.frame, way, loss == Chooser::Cause::every ? Loss::every_nth : Loss::random);
        }
        if (way.bit_error(k)) {
            ++way.counts.corrupted;
            buffers_.corrupt(arrived.frame, way.bit.bits(k));
        }
        const Ticks due = at + delay(way, k);
        const auto copy = way.duplicate(k) ? buffers_.copy(arrived.frame) : std::nullopt;
        hold({.due = due,
              .order = 0,
              .what = arrived,
              .copy = false,
              .held_back = way.reorder(k) && !copy});  // a copy must not leave before its original
        if (!copy) return;
        hold({.due = due,
              .order = 0,
              .what = {*copy, arrived.direction, arrived.number, arrived.at},
              .copy = true,
              .held_back = false});
    }

    Ticks delay(Direction& way, std::uint64_t k) const {
        const Properties& properties = way.properties;
        double ns = static_cast<double>(properties.delay_ns);
        const auto jitter_ns = static_cast<double>(properties.jitter_ns);
        if (properties.jitter == Jitter::normal) ns += way.jitter.normal(k) * jitter_ns;
        if (properties.jitter == Jitter::exponential) ns += way.jitter.exponential(k) * jitter_ns;
        if (way.extra_delay(k)) {
            ++way.counts.delayed;
            ns += static_cast<double>(properties.extra_delay_ns);
        }
        return ticks_of(static_cast<std::uint64_t>(std::llround(std::max(0.0, ns))), clock_hz_);
    }

    void hold(Delayed frame) {
        frame.order = order_++;
        delayed_.push_back(std::move(frame));
        std::push_heap(delayed_.begin(), delayed_.end(), Later{});
    }

    // A frame to be reordered waits until the next one of its direction has left.
    void leave(Delayed frame, std::vector<Departure>& out) {
        Direction& way = directions_[frame.what.direction];
        if (frame.held_back && !way.held_back) {
            way.held_back = std::move(frame);
            return;
        }
        depart(frame, out);
        if (way.held_back) depart(*std::exchange(way.held_back, {}), out);
    }

    void depart(const Delayed& frame, std::vector<Departure>& out) {
        Direction& way = directions_[frame.what.direction];
        if (frame.copy) {
            ++way.counts.duplicated;
        } else {
            --way.held;
            if (frame.what.number + 1 < way.highest) ++way.counts.reordered;  // RFC 4737
        }
        way.highest = std::max(way.highest, frame.what.number + 1);
        out.push_back({frame.what.frame, frame.what.direction, frame.what.at, frame.due, frame.copy});
    }

    // Discards all frames inside; with a cause they count as losses.
    void discard_all(std::optional<Loss> cause) {
        const auto discard = [&](const Arrived& one, bool counted) {
            if (cause && counted) return lose(one.frame, directions_[one.direction], *cause);
            buffers_.release(one.frame);
        };
        for (auto& core : cores_) {
            while (core.size() != 0) discard(core.pop().item, true);
        }
        for (Direction& way : directions_) {
            if (way.held_back) delayed_.push_back(*std::exchange(way.held_back, {}));
            way.held = 0;
        }
        for (const Delayed& one : delayed_) discard(one.what, !one.copy);
        delayed_.clear();
    }

    Buffers& buffers_;
    std::uint64_t seed_;
    std::uint64_t clock_hz_;
    FlowCache known_flows_;
    Ticks flow_miss_;
    std::vector<ServiceQueue<Arrived>> cores_;
    std::vector<Direction> directions_;
    std::vector<Delayed> delayed_;  // a heap, the earliest first
    std::uint64_t order_ = 0, resets_ = 0;
    std::array<Event, 2> events_;  // stall, reset
};

}  // namespace dutperf
