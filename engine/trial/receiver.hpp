// SPDX-License-Identifier: Apache-2.0
// The body of the receiving hot loop: poll, classify, count. It takes the frames of all paths that end at the port, and
// tells frames of other paths, which the DUT should have sent elsewhere. It tells test frames of this trial from stale
// ones of earlier trials and from those of other runs, duplicates from originals, foreground from background, and finds
// corrupted frames. Answers to DNS queries of the trial count like test frames. It answers ARP and NDP, and with a name
// server DNS queries, and counts all other frames by kind.
#pragma once

#include <rte_mbuf.h>
#include <rte_ring.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "frame/batch_match.hpp"
#include "frame/mixed_match.hpp"
#include "platform/clock.hpp"
#include "port/burst.hpp"
#include "port/neighbour_watch.hpp"
#include "port/socket_device.hpp"
#include "trial/additional.hpp"
#include "trial/answer_watch.hpp"
#include "trial/answering.hpp"
#include "trial/capture.hpp"
#include "trial/connection_learner.hpp"
#include "trial/nic_stamps.hpp"
#include "trial/rx_statistics.hpp"

namespace dutperf {

// What a receiver is made of.
struct ReceiverParts {
    PortQueue queue{};
    NeighbourWatch neighbours{};
    std::vector<Expected> expected{};  // of each path that ends at the port; of no path (Direction::none) if none does
    rte_mempool* control_pool = nullptr;
    rte_ring* control = nullptr;
    NicStamps nic{};                       // takes arrival times from the NIC's time stamps instead of the poll
    bool accepts_unfinished = false;       // frames with unfinished checksums (frame/dissect.hpp) are intact
    CaptureBuffer* capture = nullptr;      // keeps frames
    std::optional<AnswerWatch> answers{};  // takes answers to the trial's queries
    Answering* answering = nullptr;        // answers queries
    std::optional<ConnectionLearner> learner{};
    // Frames without a tag that have one of these are counted by it, not by their kind.
    std::vector<Marks> marks{};
    // The queue, if nobody on this side counts its overruns: each turn empties it...
    PeerQueue filled_by_peer{};
    // ... or if the kernel counts them: the backlog is only recorded.
    std::uint32_t ring = 0;
};

class Receiver {
public:
    explicit Receiver(ReceiverParts parts) : parts_(std::move(parts)), recognised_(parts_.marks.size()) {
        icmp_errors_.seen.reserve(kMostIcmpErrors);
        for (const Expected& expected : parts_.expected) expect(expected);
        parts_.expected.clear();  // the paths have their own
        one_by_one_ |= parts_.capture != nullptr || parts_.answers || parts_.answering != nullptr;
        current_ = paths_.front().get();
    }

    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;

    // What arrives earlier and is known by its bytes alone, without a number, is of an earlier trial. To be called
    // before the first turn.
    void start(Ticks earliest) { earliest_ = earliest; }

    // See RxStatistics::touch.
    std::size_t touch() {
        std::size_t histograms = 0;
        for (const auto& path : paths_) histograms += path->statistics.touch();
        return histograms;
    }

    // See RxStatistics::take_whole.
    void take_whole() {
        for (const auto& path : paths_) path->statistics.take_whole();
    }

    // Takes the frames that have arrived, at most a burst. `now`: when the turn began, at the latest. Returns whether
    // there were any.
    bool turn(Ticks now) {
        if (emptied_ == 0) [[unlikely]]
            emptied_ = now;
        std::uint16_t count = take_burst();
        const bool any = count != 0;
        std::uint32_t waited = carried_ + count;
        while (count >= kNearlyBurst && waited < parts_.filled_by_peer.room)
            [[unlikely]] waited += count = take_burst();
        if (count < kNearlyBurst) [[likely]]
            emptied_ = now;
        if (waited > most_waiting_) [[unlikely]]
            most_waiting_ = waited;
        carried_ = count >= kNearlyBurst && counts_overruns() ? std::min(waited, kMaxCarried)
                                                              : 0;  // more frames may be waiting behind these
        return any;
    }

