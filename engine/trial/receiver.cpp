// SPDX-License-Identifier: Apache-2.0
#include "trial/receiver.hpp"

#include <algorithm>

#include "frame/dissect.hpp"
#include "port/neighbour_responder.hpp"

namespace dutperf {

const std::uint8_t* Receiver::look_closer(const std::uint8_t* frame, std::size_t length, bool& intact) const {
    const Dissected dissected = dissect(frame, length, statistics_.tags_from_end());
    if (dissected.tag == nullptr) return nullptr;
    intact = dissected.intact || statistics_.is_unchecked(read_tag(dissected.tag));
    return dissected.tag;
}

bool Receiver::take_recognised(const std::uint8_t* frame, std::size_t length) {
    for (std::size_t mark = 0; mark < marks_.size(); ++mark) {
        if (!has_marks(marks_[mark], frame, length)) continue;
        Recognised& found = recognised_[mark];
        ++found.frames;
        found.length = std::min(length, found.last.size());
        std::copy_n(frame, found.length, found.last.begin());
        return true;
    }
    return false;
}

void Receiver::take_other(const std::uint8_t* frame, std::size_t length, RxStatistics::Burst& taken) {
    if (take_recognised(frame, length)) return;
    const std::vector<FrameBytes> replies = answers(host_, frame, length);
    if (replies.empty() && statistics_.may_be_untagged(frame, length))
        return statistics_.take_untagged(frame, length, taken);
    statistics_.take_other(kind_of(frame, length));
    for (const FrameBytes& reply : replies) {
        rte_mbuf* buffer = make_frame(control_pool_, reply);
        if (buffer != nullptr && rte_ring_enqueue(control_, buffer) != 0) rte_pktmbuf_free(buffer);
    }
}

}  // namespace dutperf
