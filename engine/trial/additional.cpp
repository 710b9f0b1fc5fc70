// SPDX-License-Identifier: Apache-2.0
#include "trial/additional.hpp"

#include <algorithm>

#include "pace/schedule.hpp"
#include "port/neighbour_responder.hpp"

namespace dutperf {

bool has_marks(const Marks& marks, const std::uint8_t* frame, std::size_t length) {
    return !marks.empty() && std::ranges::all_of(marks, [&](const BytesAt& mark) {
        return mark.at + mark.bytes.size() <= length &&
               std::equal(mark.bytes.begin(), mark.bytes.end(), frame + mark.at);
    });
}

AdditionalSender::AdditionalSender(rte_mempool* pool, std::vector<Kind> kinds, const Share& share,
                                   std::uint64_t clock_hz)
    : pool_(pool),
      kinds_(std::move(kinds)),
      share_(share),
      clock_hz_(clock_hz),
      sent_(kinds_.size()),
      due_(kinds_.size()) {
    for (const Kind& kind : kinds_) left_ += kind.intended;
}

void AdditionalSender::start(Ticks start) {
    start_ = start;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) set_due(kind);
}

void AdditionalSender::set_due(std::size_t kind) {
    due_[kind] = start_ + ticks_of(sent_[kind] * kinds_[kind].every_ns, clock_hz_);
}

bool AdditionalSender::send(PortQueue queue, std::size_t kind) {
    const auto& frames = kinds_[kind].frames;
    rte_mbuf* buffer = make_frame(pool_, frames[sent_[kind] % frames.size()]);
    if (buffer == nullptr) return false;  // the driver holds all buffers
    if (transmit_burst(queue, &buffer, 1) != 1) {
        rte_pktmbuf_free(buffer);
        return false;
    }
    ++sent_[kind];
    --left_;
    set_due(kind);
    return true;
}

}  // namespace dutperf
