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
    // The frames that are learned.
    struct Learned {
        TrialMark trial;
        Direction direction;   // the Initiator's
        std::uint64_t frames;  // of the trial in this direction
        std::uint32_t kinds;   // that belong to connections, a bit each
    };
    ConnectionLearner(StateTable& table, ConnectionChoice choice, const Learned& learned)
        : table_(&table), choice_(std::move(choice)), learned_(learned) {}

    // Takes intact frames of one layout with increasing numbers; `first`: the tag of the first. Frames of the other IP
    // version are not learned.
    template <Layout L>
    void take(rte_mbuf* const* frames, const Tag& first, std::span<const std::uint64_t> numbers) {
        if (!is_expected(first) || !is_connected(first) || numbers.back() >= learned_.frames ||
            L.ipv6 != table_->ipv6()) [[unlikely]]
            return;
        find(numbers);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            const auto* frame = rte_pktmbuf_mtod(frames[i], const std::uint8_t*);
            table_->learn<L.ipv6>(connections_[i], frame + L.source_at(),
                                  load<std::uint32_t>(frame + L.transport_at()));
        }
    }

    // Takes intact frames in any layouts and of any kinds, with increasing numbers. `first`: the tag of the first.
    // `alike_from(i)`: those from the i-th on that have their parts at the same places.
    template <class AlikeFrom>
    void take_mixed(const Tag& first, std::span<const std::uint64_t> numbers, const AlikeFrom& alike_from) {
        if (!is_expected(first) || numbers.back() >= learned_.frames) [[unlikely]]
            return;
        find(numbers);
        for (std::size_t i = 0; i < numbers.size();) {
            const auto [frames, tag_at, source] = alike_from(i);
            if (is_connected(read_tag(frames.front() + tag_at))) learn(&connections_[i], frames, source, tag_at);
            i += frames.size();
        }
    }

    // Takes one intact frame in any layout, in which the innermost IP packet's source and the tag are there.
    void take_any(const std::uint8_t* frame, const Range& source, const std::uint8_t* tag_at) {
        const Tag tag = read_tag(tag_at);
        if (!is_expected(tag) || !is_connected(tag) || tag.sequence >= learned_.frames) return;
        const std::uint32_t connection = choice_.of(tag.sequence);
        learn(&connection, std::array{frame}, source, static_cast<std::size_t>(tag_at - frame));
    }

private:
    [[nodiscard]] bool is_expected(const Tag& tag) const {
        return tag.trial == learned_.trial && tag.path() == index_of(learned_.direction) &&
               (tag.stream & kStreamBackground) == 0;
    }
    [[nodiscard]] bool is_connected(const Tag& tag) const { return is_among(learned_.kinds, tag); }

    // Numbers mostly follow each other.
    void find(std::span<const std::uint64_t> numbers) {
        if (numbers.back() - numbers.front() == numbers.size() - 1) [[likely]] {
            choice_.fill(numbers.front(), Stride(), numbers.size(), connections_.data());
        } else {
            for (std::size_t i = 0; i < numbers.size(); ++i) connections_[i] = choice_.of(numbers[i]);
        }
        for (std::size_t i = 0; i < numbers.size(); ++i) __builtin_prefetch(table_->entry(connections_[i]), 1);
    }

    // UDP is directly before the tag.
    void learn(const std::uint32_t* connections, std::span<const std::uint8_t* const> frames, const Range& source,
               std::size_t tag_at) {
        if (source.size() == sizeof(Ipv6) && table_->ipv6()) learn<true>(connections, frames, source, tag_at);
        if (source.size() == sizeof(Ipv4) && !table_->ipv6()) learn<false>(connections, frames, source, tag_at);
    }
    template <bool Ipv6>
    void learn(const std::uint32_t* connections, std::span<const std::uint8_t* const> frames, const Range& source,
               std::size_t tag_at) {
        const std::size_t ports_at = tag_at - kTagInUdp;
        for (std::size_t i = 0; i < frames.size(); ++i)
            table_->learn<Ipv6>(connections[i], frames[i] + source.from, load<std::uint32_t>(frames[i] + ports_at));
    }

    StateTable* table_;
    ConnectionChoice choice_;
    Learned learned_;
    alignas(kLanesAlignment) ConnectionNumbers connections_{};
};

}  // namespace dutperf
