// SPDX-License-Identifier: Apache-2.0
// Makes the frames of a stream from a list (flow/frame_list.hpp): copies each into a buffer, and writes what differs
// there: MAC addresses, and a tag where the frame has one.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <array>
#include <cstring>
#include <memory>

#include "flow/frame_list.hpp"
#include "pace/share.hpp"
#include "trial/frame_source.hpp"

namespace dutperf {

struct ReplayParts {
    rte_mempool* pool;
    std::shared_ptr<const FrameList> list;
    Mac source;
    std::array<Mac, 3> destination;  // by NextHop
    TrialMark trial;
    PathMark path;             // in the tags
    std::uint32_t generation;  // so that nobody takes a buffer for one with a template
    NicSending nic = {};
    Share share = {};
};

class ReplaySource {
public:
    using Parts = ReplayParts;
    static constexpr bool kStamps = false;

    explicit ReplaySource(ReplayParts parts) : parts_(std::move(parts)) {}

    // See FrameSource::make.
    bool make(std::uint64_t j, std::uint32_t count, std::uint64_t /*stamp*/, rte_mbuf** frames,
              const Ticks* /*stamps*/ = nullptr) {
        if (rte_mempool_get_bulk(parts_.pool, reinterpret_cast<void**>(frames), count) != 0) return false;
        for (std::uint32_t i = 0; i < count; ++i) prefetch_frame(frames[i]);
        const std::uint64_t k = parts_.share.number(j), size = parts_.list->size();
        std::uint64_t round = k / size, place = k % size;
        for (std::uint32_t i = 0; i < count; ++i) {
            write(*frames[i], round, parts_.list->frame(place));
            for (place += parts_.share.stride; place >= size; place -= size) ++round;
        }
        return true;
    }

    [[nodiscard]] std::uint64_t stamped() const { return 0; }

private:
    void write(rte_mbuf& buffer, std::uint64_t round, const FrameList::Frame& frame) const {
        FrameImage::describe(buffer, RTE_PKTMBUF_HEADROOM, frame.length, parts_.generation);
        buffer.ol_flags = 0;
        std::uint8_t* bytes = begin_of_frame(&buffer);
        std::memcpy(bytes, parts_.list->data(frame), frame.length);
        if (frame.destination != NextHop::given)
            store(bytes + ethernet::kDestination, parts_.destination[static_cast<std::size_t>(frame.destination)]);
        if (frame.source_mac_of_port) store(bytes + ethernet::kSource, parts_.source);
        if (frame.tag_at != FrameList::kNoTag)
            FrameList::write_balanced_tag(bytes + frame.tag_at, parts_.trial, parts_.path,
                                          round * parts_.list->tagged() + frame.tag_number, frame.balance);
    }

    ReplayParts parts_;
};

}  // namespace dutperf