    // Classifies and counts frames that arrived at one time. The caller keeps them.
    void take(rte_mbuf* const* frames, std::uint16_t count, Ticks arrival) {
        RxStatistics::Burst taken{.arrival = arrival, .unpolled = emptied_ != 0 ? arrival - emptied_ : 0};
        if (parts_.nic.clock != nullptr) [[unlikely]] {
            take_stamped(frames, count, taken);
        } else if (one_by_one_) [[unlikely]] {
            prefetch_first(frames, count);
            for (std::uint16_t i = 0; i < count; ++i) take_any(*frames[i], taken);
        } else if (statistics().has_only_untagged()) [[unlikely]] {
            for (std::uint16_t i = 0; i < count; ++i)
                take_other(begin_of(*frames[i]), rte_pktmbuf_data_len(frames[i]), taken);
        } else if (count < kMinBatch) {
            for (std::uint16_t i = 0; i < count; ++i) take_one(*frames[i], taken);
        } else {
            prefetch_first(frames, count);
            mixed_                ? take_mixed(frames, count, taken)
            : is_ipv6(*frames[0]) ? take_many(match6_, frames, count, taken)
                                  : take_many(match4_, frames, count, taken);
        }
        current_->statistics.add(taken);
    }

    // The trial has ended. `stalled`: the loop stalled until now, so the backlog is unknown.
    void end(bool stalled) { saw_all_ = !stalled && carried_ == 0; }

    // Of the first path, with which frames of no path are counted, and those without a tag.
    [[nodiscard]] RxStatistics& statistics() { return paths_.front()->statistics; }
    [[nodiscard]] const ReceiverCounts& counts() const { return paths_.front()->statistics.counts(); }
    // Of a path that was expected.
    [[nodiscard]] RxStatistics& statistics(Direction path) { return of_path(index_of(path))->statistics; }
    [[nodiscard]] const std::optional<TrackedBits>& tracked(Direction path) const {
        return of_path(index_of(path))->tracked;
    }
    [[nodiscard]] const StampCounts& stamp_counts(Direction path) const { return of_path(index_of(path))->stamps; }
    // Frames of this trial that arrived here, of a path that does not end at this port.
    [[nodiscard]] std::uint64_t misdelivered(Direction path) const { return misdelivered_[index_of(path)]; }
    [[nodiscard]] const NeighbourEvidence& neighbours() const { return parts_.neighbours.evidence(); }
    [[nodiscard]] const IcmpErrors& icmp_errors() const { return icmp_errors_; }
    // nullptr if no answers are expected here.
    [[nodiscard]] const AnswerWatch* answers() const { return parts_.answers ? &*parts_.answers : nullptr; }
    // Frames recognised by one of the marks, and the first bytes of the last one.
    struct Recognised {
        std::uint64_t frames = 0;
        std::size_t length = 0;
        std::array<std::uint8_t, 512> last{};
    };
    [[nodiscard]] const Recognised& recognised(std::size_t mark) const { return recognised_[mark]; }
    // Replies to ARP and Neighbour Discovery for which there was no room.
    [[nodiscard]] std::uint64_t replies_dropped() const { return replies_dropped_; }
    // The size of a watched queue, if it is known, and the largest backlog seen in it. The backlog is never
    // underestimated.
    [[nodiscard]] bool watches_queue() const { return parts_.filled_by_peer.room != 0 || parts_.ring != 0; }
    [[nodiscard]] std::optional<std::uint32_t> room() const {
        if (counts_overruns()) return parts_.ring;
        return parts_.filled_by_peer.is_known ? std::optional(parts_.filled_by_peer.room) : std::nullopt;
    }
    [[nodiscard]] bool counts_overruns() const { return parts_.filled_by_peer.room == 0; }
    // Whether the queue was empty at the end; otherwise the backlog may be larger than most_waiting().
    [[nodiscard]] bool saw_all() const { return saw_all_; }
    [[nodiscard]] std::uint32_t most_waiting() const { return most_waiting_; }

private:
    // What is counted of one path.
    struct OfPath {
        explicit OfPath(const Expected& expected) : statistics(expected) {
            if (!expected.tracked.empty()) tracked.emplace(expected.tracked);
        }

        RxStatistics statistics;
        StampCounts stamps;
        std::optional<TrackedBits> tracked;
    };

    // Takes the frames of one more path.
    void expect(const Expected& expected) {
        trial_ = expected.trial;
        paths_.push_back(std::make_unique<OfPath>(expected));
        if (expected.direction != Direction::none) by_number_[index_of(expected.direction)] = paths_.back().get();
        vlans_may_be_absent_ &= std::ranges::all_of(
            expected.arriving.kinds, [](const ArrivingKind& kind) { return kind.vlan_tags.may_be_absent(); });
        tracks_ |= !expected.tracked.empty();
        one_by_one_ |= tracks_;
    }

