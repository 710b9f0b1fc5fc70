// SPDX-License-Identifier: Apache-2.0
// What a receiver notes of arrivals without a tag, ten bytes each: the length, and how many frames may have been sent
// by then. After the trial they are matched with what was sent (measure/length_match.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "frame/packet_length.hpp"
#include "measure/length_match.hpp"
#include "platform/ticks.hpp"

namespace dutperf {

class LengthLog {
public:
    // Frames of a trial that can be matched.
    static constexpr std::uint64_t kMostFrames = 1U << 24U;

    struct Watched {
        const std::atomic<std::uint64_t>* sent;  // by the sender
        std::uint64_t in_hand;                   // frames that may have left before they are counted there
        bool frames_for_neighbours;              // the list has such: otherwise the DUT made them
        bool only_untagged;                      // no frame of the list has a tag
    };

    // A quarter more arrivals than `frames` are noted, and some.
    LengthLog(const Watched& watched, std::uint64_t frames)
        : watched_(watched), room_(frames + frames / 4 + kSome), lengths_(room_), sent_(room_) {}

    [[nodiscard]] bool only_untagged() const { return watched_.only_untagged; }
    // What arrives earlier is no frame of the list: none had left. To be called before the first arrival.
    void start(Ticks earliest) { earliest_ = earliest; }
    // Whether a frame without a tag may be one of the list's.
    [[nodiscard]] bool may_be(const std::uint8_t* frame, std::size_t length, Ticks arrival) const {
        return arrival >= earliest_ && (watched_.frames_for_neighbours || !is_for_neighbours(frame, length));
    }
    void note(const std::uint8_t* frame, std::size_t length) {
        if (count_ == room_) [[unlikely]] {
            ++not_noted_;
            return;
        }
        lengths_[count_] = packet_length(frame, length).bytes;
        sent_[count_++] = watched_.sent->load(std::memory_order_relaxed) + watched_.in_hand;
    }

    [[nodiscard]] LengthArrivals arrivals() const { return {{lengths_.data(), count_}, {sent_.data(), count_}}; }
    [[nodiscard]] std::uint64_t not_noted() const { return not_noted_; }
    [[nodiscard]] std::uint64_t count() const { return count_ + not_noted_; }

    // The sent frames of the whole list become those without a tag. To be called after the trial.
    template <class UntaggedAmong>
    void count_untagged_only(UntaggedAmong untagged_among) {
        for (std::size_t j = 0; j < count_; ++j) sent_[j] = untagged_among(sent_[j]);
    }

private:
    static constexpr std::uint64_t kSome = 65536;

    Watched watched_;
    Ticks earliest_ = 0;
    std::size_t room_, count_ = 0;
    std::uint64_t not_noted_ = 0;
    std::vector<std::uint16_t> lengths_;
    std::vector<std::uint64_t> sent_;  // of the whole list: a long trial sends more than 32 bits count
};

}  // namespace dutperf
