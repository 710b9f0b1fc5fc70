// SPDX-License-Identifier: Apache-2.0
// RX statistics: a receiver's counts of the test frames of one path. They find duplicates, reordered and late frames,
// and record delays. If the port has several queues, several receivers share a path, and their statistics are merged
// after the trial (merge.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "flow/frame_groups.hpp"
#include "flow/frame_list.hpp"
#include "frame/arrival.hpp"
#include "frame/tag.hpp"
#include "measure/arrival_gaps.hpp"
#include "measure/delay_changes.hpp"
#include "measure/group_delays.hpp"
#include "measure/histogram.hpp"
#include "measure/part_delays.hpp"
#include "measure/sequence_window.hpp"
#include "measure/tester_time.hpp"
#include "trial/arriving.hpp"
#include "trial/delay_file.hpp"
#include "trial/length_log.hpp"
#include "trial/others.hpp"
#include "trial/tracked_bits.hpp"
#include "trial/trial.hpp"

namespace dutperf {

// Counts of arrived frames, except the number of received ones.
struct ArrivalCounts {
    std::uint64_t background = 0, duplicates = 0, out_of_order = 0, stale = 0, corrupted = 0, stamped = 0, late = 0,
                  early = 0, unfinished = 0, zero_checksums = 0, not_decapsulated = 0, not_encapsulated = 0;
    std::array<std::uint64_t, kOtherKinds> other{};
    CorruptedBy corrupted_by{};  // but for numbers that no frame has
};

// Only the receiver's core writes them; other threads may read `received` for progress.
struct ReceiverCounts : ArrivalCounts {
    std::atomic<std::uint64_t> received{0};
};

// The numbers of the first frames that never came.
struct LostNumbers {
    std::size_t most;
    std::vector<std::uint64_t> numbers = {};
    std::uint64_t left_out = 0;

    void add(std::uint64_t number, std::uint64_t count) {
        for (; count > 0 && numbers.size() < most; --count) numbers.push_back(number++);
        left_out += count;
    }
};

struct Expected {
    TrialMark trial;
    Direction direction;           // none: no frame is expected
    std::uint64_t frames;          // sequence numbers are below this
    MissingFrames::Bounds bounds;  // of the parts of the sending time, as sequence numbers
    Stamping stamping;
    Ticks frame_timeout;  // a stamped frame that takes longer is late; 0: no timeout
    DelayRing* delays;    // nullptr: delays are not written
    bool shared = false;  // with other receivers, whose statistics are merged
    // TSC difference between cores; a frame that arrives before its stamp by more than this is early
    Ticks max_tsc_skew = 0;
    Ticks long_gap = std::numeric_limits<Ticks>::max();  // between two arrivals, above which its time is added up
    // Of the parts of the sending time with delays of their own, as sequence numbers; empty: none.
    std::vector<std::uint64_t> ends_of_parts = {};
    // nullptr: no statistics by group
    const FrameGroups* groups = nullptr;
    // Kinds of described frames, a bit each, whose lengths and checksums may be wrong.
    std::uint32_t unchecked_kinds = 0;
    // The list of a replay, of whose frames the same is true one by one; nullptr: there is none.
    const FrameList* list = nullptr;
    // Places of tags behind no known header, in bytes before the end of the packet.
    std::vector<std::uint16_t> tags_from_end = {};
    // Where the numbers of frames that never came are kept; nullptr: nowhere.
    LostNumbers* lost = nullptr;
    // Called with the first number and the count of frames that never came.
    std::function<void(std::uint64_t, std::uint64_t)> on_missing = {};
    // Where arrivals without a tag are noted that may be frames of the trial; nullptr: there are no such frames.
    LengthLog* untagged = nullptr;
    Arriving arriving = {};
    // By which frames are counted; empty: none.
    std::vector<TrackedBits::Range> tracked = {};
    // Delays are by others' stamps, and recorded after the trial.
    bool others_stamp = false;
};

class RxStatistics {
public:
    RxStatistics(const RxStatistics&) = delete;
    RxStatistics& operator=(const RxStatistics&) = delete;
    explicit RxStatistics(const Expected& expected)
        : expected_(expected),
          window_(make_window(expected)),
          arrival_gaps_(expected.shared ? kArrivalGaps : 1, expected.long_gap) {
        // alone, the counts say how many are late, but not which
        if ((expected.shared || expected.groups != nullptr) && expected.frame_timeout != 0)
            in_time_.emplace(make_window(expected));
        if (expected.stamping != Stamping::none) delay_.emplace();
        // not if shared: another receiver may have taken the frame before
        if (expected.stamping == Stamping::every && !expected.shared) delay_changes_.emplace();
        if (expected.groups != nullptr) count_groups();
        if (expected.lost != nullptr || expected.on_missing)
            window_.on_missing([this](auto number, auto count) { miss(number, count); });
        if (delay_ && !expected.ends_of_parts.empty()) part_delays_.emplace(expected.ends_of_parts);
    }

