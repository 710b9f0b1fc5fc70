// SPDX-License-Identifier: Apache-2.0
#include "trial/receiver.hpp"

#include <algorithm>

#include "frame/dissect.hpp"
#include "port/neighbour_responder.hpp"
#include "trial/any_tag.hpp"

namespace dutperf {

AnyTag Receiver::look_closer(const std::uint8_t* frame, std::size_t length) {
    const auto is_unchecked = [this](const Tag& tag) {
        return is_expected(tag) && of_path(tag.path())->statistics.is_unchecked(tag);
    };
    const TagSearch search{.from_end = statistics().tags_from_end(), .accepts_unfinished = parts_.accepts_unfinished};
    const AnyTag found = find_tag_behind_headers(frame, length, search, is_unchecked);
    if (!found.unfinished && !found.zero) return found;
    if (const Tag tag = read_tag(found.tag); is_expected(tag)) {
        RxStatistics& statistics = of_path(tag.path())->statistics;
        if (found.unfinished) statistics.take_unfinished();
        if (found.zero) statistics.take_zero_checksum();
    }
    return found;
}

bool Receiver::take_changed(const AnyTag& found, const std::uint8_t* frame, std::size_t length) {
    const ArrivingKind* kind = arriving_kind(found.tag);
    if (kind == nullptr) return false;
    // a plain frame has no VLAN tag
    const bool vlans = (!found.plain || !vlans_may_be_absent_) && !kind->vlan_tags.fit(frame, length);
    RxStatistics& statistics = statistics_of(found.tag);
    const auto may_go = [&](const AddressRanges& sent_to, const Range& at) {
        return statistics.arriving().may_differ(sent_to, frame, at).has_value();
    };
    const Range* elsewhere = !may_go(kind->sent_to, found.destination)          ? &found.destination
                             : !may_go(kind->outer_to, found.outer_destination) ? &found.outer_destination
                                                                                : nullptr;
    const bool encapsulation = !kind->fits(found);
    if (vlans) statistics.take_other_vlans(vlan_tags_of(frame, length));
    if (encapsulation) statistics.take_other_encapsulation(found.encapsulated());
    if (elsewhere != nullptr) statistics.take_other_destination(address_in(frame, *elsewhere));
    return vlans || encapsulation || elsewhere != nullptr;
}

void Receiver::take_mixed(rte_mbuf* const* frames, std::uint16_t count, RxStatistics::Burst& taken) {
    take_many(match_mixed_, frames, count, taken);
}

void Receiver::set_mixed_reference(const std::uint8_t* frame, std::size_t length) {
    const std::vector<std::uint16_t>& from_end = statistics().tags_from_end();
    const Dissected found = dissect(frame, length, from_end);
    if (found.tag == nullptr) return;
    AlsoSame also;
    if (const ArrivingKind* kind = arriving_kind(found.tag)) {
        const Arriving& arriving = statistics_of(found.tag).arriving();
        const auto fixed = [&](const AddressRanges& sent_to, const Range& at) -> AlsoSame::Address {
            return {at, arriving.may_differ(sent_to, frame, at).value_or(IpAddress{})};
        };
        also = {.vlans = kind->vlan_tags.compared(),
                .destination = fixed(kind->sent_to, found.destination),
                .outer_destination = fixed(kind->outer_to, found.outer_destination)};
    }
    match_mixed_.set_reference(frame, length, from_end, also);
}

void Receiver::set_plain_reference(const rte_mbuf& one) {
    const std::uint8_t* frame = begin_of(one);
    const std::size_t length = rte_pktmbuf_data_len(&one);
    const AnyTag found = find_plain_tag(frame, length);
    std::optional<IpAddress> but;
    if (const ArrivingKind* kind = arriving_kind(found.tag))
        but = statistics_of(found.tag).arriving().may_differ(kind->sent_to, frame, found.destination);
    is_ipv6(one) ? match6_.set_reference(frame, length, but) : match4_.set_reference(frame, length, but);
}

void Receiver::take_other_run(const Tag& first, std::span<const std::uint64_t> run, RxStatistics::Burst& taken) {
    OfPath* const of = of_path(first.path());
    if (!are_of_one_run(first.trial, trial_)) {
        statistics().take_other(OtherKind::other_run, run.size());
    } else if (first.trial != trial_) {
        (of != nullptr ? *of : *paths_.front()).statistics.take_stale(run.size());
    } else if (of == nullptr) {
        misdelivered_[first.path()] += run.size();
        statistics().take_other(OtherKind::wrong_direction, run.size());
    } else {
        turn_to(*of, taken);
        of->statistics.take(first, run, taken);
    }
}

bool Receiver::take_message(const rte_mbuf& one, RxStatistics::Burst& taken, BurstArrivals* arrivals) {
    if (parts_.answers && take_answer(one, taken, arrivals)) return true;
    const dns::Bytes frame(begin_of(one), rte_pktmbuf_data_len(&one));
    return parts_.answering != nullptr && parts_.answering->take(frame, taken.arrival - taken.unpolled);
}

bool Receiver::take_answer(const rte_mbuf& one, RxStatistics::Burst& taken, BurstArrivals* arrivals) {
    const auto answer = parts_.answers->take({begin_of(one), rte_pktmbuf_data_len(&one)}, taken.arrival);
    if (!answer) return false;
    RxStatistics& statistics = of_path(parts_.answers->path())->statistics;
    if (answer->unfinished) statistics.take_unfinished();
    if (!answer->intact) {
        statistics.take_corrupted(Corruption::other);
    } else if (answer->right && arrivals != nullptr) {
        take_arrived(one, *answer->right, taken, *arrivals);
    } else if (answer->right) {
        take_run(*answer->right, {&answer->right->sequence, 1}, taken);
    }
    return true;
}

// By a tag that may itself be corrupted.
void Receiver::take_corrupted(const Tag& tag, Corruption how) {
    OfPath* const of = tag.trial == trial_ ? of_path(tag.path()) : nullptr;
    of != nullptr ? of->statistics.take_corrupted(tag.sequence, how) : statistics().take_corrupted(how);
}

bool Receiver::take_recognised(const std::uint8_t* frame, std::size_t length, Ticks arrival) {
    for (std::size_t mark = 0; mark < parts_.marks.size(); ++mark) {
        if (!has_marks(parts_.marks[mark], frame, length)) continue;
        if (arrival < earliest_) {
            statistics().take_stale(1);
            return true;
        }
        Recognised& found = recognised_[mark];
        ++found.frames;
        found.length = std::min(length, found.last.size());
        std::copy_n(frame, found.length, found.last.begin());
        return true;
    }
    return false;
}

void Receiver::take_other(const std::uint8_t* frame, std::size_t length, RxStatistics::Burst& taken) {
    if (take_recognised(frame, length, taken.arrival)) return;
    const std::vector<FrameBytes> replies = parts_.neighbours.take(frame, length);
    if (replies.empty() && statistics().may_be_untagged(frame, length, taken.arrival)) {
        turn_to(*paths_.front(), taken);
        return statistics().take_untagged(frame, length, taken);
    }
    const InnermostPacket innermost = innermost_packet(frame, length);
    statistics().take_other(kind_in_tunnels(frame, length, innermost));
    if (const auto error = icmp_error_of(innermost)) icmp_errors_.add(*error);
    for (const FrameBytes& reply : replies) {
        rte_mbuf* buffer = make_frame(parts_.control_pool, reply);
        if (buffer != nullptr && rte_ring_enqueue(parts_.control, buffer) == 0) continue;
        rte_pktmbuf_free(buffer);
        ++replies_dropped_;
    }
}

}  // namespace dutperf