    static constexpr std::uint16_t kBurst = 64;
    // a driver may leave some frames to stay aligned to cache lines
    static constexpr std::uint16_t kNearlyBurst = kBurst - 8;
    static_assert(kBurst <= BatchMatch<kIpv4Layout>::kMaxFrames && kBurst <= MixedMatch::kMaxFrames);
    static constexpr std::uint32_t kMaxCarried = std::uint32_t{1} << 30U;
    static constexpr std::uint16_t kMinBatch = 4;  // from this many frames, batch matching is faster than one by one
    // Intact mismatches of consecutive bursts from which frames are matched against several references: one for plain
    // frames is set by the first burst.
    static constexpr std::uint32_t kManyMismatches = 2 * kBurst;
    // Prefetch distances in frames: for the buffer's descriptor, then for the frame itself.
    static constexpr std::uint16_t kBufferAhead = 24, kFrameAhead = 12;

    std::uint16_t take_burst() {
        const std::uint16_t count = receive_burst(parts_.queue, burst_.data(), kBurst);
        if (count == 0) return 0;
        take(burst_.data(), count, now_ticks());
        free_burst(burst_.data(), count);
        return count;
    }

    static const std::uint8_t* begin_of(const rte_mbuf& frame) { return rte_pktmbuf_mtod(&frame, const std::uint8_t*); }
    static bool is_ipv6(const rte_mbuf& frame) {
        return rte_pktmbuf_data_len(&frame) >= kEthernetPayloadAt && type_of(begin_of(frame)) == kIpv6Layout.type();
    }

    static void prefetch_first(rte_mbuf* const* frames, std::uint16_t count) {
        for (std::uint16_t i = 0; i < std::min(count, kBufferAhead); ++i) __builtin_prefetch(frames[i]);
        for (std::uint16_t i = 0; i < std::min(count, kFrameAhead); ++i) __builtin_prefetch(begin_of(*frames[i]));
    }

    // Out of line: inside, it slows the loop of plain frames down.
    void take_mixed(rte_mbuf* const* frames, std::uint16_t count, RxStatistics::Burst& taken);

    // Frames that match a reference of `batch` are counted in runs, all others one by one.
    template <class Batch>
    void take_many(Batch& batch, rte_mbuf* const* frames, std::uint16_t count, RxStatistics::Burst& taken) {
        const int last_buffer = std::max(count - kBufferAhead, 0), last_frame = std::max(count - kFrameAhead, 0);
        int i = 0;
        auto reader = batch.reader();
        for (; i < last_buffer; ++i) read<true, true>(reader, frames, i);
        for (; i < last_frame; ++i) read<false, true>(reader, frames, i);
        for (; i < count; ++i) read<false, false>(reader, frames, i);
        count_matched(batch, frames, count, taken);
    }

    // Reads a frame into the batch and prefetches later ones, if there are any.
    template <bool Buffer, bool Frame, class Reader>
    static void read(Reader& reader, rte_mbuf* const* frames, int i) {
        if constexpr (Buffer) __builtin_prefetch(frames[i + kBufferAhead]);
        if constexpr (Frame) __builtin_prefetch(begin_of(*frames[i + kFrameAhead]));
        reader(static_cast<std::size_t>(i), begin_of(*frames[i]), rte_pktmbuf_data_len(frames[i]));
    }

    template <class Batch>
    void count_matched(Batch& batch, rte_mbuf* const* frames, std::uint16_t count, RxStatistics::Burst& taken) {
        batch.match(count);
        const rte_mbuf *mismatch = nullptr, *plain = nullptr;
        std::uint32_t mismatches = 0;
        for (std::size_t i = 0; i < count;) {
            const std::span<const std::uint64_t> run = batch.run_from(i, count);
            if (!run.empty()) [[likely]] {
                take_run(batch.tag(i), run, taken);
                if (parts_.learner) [[unlikely]]
                    learn_run(batch, i, frames + i, run);
                i += run.size();
                continue;
            }
            const rte_mbuf* frame = frames[i++];
            const Intact intact = take_one(*frame, taken);
            if (intact == Intact::no) continue;
            mismatch = frame;
            if (intact == Intact::plain) plain = frame;
            ++mismatches;
        }
        if (mismatch != nullptr) [[unlikely]]
            set_reference(plain, *mismatch);
        mismatches_ = mismatches != 0 ? mismatches_ + mismatches : 0;
        mixed_ |= mismatches_ > kManyMismatches;
    }

    // Takes frames one by one, each at the arrival time from the NIC.
    void take_stamped(rte_mbuf* const* frames, std::uint16_t count, RxStatistics::Burst& taken) {
        BurstArrivals arrivals(parts_.nic, taken.arrival);
        for (std::uint16_t i = 0; i < count; ++i) take_any(*frames[i], taken, &arrivals);
    }

    // Whether a frame was an intact test frame, with which others of a batch may be compared.
    enum class Intact : std::uint8_t { no, plain, described };