    // Records the delay of a frame that was taken, by others' stamps.
    void record(std::uint64_t number, Ticks delay) { keep_delay(Numbers{&number, 1}, delay); }

    // Counts of one burst. A local value stays in registers; a member could be changed by any store.
    struct Burst {
        Ticks arrival;
        Ticks unpolled = 0;  // the frames may have arrived so much earlier
        std::uint64_t received = 0, background = 0, stamped = 0;
        std::uint64_t by_nic = 0;  // of the stamped ones: frames whose arrival the NIC timed, or the kernel

        // The next frames of the burst, of another path.
        [[nodiscard]] Burst rest() const { return {.arrival = arrival, .unpolled = unpolled}; }
    };

    // Has the memory ready that the receiver writes. Called by its thread before the trial. Returns how many histograms
    // there are beside.
    std::size_t touch() {
        window_.touch();
        if (in_time_) in_time_->touch();
        return (delay_ ? 1 : 0) + (delay_changes_ ? 2 : 0) + stream_delays_.size() +
               (part_delays_ ? part_delays_->delays().size() : 0);
    }

    // Of the histograms, see Blocks::take_whole.
    void take_whole() {
        if (delay_) delay_->take_whole();
        if (delay_changes_) delay_changes_->take_whole();
        if (part_delays_) part_delays_->take_whole();
        for (Histogram& stream : stream_delays_) stream.take_whole();
    }

    void add(const Burst& taken) {
        counts_.background += taken.background;
        counts_.stamped += taken.stamped;
        if (taken.stamped != taken.by_nic) tester_time_.record(taken.unpolled, taken.stamped - taken.by_nic);
        if (taken.received == 0) return;
        counts_.received.store(counts_.received.load(std::memory_order_relaxed) + taken.received,
                               std::memory_order_relaxed);
        arrival_gaps_.note(taken.arrival);
    }

    // Takes an intact test frame, if it is one of this trial and path. Returns whether it was.
    bool take(const Tag& tag, Burst& taken) { return take(tag, Numbers{&tag.sequence, 1}, taken); }

    // Takes a run of intact test frames that differ only in their increasing numbers; `first` is the tag of the first.
    bool take(const Tag& first, std::span<const std::uint64_t> run, Burst& taken) {
        if (!is_expected(first)) [[unlikely]]
            return false;
        take_expected(first, valid_numbers(run), taken);
        return true;
    }

    [[nodiscard]] const std::vector<std::uint16_t>& tags_from_end() const { return expected_.tags_from_end; }
    // Whether a frame of this kind, or of this number in a list, counts as intact whatever its lengths and checksums
    // are. Its tag is one of this trial and path.
    [[nodiscard]] bool is_unchecked(const Tag& tag) const {
        if (expected_.list != nullptr)
            return tag.sequence < expected_.frames && !expected_.list->is_tag_checked(tag.sequence);
        return is_among(expected_.unchecked_kinds, tag);
    }
    [[nodiscard]] const Arriving& arriving() const { return expected_.arriving; }
    void take_other_vlans(const VlanTags& tags) { other_tags_.add(tags); }
    void take_other_destination(const IpAddress& destination) { other_destinations_.add(destination); }
    [[nodiscard]] const OtherTags& other_tags() const { return other_tags_; }
    [[nodiscard]] const OtherDestinations& other_destinations() const { return other_destinations_; }
    // Whether a frame with this tag is one of this trial and path.
    [[nodiscard]] bool is_expected(const Tag& tag) const {
        return tag.trial == expected_.trial && tag.pair == mark_.pair && (tag.stream & kStreamPath) == mark_.stream;
    }
    // Whether no frame of this trial has a tag.
    [[nodiscard]] bool has_only_untagged() const {
        return expected_.untagged != nullptr && expected_.untagged->only_untagged();
    }
    // Whether a frame without a tag may be one of this trial.
    [[nodiscard]] bool may_be_untagged(const std::uint8_t* frame, std::size_t length, Ticks arrival) const {
        return expected_.untagged != nullptr && expected_.untagged->may_be(frame, length, arrival);
    }
    // Takes such a frame. It counts as received until the lengths are matched.
    void take_untagged(const std::uint8_t* frame, std::size_t length, Burst& taken) {
        expected_.untagged->note(frame, length);
        ++taken.received;
    }
    void take_stale(std::uint64_t frames) { counts_.stale += frames; }
    void take_corrupted(Corruption how) {
        ++counts_.corrupted;
        ++counts_.corrupted_by[static_cast<std::size_t>(how)];
    }
    void take_unfinished() { ++counts_.unfinished; }
    void take_zero_checksum() { ++counts_.zero_checksums; }
    // A frame that arrived encapsulated and must not, or the other way round.
    void take_other_encapsulation(bool encapsulated) {
        ++(encapsulated ? counts_.not_decapsulated : counts_.not_encapsulated);
    }
    // By its number, which may itself be corrupted. A copy of a corrupted frame is a duplicate.
    void take_corrupted(std::uint64_t number, Corruption how) {
        std::uint64_t& last = last_corrupted_[number % last_corrupted_.size()];
        if (last == number)
            ++counts_.duplicates;
        else
            take_corrupted(how);
        last = number;
    }
    void take_other(OtherKind kind, std::uint64_t frames = 1) {
        counts_.other[static_cast<std::size_t>(kind)] += frames;
    }

