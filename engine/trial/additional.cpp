// SPDX-License-Identifier: Apache-2.0
#include "trial/additional.hpp"

#include <algorithm>
#include <limits>

#include "frame/dissect.hpp"
#include "pace/schedule.hpp"
#include "port/neighbour_responder.hpp"

namespace dutperf {

bool has_marks(const Marks& marks, const std::uint8_t* frame, std::size_t length) {
    if (marks.empty() || length < ethernet::kSize) return false;
    const std::size_t tags = network_of(frame, length).at - ethernet::kSize;
    return std::ranges::all_of(marks, [&](const BytesAt& mark) {
        const std::size_t at = mark.at + (mark.at < ethernet::kType ? 0 : tags);
        return at + mark.bytes.size() <= length && std::equal(mark.bytes.begin(), mark.bytes.end(), frame + at);
    });
}

AdditionalSender::AdditionalSender(rte_mempool* pool, std::vector<Kind> kinds, const Share& share,
                                   std::uint64_t clock_hz)
    : pool_(pool),
      kinds_(std::move(kinds)),
      share_(share),
      clock_hz_(clock_hz),
      made_(kinds_.size()),
      sent_(kinds_.size()),
      due_(kinds_.size()) {}

void AdditionalSender::start(Ticks start) {
    start_ = start;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) set_due(kind);
}

void AdditionalSender::set_due(std::size_t kind) {
    due_[kind] = start_ + ticks_of(made_[kind] * kinds_[kind].every_ns, clock_hz_);
}

Ticks AdditionalSender::next_due() const {
    Ticks next = std::numeric_limits<Ticks>::max();
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
        if (kinds_[kind].after_frames == 0 && made_[kind] != kinds_[kind].intended) next = std::min(next, due_[kind]);
    }
    return next;
}

rte_mbuf* AdditionalSender::make(std::size_t kind) const {
    const auto& frames = kinds_[kind].frames;
    return make_frame(pool_, frames[made_[kind] % frames.size()]);
}

void AdditionalSender::advance(std::size_t kind) {
    ++made_[kind];
    set_due(kind);
}

bool AdditionalSender::send(PortQueue queue, std::size_t kind) {
    rte_mbuf* buffer = make(kind);
    if (buffer == nullptr) return false;  // the driver holds all buffers
    if (transmit_burst(queue, &buffer, 1) != 1) {
        rte_pktmbuf_free(buffer);
        return false;
    }
    advance(kind);
    count(kind);
    return true;
}

}  // namespace dutperf