    Intact take_one(const rte_mbuf& one, RxStatistics::Burst& taken, BurstArrivals* arrivals = nullptr,
                    bool captured = false) {
        const std::uint8_t* frame = begin_of(one);
        const std::size_t length = rte_pktmbuf_data_len(&one);
        const AnyTag found = statistics().has_only_untagged() ? AnyTag{} : find(frame, length);
        const bool changed = found.intact && take_changed(found, frame, length);
        if (parts_.capture != nullptr && !captured) [[unlikely]]
            capture_unless_expected({frame, length, found.tag, taken.arrival}, found.intact, changed);
        if (found.tag == nullptr) [[unlikely]] {
            take_other(frame, length, taken);
        } else if (!found.intact) [[unlikely]] {
            take_corrupted(read_tag(found.tag), found.corruption);
        } else {
            const Tag tag = read_tag(found.tag);
            if (tracks_ && is_expected(tag)) [[unlikely]] {
                if (auto& tracked = of_path(tag.path())->tracked) tracked->take(frame, length);
            }
            if (parts_.learner) [[unlikely]]
                parts_.learner->take_any(frame, found.source, found.tag);
            if (arrivals != nullptr) [[unlikely]] {
                take_arrived(one, tag, taken, *arrivals);
            } else {
                take_run(tag, {&tag.sequence, 1}, taken);
            }
        }
        // no other frame is compared with a changed one, so each of them is counted
        if (!found.intact || changed) return Intact::no;
        return found.plain ? Intact::plain : Intact::described;
    }

    // Counts a run of frames that differ only in their numbers; `first` is the tag of the first.
    void take_run(const Tag& first, std::span<const std::uint64_t> run, RxStatistics::Burst& taken) {
        if (!current_->statistics.take(first, run, taken)) [[unlikely]]
            take_other_run(first, run, taken);
    }
    // The same of frames that are not of the path of the frame before.
    void take_other_run(const Tag& first, std::span<const std::uint64_t> run, RxStatistics::Burst& taken);
    // Counts what was taken of the path so far: the burst's next frames are of `path`.
    void turn_to(OfPath& path, RxStatistics::Burst& taken) {
        if (&path == current_) return;
        current_->statistics.add(taken);
        taken = taken.rest();
        current_ = &path;
    }
    // nullptr: the path does not end at this port.
    [[nodiscard]] OfPath* of_path(std::size_t path) const { return by_number_[path]; }
    [[nodiscard]] bool is_expected(const Tag& tag) const {
        return tag.trial == trial_ && of_path(tag.path()) != nullptr;
    }
    void take_corrupted(const Tag& tag, Corruption how);

    // Takes a frame that may be a DNS message.
    void take_any(const rte_mbuf& one, RxStatistics::Burst& taken, BurstArrivals* arrivals = nullptr) {
        const bool captured = parts_.capture != nullptr && capture_first(one, taken.arrival);
        if (!one_by_one_ || !take_message(one, taken, arrivals)) take_one(one, taken, arrivals, captured);
    }
    bool capture_first(const rte_mbuf& one, Ticks arrival) {
        return parts_.capture->take(CapturedAs::first, begin_of(one), rte_pktmbuf_data_len(&one), arrival);
    }
    // Takes a DNS message, if the frame is one that is expected here.
    bool take_message(const rte_mbuf& one, RxStatistics::Burst& taken, BurstArrivals* arrivals);
    bool take_answer(const rte_mbuf& one, RxStatistics::Burst& taken, BurstArrivals* arrivals);

    // The tag of a frame. One that is not as long as it was sent is not intact.
    AnyTag find(const std::uint8_t* frame, std::size_t length) {
        AnyTag found = find_plain_tag(frame, length);
        if (found.tag == nullptr) [[unlikely]]
            found = look_closer(frame, length);
        const ArrivingKind* kind = found.intact ? arriving_kind(found.tag) : nullptr;
        if (kind != nullptr && !kind->fits(found.payload)) [[unlikely]] {
            found.intact = false;
            found.corruption = Corruption::length;
        }
        return found;
    }
    // The tag of a frame that is no intact plain one: behind any headers, or of a kind that may be wrong.
    AnyTag look_closer(const std::uint8_t* frame, std::size_t length);

    // What a test frame of this trial and port must have kept; nullptr: it is another frame, or not compared.
    [[nodiscard]] const ArrivingKind* arriving_kind(const std::uint8_t* found) const {
        const Tag tag = read_tag(found);
        return is_expected(tag) ? of_path(tag.path())->statistics.arriving().kind_of(tag) : nullptr;
    }
    // Of the path of such a frame.
    [[nodiscard]] RxStatistics& statistics_of(const std::uint8_t* found) const {
        return of_path(read_tag(found).path())->statistics;
    }
    // Counts an intact frame of this trial and port if it has VLAN tags, a destination or a tunnel that it may not
    // have, or has no tunnel.
    bool take_changed(const AnyTag& found, const std::uint8_t* frame, std::size_t length);