    [[nodiscard]] const ReceiverCounts& counts() const { return counts_; }
    [[nodiscard]] const ArrivalGaps& arrival_gaps() const {
        return arrival_gaps_;
    }  // between received frames, by this core's clock
    [[nodiscard]] const std::optional<Histogram>& delay() const { return delay_; }
    // The receiver's time in the delays.
    [[nodiscard]] const TesterTime& tester_time() const { return tester_time_; }
    [[nodiscard]] const std::optional<DelayChanges>& delay_changes() const { return delay_changes_; }
    [[nodiscard]] const GroupDelays& group_delays() const { return group_delays_; }
    [[nodiscard]] const std::optional<PartDelays>& part_delays() const { return part_delays_; }
    // Of each stream of described frames, if there are statistics by stream.
    [[nodiscard]] const std::vector<Histogram>& stream_delays() const { return stream_delays_; }
    // Frames of each group that are missing, or late, in the windows so far, but for long losses.
    [[nodiscard]] const std::vector<std::uint64_t>& group_losses() const { return group_losses_; }
    // Counts these. After the trial. `alive` is called every second or so meanwhile: of connections each number costs
    // an access to a large table.
    void count_long_losses(const FrameGroups::Alive& alive) {
        constexpr std::uint64_t kAtATime = std::uint64_t{1} << 24U;
        std::uint64_t counted = 0;  // since `alive` was called
        for (LongLoss rest : std::exchange(long_losses_, {})) {
            while (rest.count > 0) {
                LongLoss some = rest;
                some.count = std::min(rest.count, kAtATime - counted);
                count(some);
                rest.number += some.count;
                rest.count -= some.count;
                counted = (counted + some.count) % kAtATime;
                if (alive && counted == 0) alive();
            }
        }
    }
    [[nodiscard]] SequenceWindow& window() { return window_; }
    // The frames that arrived within the frame timeout; used if there is a timeout and statistics are merged or by
    // group.
    [[nodiscard]] std::optional<SequenceWindow>& in_time() { return in_time_; }

private:
    using Numbers = std::span<const std::uint64_t>;

    static constexpr std::size_t kArrivalGaps = 4096;  // enough to find the longest merged gap: see ArrivalGaps

    // To count so many one by one, as after an outage of the DUT, would hold the receiving loop up just when frames
    // come again.
    static constexpr std::uint64_t kLongLoss = 4096;
    struct LongLoss {
        std::uint64_t number, count;
        bool missing, of_groups;
    };
    static constexpr std::size_t kCorrupted = 1024;  // a copy is known as one while so few others may come between

    void count_groups() {
        if (delay_) group_delays_.resize(expected_.groups->count());
        if (delay_) stream_delays_.resize(expected_.groups->streams());
        group_losses_.resize(expected_.groups->count());
        (in_time_ ? *in_time_ : window_).on_missing([this](auto number, auto count) { lose(number, count); });
    }

    // A frame that came after the timeout is lost, but not missing.
    void lose(std::uint64_t number, std::uint64_t count) {
        if (count > kLongLoss) return long_losses_.push_back({number, count, false, true});
        for (; count > 0; --count) ++group_losses_[expected_.groups->of(number++)];
    }
    void miss(std::uint64_t number, std::uint64_t count) {
        const bool of_groups = expected_.groups != nullptr && !in_time_;
        if (expected_.lost != nullptr) expected_.lost->add(number, count);
        if (count > kLongLoss) return long_losses_.push_back({number, count, true, of_groups});
        if (expected_.on_missing) expected_.on_missing(number, count);
        if (of_groups) lose(number, count);
    }

