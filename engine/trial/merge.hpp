// SPDX-License-Identifier: Apache-2.0
// Merges the counts of the senders and of the receivers of a direction. With several queues a direction has several of
// each. Their counts add up, with one exception: a receiver does not know that another one received the same frame.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "pace/share.hpp"
#include "trial/rx_statistics.hpp"

namespace dutperf {

// Which frames of a direction were sent: the first ones of each sender's share.
class SentFrames {
public:
    // `of_senders`: how many frames each sender sent, in the order of their queues.
    explicit SentFrames(std::vector<std::uint64_t> of_senders) : of_senders_(std::move(of_senders)) {}

    [[nodiscard]] std::uint64_t count() const;
    // The highest number that was sent + 1.
    [[nodiscard]] std::uint64_t end() const;
    // Visits the frames below end() that were not sent. There are some if senders ended at different places, as in a
    // trial that was stopped.
    void for_each_unsent(const std::function<void(std::uint64_t)>& visit) const;

private:
    [[nodiscard]] Share share(std::size_t sender) const { return {sender, of_senders_.size()}; }

    std::vector<std::uint64_t> of_senders_;
};

// The kind of each frame, from the sender's plan.
struct FrameKinds {
    std::function<bool(std::uint64_t)> is_background, is_stamped;
};

struct MergedCounts : ArrivalCounts {
    std::uint64_t received = 0;
};

// Merges the RX statistics into the first one's windows; to be called once. A frame that several receivers got was
// received once, and in time if one of them got it in time; the other copies are duplicates. Reordering is counted
// within each queue only.
MergedCounts merge(const std::vector<RxStatistics*>& receivers, const FrameKinds& kinds);

// The delays of all receivers, including those of duplicates at other receivers.
std::optional<Histogram> merged_delay(const std::vector<RxStatistics*>& receivers);

// The same for each part of the sending time with delays of its own.
std::vector<Histogram> merged_part_delays(const std::vector<RxStatistics*>& receivers);

// The same for each stream of described frames.
std::vector<Histogram> merged_stream_delays(const std::vector<RxStatistics*>& receivers);

// The receivers' time in the delays of each part; without parts in all delays.
std::vector<TesterTime> merged_tester_time(const std::vector<RxStatistics*>& receivers);

// Nothing if no frame was received. A duplicate at another receiver is an arrival too.
std::optional<MergedArrivals> merged_arrivals(const std::vector<RxStatistics*>& receivers);

// The frames that were sent and never arrived. To be called after merge().
const MissingFrames& missing_of(SequenceWindow& came, const SentFrames& sent);

}  // namespace dutperf
