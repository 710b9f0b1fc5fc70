// SPDX-License-Identifier: Apache-2.0
#include "trial/merge.hpp"

#include <algorithm>
#include <numeric>

namespace dutperf {

namespace {

void add_each(std::vector<Histogram>& to, const std::vector<Histogram>& all) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i].add(all[i]);
}

void add(const ReceiverCounts& counts, MergedCounts& into) {
    into.received += counts.received;
    into.background += counts.background;
    into.duplicates += counts.duplicates;
    into.out_of_order += counts.out_of_order;
    into.stale += counts.stale;
    into.corrupted += counts.corrupted;
    for (std::size_t how = 0; how < counts.corrupted_by.size(); ++how)
        into.corrupted_by[how] += counts.corrupted_by[how];
    into.stamped += counts.stamped;
    into.late += counts.late;
    into.early += counts.early;
    into.unfinished += counts.unfinished;
    into.zero_checksums += counts.zero_checksums;
    into.not_decapsulated += counts.not_decapsulated;
    into.not_encapsulated += counts.not_encapsulated;
    for (std::size_t kind = 0; kind < kOtherKinds; ++kind) into.other[kind] += counts.other[kind];
}

}  // namespace

std::uint64_t SentFrames::count() const {
    return std::accumulate(of_senders_.begin(), of_senders_.end(), std::uint64_t{0});
}

std::uint64_t SentFrames::end() const {
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < of_senders_.size(); ++i) {
        if (of_senders_[i] != 0) end = std::max(end, share(i).number(of_senders_[i] - 1) + 1);
    }
    return end;
}

void SentFrames::for_each_unsent(const std::function<void(std::uint64_t)>& visit) const {
    const std::uint64_t highest = end();
    for (std::size_t i = 0; i < of_senders_.size(); ++i) {
        for (std::uint64_t j = of_senders_[i]; j < share(i).among(highest); ++j) visit(share(i).number(j));
    }
}

MergedCounts merge(const std::vector<RxStatistics*>& receivers, const FrameKinds& kinds) {
    MergedCounts merged;
    for (const RxStatistics* one : receivers) add(one->counts(), merged);
    const bool timeout = receivers.front()->in_time().has_value();
    std::uint64_t came = merged.received + merged.late;
    const auto received_twice = [&](std::uint64_t number) {
        --merged.received;
        merged.background -= kinds.is_background(number) ? 1 : 0;
    };
    const auto came_twice = [&](std::uint64_t number) {
        --came;
        ++merged.duplicates;
        merged.stamped -= kinds.is_stamped(number) ? 1 : 0;
        if (!timeout) received_twice(number);
    };
    for (std::size_t i = 1; i < receivers.size(); ++i) {
        receivers.front()->window().merge(receivers[i]->window(), came_twice);
        if (timeout) receivers.front()->in_time()->merge(*receivers[i]->in_time(), received_twice);
    }
    merged.late = came - merged.received;
    return merged;
}

std::optional<Histogram> merged_delay(const std::vector<RxStatistics*>& receivers) {
    std::optional<Histogram> all = receivers.front()->delay();
    for (std::size_t i = 1; i < receivers.size() && all; ++i) all->add(*receivers[i]->delay());
    return all;
}

std::vector<Histogram> merged_part_delays(const std::vector<RxStatistics*>& receivers) {
    if (!receivers.front()->part_delays()) return {};
    std::vector<Histogram> all = receivers.front()->part_delays()->delays();
    for (std::size_t i = 1; i < receivers.size(); ++i) add_each(all, receivers[i]->part_delays()->delays());
    return all;
}

std::vector<Histogram> merged_stream_delays(const std::vector<RxStatistics*>& receivers) {
    std::vector<Histogram> all = receivers.front()->stream_delays();
    for (std::size_t i = 1; i < receivers.size(); ++i) add_each(all, receivers[i]->stream_delays());
    return all;
}

std::vector<TesterTime> merged_tester_time(const std::vector<RxStatistics*>& receivers) {
    std::vector<TesterTime> all(1);
    if (const auto& parts = receivers.front()->part_delays()) all.resize(parts->tester().size());
    for (const RxStatistics* one : receivers) {
        if (!one->part_delays()) all.front().add(one->tester_time());
        for (std::size_t part = 0; one->part_delays() && part < all.size(); ++part)
            all[part].add(one->part_delays()->tester()[part]);
    }
    return all;
}

std::optional<MergedArrivals> merged_arrivals(const std::vector<RxStatistics*>& receivers) {
    std::vector<const ArrivalGaps*> arrival_gaps;
    for (const RxStatistics* one : receivers) {
        if (one->arrival_gaps().any()) arrival_gaps.push_back(&one->arrival_gaps());
    }
    return arrival_gaps.empty() ? std::nullopt : std::optional(merge_arrivals(arrival_gaps));
}

const MissingFrames& missing_of(SequenceWindow& came, const SentFrames& sent) {
    sent.for_each_unsent([&came](std::uint64_t number) { came.insert(number); });  // unsent frames are not missing
    return came.missing_of(sent.end());
}

}  // namespace dutperf
