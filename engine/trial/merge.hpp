// SPDX-License-Identifier: Apache-2.0
// What the senders of a direction sent together, and what its receivers found together. A direction whose ports have
// several queues has several of each; their counts add up, except for what one of them cannot see: that a frame came to
// another receiver as well.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "pace/share.hpp"
#include "trial/rx_statistics.hpp"

namespace dutperf {

// Which frames of a direction were sent: of each sender its first ones.
class SentFrames {
public:
    // How many frames each sender of the direction sent, in the order of their queues.
    explicit SentFrames(std::vector<std::uint64_t> of_senders) : of_senders_(std::move(of_senders)) {}

    [[nodiscard]] std::uint64_t count() const;
    // One above the highest number that was sent.
    [[nodiscard]] std::uint64_t end() const;
    // Of the frames below end(), those that were not sent: where senders ended at different places, as a trial does
    // that is stopped.
    void for_each_unsent(const std::function<void(std::uint64_t)>& visit) const;

private:
    [[nodiscard]] Share share(std::size_t sender) const { return {sender, of_senders_.size()}; }

    std::vector<std::uint64_t> of_senders_;
};

// What the sender's plan says of a frame's kind.
struct FrameKinds {
    std::function<bool(std::uint64_t)> is_background, is_stamped;
};

struct MergedCounts : ArrivalCounts {
    std::uint64_t received = 0;
};

// Joins the accounts into the first one's windows, once. A frame that came to several receivers was received once, and
// in time if it came to one of them in time; its other copies are duplicates. Frames were reordered by others of the
// same queue.
MergedCounts merge(const std::vector<RxStatistics*>& receivers, const FrameKinds& kinds);

// The delays of all; each copy's where a frame came to several receivers.
std::optional<Histogram> merged_delay(const std::vector<RxStatistics*>& receivers);

// Nothing where no frame was received. A copy at another receiver is an arrival as well.
std::optional<MergedArrivals> merged_arrivals(const std::vector<RxStatistics*>& receivers);

// The frames that were sent and never came. After join().
const MissingFrames& missing_of(SequenceWindow& came, const SentFrames& sent);

}  // namespace dutperf
