// SPDX-License-Identifier: Apache-2.0
// Groups of the frames of a direction, for statistics of their own: each flow of each kind. The group of a frame
// follows from its number alone, so counting sent and lost frames by group costs the hot loops nothing. Kinds may also
// belong to streams, which have distributions of delays.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "flow/kind_order.hpp"

namespace dutperf {

class FrameGroups {
public:
    // `flows`: of each kind. `streams`: the number of each kind's stream; empty: no statistics by stream.
    FrameGroups(KindOrder order, std::vector<FlowChoice> flows, std::vector<std::uint8_t> streams = {});

    [[nodiscard]] std::size_t count() const { return first_.back(); }
    struct Place {
        std::size_t group;
        std::uint8_t kind;
    };
    [[nodiscard]] Place place(std::uint64_t k) const {
        const auto [kind, number] = order_.of(k);
        return {first_[kind] + (flows_[kind].flows == 1 ? 0 : flows_[kind].of(number)), kind};
    }
    [[nodiscard]] std::size_t of(std::uint64_t k) const { return place(k).group; }
    // The groups of a kind are first(kind) to first(kind + 1) - 1, in the order of its flows.
    [[nodiscard]] std::size_t first(std::size_t kind) const { return first_[kind]; }
    [[nodiscard]] std::size_t kinds() const { return flows_.size(); }
    // The stream of a kind. Streams are numbered from 0; without statistics by stream there are none.
    [[nodiscard]] std::uint8_t stream(std::size_t kind) const { return streams_[kind]; }
    [[nodiscard]] std::size_t streams() const;

    using Alive = std::function<void()>;
    // Frames of each group among the first `frames`. Random orders are drawn again, one by one, and so are flows that
    // begin one after the other: `alive` is called every second or two meanwhile.
    [[nodiscard]] std::vector<std::uint64_t> among(std::uint64_t frames, const Alive& alive = {}) const;
    // Adds those from `first` to before `end` to the counts of each group.
    void add(std::uint64_t first, std::uint64_t end, std::vector<std::uint64_t>& counts, const Alive& alive = {}) const;

private:
    // Whether nothing but counting says how many frames each group has.
    [[nodiscard]] bool is_irregular() const;

    KindOrder order_;
    std::vector<FlowChoice> flows_;
    std::vector<std::uint8_t> streams_;
    std::vector<std::size_t> first_{0};
};

}  // namespace dutperf
