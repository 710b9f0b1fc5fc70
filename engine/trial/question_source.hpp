// SPDX-License-Identifier: Apache-2.0
// Makes the frames of a stream of DNS queries: takes buffers that hold the template from a pool and writes what varies.
// A query has no room for a time stamp: its send time goes to a log.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "dns/questions.hpp"
#include "pace/share.hpp"
#include "trial/frame_source.hpp"
#include "trial/query_log.hpp"
#include "trial/query_times.hpp"

namespace dutperf {

struct QuestionParts {
    const dns::QueryFrame* frame;
    const ImagePool* pool;  // of this frame
    QueryLog* log;
    QueryTimes* times;  // nullptr: they are not kept
    NicSending nic = {};
    Share share = {};
};

template <bool Stamps>
class QuestionSource {
public:
    using Parts = QuestionParts;
    static constexpr bool kStamps = Stamps;

    explicit QuestionSource(const QuestionParts& parts) : parts_(parts) {}

    // See FrameSource::make.
    bool make(std::uint64_t j, std::uint32_t count, std::uint64_t stamp, rte_mbuf** frames,
              const Ticks* stamps = nullptr) {
        if (!parts_.pool->take(frames, count)) return false;
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint64_t k = parts_.share.number(j + i);
            parts_.frame->write(k, begin_of_frame(frames[i]));
            const Ticks sent = Stamps ? not_zero(stamps != nullptr ? stamps[i] : stamp) : 0;
            parts_.log->note(k, sent);
            if (parts_.times != nullptr) [[unlikely]]
                parts_.times->note_sent(k, sent);
        }
        stamped_ += Stamps ? count : 0;
        return true;
    }

    [[nodiscard]] std::uint64_t stamped() const { return stamped_; }

private:
    static Ticks not_zero(Ticks stamp) { return (stamp & kMask40) != 0 ? stamp : 1; }

    QuestionParts parts_;
    std::uint64_t stamped_ = 0;
};

}  // namespace dutperf
