// SPDX-License-Identifier: Apache-2.0
// When each frame is due: frame k at start + floor(k * clock_hz / rate) ticks. Integers are used, so rounding errors do
// not add up in long trials. A late frame does not shift later ones (Lencse, IJATES2 9(3), 2020): due frames are sent
// at once, up to a burst a turn. A sender is composed with its schedule at compile time: a new schedule is one more
// class that satisfies Schedule and costs the others nothing. Patterns other than a constant rate are lists of due
// times (patterns.hpp, profile.hpp, joining.hpp, recorded.hpp).
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <variant>
#include <vector>

#include "pace/joining.hpp"
#include "pace/patterns.hpp"
#include "pace/profile.hpp"
#include "pace/recorded.hpp"
#include "pace/share.hpp"

namespace dutperf {

// `start` is called first, once. `due` returns how many frames are due at a time, at most a burst, and does not move
// the schedule. `advance` moves it by the frames that were taken. `due_of` is valid for the burst that was taken last
// and for the next burst. Due times never decrease with the frame's number. Frames are counted within the sender's
// share: frame j of a share is frame share.number(j) of the stream and is due when that one is.
template <class S>
concept Schedule = requires(S schedule, const S& still, Ticks now, std::uint64_t k, std::uint32_t count) {
    schedule.start(now);
    schedule.advance(count);
    { still.due(now) } -> std::same_as<std::uint32_t>;
    { still.number() } -> std::same_as<std::uint64_t>;  // the next frame
    { still.next_due() } -> std::same_as<Ticks>;
    { still.due_of(k) } -> std::same_as<Ticks>;
    { still.finished() } -> std::same_as<bool>;
};

class ConstantRate {
public:
    // A share of a stream of `frames` frames at `rate_fps` (> 0); due() returns at most `burst`.
    ConstantRate(std::uint64_t clock_hz, std::uint64_t rate_fps, std::uint64_t frames, std::uint32_t burst,
                 Share share = {})
        : clock_hz_(clock_hz),
          rate_(rate_fps),
          share_(share),
          frames_(share.among(frames)),
          burst_(burst),
          one_(step_of(1)),
          to_last_of_burst_(step_of(burst - 1)),
          whole_burst_(step_of(burst)) {}

    void start(Ticks at) {
        start_ = at;
        next_ = after({at, 0}, {share_.first * clock_hz_ / rate_, share_.first * clock_hz_ % rate_});
        number_ = 0;
    }

    [[nodiscard]] std::uint64_t number() const { return number_; }  // the next frame
    [[nodiscard]] Ticks next_due() const { return next_.due; }
    [[nodiscard]] bool finished() const { return number_ == frames_; }
    [[nodiscard]] std::uint64_t frames() const { return frames_; }
    [[nodiscard]] std::uint64_t left() const { return frames_ - number_; }
    [[nodiscard]] Ticks due_of(std::uint64_t k) const { return start_ + due_after(share_.number(k), clock_hz_, rate_); }

    // How many frames are due at `now`, at most a burst.
    [[nodiscard]] std::uint32_t due(Ticks now) const {
        if (now < next_.due) return 0;
        const std::uint64_t left = frames_ - number_;
        if (left >= burst_ && after(next_, to_last_of_burst_).due <= now) return burst_;
        const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, burst_));
        std::uint32_t count = 0;
        for (Point at = next_; count < most && at.due <= now; at = after(at, one_)) ++count;
        return count;
    }

    // The next `count` (<= burst) frames have been taken.
    void advance(std::uint32_t count) {
        number_ += count;
        if (count == burst_) {
            next_ = after(next_, whole_burst_);
            return;
        }
        for (; count > 0; --count) next_ = after(next_, one_);
    }

private:
    struct Step {
        Ticks whole;
        std::uint64_t rest;  // in 1/rate ticks, < rate
    };
    struct Point {
        Ticks due;
        std::uint64_t rest;
    };

    [[nodiscard]] Step step_of(std::uint64_t count) const {
        const std::uint64_t frames = count * share_.stride;
        return {frames * clock_hz_ / rate_, frames * clock_hz_ % rate_};
    }

    [[nodiscard]] Point after(Point at, Step step) const {
        at.due += step.whole;
        at.rest += step.rest;
        const bool carry = at.rest >= rate_;
        return {at.due + (carry ? 1 : 0), carry ? at.rest - rate_ : at.rest};
    }

    std::uint64_t clock_hz_, rate_;
    Share share_;
    std::uint64_t frames_;
    std::uint32_t burst_;
    Step one_, to_last_of_burst_, whole_burst_;
    Ticks start_ = 0;
    Point next_{0, 0};
    std::uint64_t number_ = 0;
};

