// SPDX-License-Identifier: Apache-2.0
#include "flow/frame_groups.hpp"

#include <algorithm>

namespace dutperf {

FrameGroups::FrameGroups(KindOrder order, std::vector<FlowChoice> flows, std::vector<std::uint8_t> streams)
    : order_(std::move(order)), flows_(std::move(flows)), streams_(std::move(streams)) {
    for (const FlowChoice& choice : flows_) first_.push_back(first_.back() + choice.flows);
}

std::size_t FrameGroups::streams() const {
    return streams_.empty() ? 0 : std::size_t{*std::ranges::max_element(streams_)} + 1;
}

bool FrameGroups::is_irregular() const {
    return order_.is_random() || std::ranges::any_of(flows_, [](const FlowChoice& choice) {
               return (choice.random || choice.begins) && choice.flows > 1;
           });
}

std::vector<std::uint64_t> FrameGroups::among(std::uint64_t frames) const {
    std::vector<std::uint64_t> counts(count());
    if (is_irregular()) {
        for (std::uint64_t k = 0; k < frames; ++k) ++counts[of(k)];
        return counts;
    }
    for (std::size_t kind = 0; kind < kinds(); ++kind) {
        const std::uint64_t of_kind = order_.among(static_cast<std::uint8_t>(kind), frames), flows = flows_[kind].flows;
        for (std::uint64_t flow = 0; flow < flows; ++flow)
            counts[first_[kind] + flow] = of_kind / flows + (flow < of_kind % flows ? 1 : 0);
    }
    return counts;
}

}  // namespace dutperf