    void count(const LongLoss& one) {
        if (one.missing && expected_.on_missing) expected_.on_missing(one.number, one.count);
        if (one.of_groups) expected_.groups->add(one.number, one.number + one.count, group_losses_);
    }

    // Windows that are merged must not slide.
    static SequenceWindow make_window(const Expected& expected) {
        return expected.shared ? SequenceWindow(expected.frames, expected.bounds, expected.frames)
                               : SequenceWindow(expected.frames, expected.bounds);
    }

    // Drops numbers that no frame of the trial has, and counts them as corrupted.
    Numbers valid_numbers(Numbers run) {
        if (run.back() < expected_.frames) [[likely]]
            return run;
        const auto possible = static_cast<std::size_t>(std::ranges::lower_bound(run, expected_.frames) - run.begin());
        counts_.corrupted += run.size() - possible;
        return run.first(possible);
    }

    // Frames that arrive after a higher number are classified one by one.
    void take_expected(const Tag& tag, Numbers run, Burst& taken) {
        for (; !run.empty(); run = run.subspan(1)) {
            if (window_.extend(run)) [[likely]]
                return take_new(tag, run, taken);
            const auto how = window_.insert(run.front());
            counts_.duplicates += how == SequenceWindow::Arrival::duplicate ? 1U : 0U;
            counts_.out_of_order += how == SequenceWindow::Arrival::reordered ? 1U : 0U;
            if (how != SequenceWindow::Arrival::duplicate) take_new(tag, run.first(1), taken);
        }
    }

    // Takes frames of a run that are not duplicates.
    void take_new(const Tag& tag, Numbers run, Burst& taken) {
        if (delay_ && tag.stamp != 0 && !record_delay(tag.stamp, run, taken)) [[unlikely]] {
            counts_.late += run.size();
            return;
        }
        taken.received += run.size();
        taken.background += (tag.stream & kStreamBackground) != 0 ? run.size() : 0U;
    }

    // Records the common delay of the frames. Returns whether they arrived in time.
    bool record_delay(Ticks stamp, Numbers run, Burst& taken) {
        std::uint64_t delay = (taken.arrival - stamp) & kMask40;
        if (delay > kLongestDelay)
            [[unlikely]] {  // negative: the receiving core's TSC lags, or the frame was to leave later
            counts_.early += kMask40 + 1 - delay > expected_.max_tsc_skew ? run.size() : 0U;
            delay = 0;
        }
        taken.stamped += run.size();
        if (expected_.others_stamp) [[unlikely]] {
            taken.by_nic += run.size();
        } else {
            keep_delay(run, delay);
            if (part_delays_) [[unlikely]]
                part_delays_->record_tester(run.front(), taken.unpolled, run.size());
        }
        return expected_.frame_timeout == 0 || are_in_time(run, delay);
    }

    void keep_delay(Numbers run, Ticks delay) {
        delay_->record(delay, run.size());
        if (expected_.delays != nullptr) [[unlikely]] {
            for (const std::uint64_t number : run) expected_.delays->record(number, delay);
        }
        if (!group_delays_.empty()) [[unlikely]]
            record_by_group(run, delay);
        if (part_delays_) [[unlikely]] {
            for (const std::uint64_t number : run) part_delays_->record(number, delay);
        }
        if (delay_changes_) delay_changes_->record(run, delay);
    }

    void record_by_group(Numbers run, Ticks delay) {
        for (const std::uint64_t number : run) {
            const auto [group, kind] = expected_.groups->place(number);
            group_delays_[group].record(delay);
            if (!stream_delays_.empty()) stream_delays_[expected_.groups->stream(kind)].record(delay);
        }
    }

    bool are_in_time(Numbers run, Ticks delay) {
        if (delay > expected_.frame_timeout) return false;
        if (!in_time_ || in_time_->extend(run)) return true;
        for (const std::uint64_t number : run) in_time_->insert(number);
        return true;
    }

    Expected expected_;
    PathMark mark_ = mark_of_path(index_of(expected_.direction));
    SequenceWindow window_;
    std::optional<SequenceWindow> in_time_;
    ArrivalGaps arrival_gaps_;
    std::optional<Histogram> delay_;
    std::optional<DelayChanges> delay_changes_;
    TesterTime tester_time_;
    GroupDelays group_delays_;
    std::vector<Histogram> stream_delays_;
    std::optional<PartDelays> part_delays_;
    std::vector<std::uint64_t> group_losses_;
    std::vector<LongLoss> long_losses_;
    std::vector<std::uint64_t> last_corrupted_ = std::vector<std::uint64_t>(kCorrupted, ~std::uint64_t{0});
    OtherTags other_tags_;
    OtherDestinations other_destinations_;
    ReceiverCounts counts_;
};

}  // namespace dutperf
