// SPDX-License-Identifier: Apache-2.0
// The Responder's receiver writes the state table: it learns the addresses and ports of each connection from the
// frames that arrive, and finds connections that the DUT translates in another way than before (RFC 9693 section 4).
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>
#include <span>

#include "flow/state_table.hpp"
#include "frame/dissect.hpp"
#include "frame/tag.hpp"
#include "trial/trial.hpp"

namespace dutperf {

class ConnectionLearner {
public:
    // `frames`: of the trial, in the Initiator's direction.
    ConnectionLearner(StateTable& table, ConnectionChoice choice, TrialMark trial, Direction direction,
                      std::uint64_t frames)
        : table_(&table), choice_(std::move(choice)), trial_(trial), direction_(direction), frames_(frames) {}

    // Takes intact frames of one layout with increasing numbers; `first`: the tag of the first. Frames of the other IP
    // version are not learned.
    template <Layout L>
    void take(rte_mbuf* const* frames, const Tag& first, std::span<const std::uint64_t> numbers) {
        if (!is_expected(first) || numbers.back() >= frames_ || L.ipv6 != table_->ipv6()) [[unlikely]]
            return;
        find(numbers);
        for (std::size_t i = 0; i < numbers.size(); ++i) __builtin_prefetch(table_->entry(connections_[i]), 1);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            const auto* frame = rte_pktmbuf_mtod(frames[i], const std::uint8_t*);
            table_->learn<L.ipv6>(connections_[i], frame + L.source_at(),
                                  load<std::uint32_t>(frame + L.transport_at()));
        }
    }

    // Takes one intact frame in any layout; `tag_at`: its tag.
    void take_any(const std::uint8_t* frame, std::size_t length, const std::uint8_t* tag_at) {
        const Tag tag = read_tag(tag_at);
        if (!is_expected(tag) || tag.sequence >= frames_) return;
        const Network network = network_of(frame, length);
        if (network.type != (table_->ipv6() ? ethernet::kTypeIpv6 : ethernet::kTypeIpv4)) return;
        const std::uint8_t* source = frame + network.at + (table_->ipv6() ? ipv6::kSource : ipv4::kSource);
        table_->learn(choice_.of(tag.sequence), source, load<std::uint32_t>(tag_at - kTagInUdp));
    }

private:
    [[nodiscard]] bool is_expected(const Tag& tag) const {
        return tag.trial == trial_ && ((tag.stream & kStreamReverse) != 0) == (direction_ == Direction::reverse) &&
               (tag.stream & kStreamBackground) == 0;
    }

    // Numbers mostly follow each other.
    void find(std::span<const std::uint64_t> numbers) {
        if (numbers.back() - numbers.front() == numbers.size() - 1) [[likely]]
            return choice_.fill(numbers.front(), Stride(), numbers.size(), connections_.data());
        for (std::size_t i = 0; i < numbers.size(); ++i) connections_[i] = choice_.of(numbers[i]);
    }

    StateTable* table_;
    ConnectionChoice choice_;
    TrialMark trial_;
    Direction direction_;
    std::uint64_t frames_;
    alignas(kLanesAlignment) ConnectionNumbers connections_{};
};

}  // namespace dutperf
