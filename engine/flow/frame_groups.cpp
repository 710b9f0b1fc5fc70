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

std::vector<std::uint64_t> FrameGroups::among(std::uint64_t frames, const Alive& alive) const {
    std::vector<std::uint64_t> counts(count());
    add(0, frames, counts, alive);
    return counts;
}

void FrameGroups::add(std::uint64_t first, std::uint64_t end, std::vector<std::uint64_t>& counts,
                      const Alive& alive) const {
    constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 27U;
    if (is_irregular()) {
        for (std::uint64_t k = first; k < end;) {
            for (const std::uint64_t stop = std::min(end, k + kAtOnce); k < stop; ++k) ++counts[of(k)];
            if (alive && k < end) alive();
        }
        return;
    }
    for (std::size_t kind = 0; kind < kinds(); ++kind) {
        const auto number = static_cast<std::uint8_t>(kind);
        const std::uint64_t before = order_.among(number, first), all = order_.among(number, end),
                            flows = flows_[kind].flows;
        const auto of_flow = [flows](std::uint64_t frames, std::uint64_t flow) {
            return frames / flows + (flow < frames % flows ? 1 : 0);
        };
        for (std::uint64_t flow = 0; flow < flows; ++flow)
            counts[first_[kind] + flow] += of_flow(all, flow) - of_flow(before, flow);
    }
}

}  // namespace dutperf