// A rate that changes once: `first` has the frames due before the change, `second` those after it. Frame j of `second`
// is due `change` + floor(j * clock_hz / rate) ticks after the start. Both have the same burst.
class ChangingRate {
public:
    ChangingRate(const ConstantRate& first, const ConstantRate& second, Ticks change, std::uint32_t burst)
        : first_(first), second_(second), change_(change), burst_(burst) {}

    void start(Ticks at) {
        first_.start(at);
        second_.start(at + change_);
    }

    [[nodiscard]] std::uint64_t number() const { return first_.number() + second_.number(); }
    [[nodiscard]] Ticks next_due() const { return first_.finished() ? second_.next_due() : first_.next_due(); }
    [[nodiscard]] bool finished() const { return first_.finished() && second_.finished(); }
    [[nodiscard]] Ticks due_of(std::uint64_t k) const {
        return k < first_.frames() ? first_.due_of(k) : second_.due_of(k - first_.frames());
    }

    [[nodiscard]] std::uint32_t due(Ticks now) const {
        const std::uint32_t of_first = first_.due(now);
        return of_first < first_.left() ? of_first : of_first + std::min(second_.due(now), burst_ - of_first);
    }

    void advance(std::uint32_t count) {
        const auto of_first = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, first_.left()));
        first_.advance(of_first);
        second_.advance(count - of_first);
    }

private:
    ConstantRate first_, second_;
    Ticks change_;
    std::uint32_t burst_;
};

// Due times from a source, listed a few at a time: for patterns whose next due time cannot be computed by a step. A
// list costs some nanoseconds a frame more than a step. It holds the burst that was taken last and at least the next
// one.
class Listed {
public:
    using Source = std::variant<PoissonTimes, BurstTimes, ProfileTimes, JoiningTimes, RecordedTimes>;

    // A share of a stream of `frames` frames. `source` gives the times of the whole stream; due() returns at most
    // `burst`.
    Listed(const Source& source, std::uint64_t frames, std::uint32_t burst, Share share = {})
        : source_(source),
          share_(share),
          frames_(share.among(frames)),
          burst_(burst),
          mask_(std::bit_ceil(2 * burst + kFewTimes) - 1),
          due_(mask_ + 1) {}

    void start(Ticks at) {
        start_ = at;
        list();
    }

    [[nodiscard]] std::uint64_t number() const { return number_; }
    [[nodiscard]] Ticks next_due() const { return due_of(number_); }
    [[nodiscard]] bool finished() const { return number_ == frames_; }
    [[nodiscard]] Ticks due_of(std::uint64_t k) const { return due_[k & mask_]; }

    [[nodiscard]] std::uint32_t due(Ticks now) const {
        const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(frames_ - number_, burst_));
        if (most == 0 || now < next_due()) return 0;
        if (due_of(number_ + most - 1) <= now) return most;
        std::uint32_t count = 1;
        while (due_of(number_ + count) <= now) ++count;
        return count;
    }

    void advance(std::uint32_t count) {
        number_ += count;
        list();
    }

private:
    void list() {
        for (const std::uint64_t wanted = std::min(frames_, number_ + burst_); listed_ < wanted;) {
            const std::uint32_t more = std::visit([this](auto& source) { return source.next(few_); }, source_);
            for (std::uint32_t i = 0; i < more; ++i, ++given_) {
                if (given_ == share_.number(listed_)) due_[listed_++ & mask_] = start_ + few_[i];
            }
        }
    }

    Source source_;
    Share share_;
    std::uint64_t frames_;
    std::uint32_t burst_;
    std::uint64_t mask_;
    std::vector<Ticks> due_;  // frame k is at k & mask_
    FewTimes few_{};
    Ticks start_ = 0;
    std::uint64_t number_ = 0, listed_ = 0;
    std::uint64_t given_ = 0;  // times that the source gave
};

static_assert(Schedule<ConstantRate> && Schedule<ChangingRate> && Schedule<Listed>);
using AnySchedule = std::variant<ConstantRate, ChangingRate, Listed>;

}  // namespace dutperf
