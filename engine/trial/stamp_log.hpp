// SPDX-License-Identifier: Apache-2.0
// The times by the kernel of a trial's stamped frames, and the delays that follow from them. A frame is known by its
// path and number, which its tag has when it leaves and when it arrives.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "frame/tag.hpp"
#include "port/port.hpp"
#include "port/stamp_socket.hpp"
#include "trial/arriving.hpp"
#include "trial/stamps.hpp"

namespace dutperf {

// Of one port. The senders use its socket; one other thread reads it.
class StampLog {
public:
    // The number of a frame, and when it left or arrived, in ns.
    using Stamp = std::pair<std::uint64_t, std::int64_t>;

    // What counts of a path.
    struct OfPath {
        std::uint32_t unchecked_kinds = 0;  // see DescribedStream
        Arriving arriving{};
    };

    // `passing`: what the port does without meanwhile, or nullptr. Throws Error "port_unavailable": see StampSocket.
    StampLog(StampedBy by, const Port& port, PassingProgram* passing, TrialMark trial, std::vector<OfPath> paths,
             std::vector<std::uint16_t> tags_from_end);

    [[nodiscard]] StampSocket& socket() { return socket_; }
    // Notes some of the stamps that are there. Returns whether there may be more. Call this every few milliseconds.
    bool read();
    // Of a path, in the order in which they came.
    [[nodiscard]] const std::vector<Stamp>& left(std::size_t path) const { return left_[path]; }
    [[nodiscard]] const std::vector<Stamp>& arrived(std::size_t path) const { return arrived_[path]; }

private:
    using Stamps = std::vector<std::vector<Stamp>>;
    void note(Stamps& stamps, std::span<const std::uint8_t> frame, std::int64_t at_ns) const;

    WithoutProgram without_program_;
    StampSocket socket_;
    TrialMark trial_;
    std::vector<OfPath> paths_;
    std::vector<std::uint16_t> tags_from_end_;
    bool accepts_unfinished_;
    Stamps left_, arrived_;
};

// Visits the number and the delay in ns of each frame of a path, in the order of arrival. Of several arrivals of one
// frame the first one counts. `error_ns`: of the difference of both clocks, by which a frame may seem to arrive early.
StampsMatched match_stamps(const std::vector<StampLog::Stamp>& left, const std::vector<StampLog::Stamp>& arrived,
                           const std::function<void(std::uint64_t, std::uint64_t)>& visit, std::int64_t error_ns = 0);

}  // namespace dutperf
