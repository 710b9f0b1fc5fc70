// SPDX-License-Identifier: Apache-2.0
// Which kind each frame of a direction is, if it has several kinds (RFC 6985: several sizes), and its number among the
// frames of that kind. Both are functions of the frame's number alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "flow/flow_source.hpp"

namespace dutperf {

inline constexpr std::size_t kMostKinds = 32, kLongestOrder = 65536;

class KindOrder {
public:
    struct Place {
        std::uint8_t kind;
        std::uint64_t number;  // among the frames of its kind; if kinds are drawn at random, among all frames
    };

    // Frame k has the kind order[k mod n].
    explicit KindOrder(std::vector<std::uint8_t> order = {0});
    // Kinds are drawn at random: kind i has `shares[i]` of the sum of all; the sum is at most kLongestOrder.
    KindOrder(const std::vector<std::uint32_t>& shares, std::uint64_t seed);

    [[nodiscard]] Place of(std::uint64_t k) const {
        if (random_) return {order_[scaled(random_bits(seed_, k))], k};
        const std::uint64_t turn = k / order_.size(), at = k % order_.size();
        const std::uint8_t kind = order_[at];
        return {kind, turn * in_turn_[kind] + before_[at]};
    }

    // Calls `visit(i, place)` for `count` frames from frame k on, `stride` apart.
    template <class Visit>
    void walk(std::uint64_t k, std::uint64_t stride, std::uint32_t count, const Visit& visit) const {
        if (random_) {
            for (std::uint32_t i = 0; i < count; ++i) visit(i, of(k + i * stride));
            return;
        }
        // a division for each frame would cost more than all the rest
        std::uint64_t turn = k / order_.size(), at = k % order_.size();
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint8_t kind = order_[at];
            visit(i, Place{kind, turn * in_turn_[kind] + before_[at]});
            for (at += stride; at >= order_.size(); at -= order_.size()) ++turn;
        }
    }

    // The share of frames of a kind.
    [[nodiscard]] double share(std::size_t kind) const {
        return kind < in_turn_.size() ? static_cast<double>(in_turn_[kind]) / static_cast<double>(order_.size()) : 0;
    }
    [[nodiscard]] bool is_random() const { return random_; }
    [[nodiscard]] bool is_single() const { return order_.size() == 1; }
    [[nodiscard]] const std::vector<std::uint8_t>& order() const { return order_; }

    // Frames of a kind among the first `frames`.
    [[nodiscard]] std::uint64_t among(std::uint8_t kind, std::uint64_t frames) const;
    // The least number that a frame of this kind can have from frame k on.
    [[nodiscard]] std::uint64_t number_from(std::uint8_t kind, std::uint64_t k) const {
        return random_ ? k : among(kind, k);
    }

private:
    void number_places();
    [[nodiscard]] std::size_t scaled(std::uint64_t bits) const { return (bits >> 32U) * order_.size() >> 32U; }

    std::vector<std::uint8_t> order_;     // random: each kind as often as its share
    std::vector<std::uint32_t> before_;   // of each place: frames of the same kind before it
    std::vector<std::uint64_t> in_turn_;  // of each kind: places
    bool random_ = false;
    std::uint64_t seed_ = 0;
};

// Frames of a kind from `first` to `end` - 1, to which `flows` flows belong; the newest one has the first frame.
struct FlowTurn {
    std::uint64_t first = 0, end = ~std::uint64_t{0};
    std::uint32_t flows = 1;

    [[nodiscard]] std::uint32_t of(std::uint64_t number) const {
        return static_cast<std::uint32_t>((number - first + flows - 1) % flows);
    }
};

// The flow of a frame: in turn, or drawn at random.
struct FlowChoice {
    std::uint32_t flows = 1;
    bool random = false;
    std::uint64_t seed = 0;
    // With which frame of its kind each flow begins; none: all begin with the stream.
    std::shared_ptr<const std::vector<std::uint64_t>> begins = nullptr;

    [[nodiscard]] std::uint32_t of(std::uint64_t number) const {
        if (begins) return joined(turn(number), number);
        if (random) return drawn(flows, number);
        return static_cast<std::uint32_t>(number % flows);
    }
    // The stage to which a frame belongs, if flows begin one after the other.
    [[nodiscard]] FlowTurn turn(std::uint64_t number) const {
        const auto end = std::ranges::upper_bound(*begins, number);
        FlowTurn found{.first = *(end - 1), .flows = static_cast<std::uint32_t>(end - begins->begin())};
        if (end != begins->end()) found.end = *end;
        return found;
    }

private:
    [[nodiscard]] std::uint32_t joined(const FlowTurn& turn, std::uint64_t number) const {
        return random ? drawn(turn.flows, number) : turn.of(number);
    }
    [[nodiscard]] std::uint32_t drawn(std::uint32_t of, std::uint64_t number) const {
        return static_cast<std::uint32_t>((random_bits(seed, number) >> 32U) * of >> 32U);
    }
};

}  // namespace dutperf