    struct Captured {
        const std::uint8_t* frame;
        std::size_t length;
        const std::uint8_t* payload;  // its tag, or nullptr
        Ticks arrival;
    };
    // Keeps a frame that is no intact and unchanged one of this trial and direction.
    void capture_unless_expected(const Captured& one, bool intact, bool changed) {
        if (one.payload != nullptr && !intact) {
            parts_.capture->take(CapturedAs::damaged, one.frame, one.length, one.arrival);
        } else if (changed ||
                   (one.payload == nullptr ? !statistics().may_be_untagged(one.frame, one.length, one.arrival)
                                           : !is_expected(read_tag(one.payload)))) {
            parts_.capture->take(CapturedAs::unexpected, one.frame, one.length, one.arrival);
        }
    }

    // Only frames with a delay count as stamped: neither stale frames nor duplicates. For all else the burst arrived
    // when it was polled.
    void take_arrived(const rte_mbuf& one, const Tag& tag, RxStatistics::Burst& taken, BurstArrivals& arrivals) {
        if (is_expected(tag)) turn_to(*of_path(tag.path()), taken);
        const std::uint64_t before = taken.stamped;
        const Ticks polled = std::exchange(taken.arrival, arrivals.of(one, tag));
        take_run(tag, {&tag.sequence, 1}, taken);
        taken.arrival = polled;
        if (taken.stamped == before) return;
        current_->stamps.add(arrivals.last());
        taken.by_nic += arrivals.last().by_nic;
    }

    // `from`: the place of the run in the batch. Frames of a mixed batch have no common layout.
    template <class Batch>
    void learn_run(const Batch& batch, std::size_t from, rte_mbuf* const* frames, std::span<const std::uint64_t> run) {
        if constexpr (std::is_same_v<Batch, MixedMatch>)
            parts_.learner->take_mixed(batch.tag(from), run,
                                       [&](std::size_t i) { return batch.alike_from(from + i, from + run.size()); });
        else
            parts_.learner->take<Batch::kLayout>(frames, batch.tag(from), run);
    }

    // Makes a mismatch the reference for the next batches. `plain`: the last plain one, or nullptr.
    void set_reference(const rte_mbuf* plain, const rte_mbuf& frame) {
        if (mixed_)
            set_mixed_reference(begin_of(frame), rte_pktmbuf_data_len(&frame));
        else if (plain != nullptr)
            set_plain_reference(*plain);
    }
    void set_mixed_reference(const std::uint8_t* frame, std::size_t length);
    void set_plain_reference(const rte_mbuf& one);

    void take_other(const std::uint8_t* frame, std::size_t length, RxStatistics::Burst& taken);
    bool take_recognised(const std::uint8_t* frame, std::size_t length, Ticks arrival);

    ReceiverParts parts_;
    TrialMark trial_ = 0;
    std::vector<std::unique_ptr<OfPath>> paths_;
    // on the heap: with 16 kB of them inside, receiving took up to 5 % longer
    std::vector<OfPath*> by_number_ = std::vector<OfPath*>(kMostPaths);
    OfPath* current_ = nullptr;  // of the last frame
    std::vector<std::uint64_t> misdelivered_ = std::vector<std::uint64_t>(kMostPaths);
    BatchMatch<kIpv4Layout> match4_;
    BatchMatch<kIpv6Layout> match6_;
    MixedMatch match_mixed_;
    bool mixed_ = false;            // match_mixed_ is used
    std::uint32_t mismatches_ = 0;  // intact ones of the last bursts without a burst that had none
    bool one_by_one_ = false;       // frames are not matched in batches
    bool tracks_ = false;           // some path's frames are counted by some of their bits
    std::vector<Recognised> recognised_;
    IcmpErrors icmp_errors_;
    std::uint64_t replies_dropped_ = 0;
    std::uint32_t most_waiting_ = 0;
    bool saw_all_ = false;
    bool vlans_may_be_absent_ = true;  // in frames of any path and kind
    Ticks earliest_ = 0;               // of frames that are recognised
    Ticks emptied_ = 0;                // frames that are taken next arrived later than this; 0: unknown
    std::uint32_t carried_ = 0;        // frames of the preceding turns that did not empty the queue
    std::array<rte_mbuf*, kBurst> burst_{};
};

}  // namespace dutperf
