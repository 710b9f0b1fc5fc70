// SPDX-License-Identifier: Apache-2.0
#include "trial/trial_capture.hpp"

#include <rte_mempool.h>

namespace dutperf {

CaptureBuffer* TrialCapture::make_buffer() {
    if (!spec_.capture) return nullptr;
    const std::size_t longest = rte_pktmbuf_data_room_size(bed_.frame_pools[0]);
    return captures_.emplace_back(std::make_unique<CaptureBuffer>(*spec_.capture, longest)).get();
}

LostNumbers* TrialCapture::make_lost(Direction direction) {
    if (!spec_.capture || spec_.capture->of(CapturedAs::lost) == 0) return nullptr;
    return &lost_[index_of(direction)].emplace(LostNumbers{.most = spec_.capture->of(CapturedAs::lost)});
}

CaptureWritten TrialCapture::write(const TrialParts& parts, std::uint64_t began_ns) {
    CaptureWritten counts;
    Written into;
    std::vector<CapturedFrame>& frames = into.frames;
    for (std::size_t i = 0; i < captures_.size(); ++i) {
        for (const CaptureBuffer::Kept& kept : captures_[i]->kept()) {
            const auto after = static_cast<std::int64_t>(kept.at - parts.start);
            const double after_ns = static_cast<double>(after) * 1e9 / static_cast<double>(bed_.clock_hz);
            frames.push_back({.time_ns = began_ns + static_cast<std::uint64_t>(static_cast<std::int64_t>(after_ns)),
                              .kind = kept.kind,
                              .side = static_cast<std::uint8_t>(i / bed_.queues),
                              .comment = kCaptureNames[static_cast<std::size_t>(kept.kind)],
                              .bytes = captures_[i]->bytes_of(kept),
                              .size = kept.size});
        }
        for (std::size_t kind = 0; kind < kCaptureKinds; ++kind)
            counts.left_out[kind] += captures_[i]->left_out()[kind];
    }
    for (const Direction direction : spec_.active()) {
        if (!lost_[index_of(direction)]) continue;
        add_lost(direction, parts, began_ns, into);
        counts.left_out[static_cast<std::size_t>(CapturedAs::lost)] += lost_[index_of(direction)]->left_out;
    }
    for (const CapturedFrame& frame : frames) ++counts.written[static_cast<std::size_t>(frame.kind)];
    std::vector<std::string> names;
    for (const Port* port : bed_.ports) names.push_back(port->side());
    counts.error = write_capture(spec_.capture->path, names, std::move(frames));
    if (!counts.error.empty()) counts.written = {};
    return counts;
}

// Lost frames are made a second time by their senders.
void TrialCapture::add_lost(Direction direction, const TrialParts& parts, std::uint64_t began_ns, Written& into) {
    for (const std::uint64_t lost : lost_[index_of(direction)]->numbers) {
        const std::uint64_t number = spec_.frame_numbered(direction, lost);
        rte_mbuf* frame = parts.senders[index_of(direction)][number % bed_.queues]->make_again(number / bed_.queues);
        if (frame == nullptr) {
            ++lost_[index_of(direction)]->left_out;
            continue;
        }
        const std::uint8_t* bytes = rte_pktmbuf_mtod(frame, const std::uint8_t*);
        into.made.emplace_back(bytes, bytes + rte_pktmbuf_data_len(frame));
        rte_pktmbuf_free(frame);
        into.frames.push_back({.time_ns = began_ns + spec_.due_ns(direction, number),
                               .kind = CapturedAs::lost,
                               .side = static_cast<std::uint8_t>(bed_.sending_port(direction)),
                               .comment = "lost: frame " + std::to_string(number) + " of " + bed_.name_of(direction),
                               .bytes = into.made.back().data(),
                               .size = static_cast<std::uint16_t>(into.made.back().size())});
    }
}

}  // namespace dutperf
