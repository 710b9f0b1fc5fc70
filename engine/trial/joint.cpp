// SPDX-License-Identifier: Apache-2.0
#include "trial/joint.hpp"

#include <algorithm>
#include <numeric>

namespace dutperf {

namespace {

void add(const ReceiverCounts& counts, JointCounts& into) {
    into.received += counts.received;
    into.background += counts.background;
    into.duplicates += counts.duplicates;
    into.out_of_order += counts.out_of_order;
    into.stale += counts.stale;
    into.damaged += counts.damaged;
    into.stamped += counts.stamped;
    into.late += counts.late;
    into.early += counts.early;
    for (std::size_t kind = 0; kind < kOtherKinds; ++kind) into.other[kind] += counts.other[kind];
}

}  // namespace

std::uint64_t SentFrames::count() const { return std::accumulate(of_senders_.begin(), of_senders_.end(), std::uint64_t{0}); }

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

JointCounts join(const std::vector<Account*>& receivers, const FrameKinds& kinds) {
    JointCounts joint;
    for (const Account* one : receivers) add(one->counts(), joint);
    const bool timeout = receivers.front()->in_time().has_value();
    std::uint64_t came = joint.received + joint.late;
    const auto received_twice = [&](std::uint64_t number) {
        --joint.received;
        joint.background -= kinds.is_background(number) ? 1 : 0;
    };
    const auto came_twice = [&](std::uint64_t number) {
        --came;
        ++joint.duplicates;
        joint.stamped -= kinds.is_stamped(number) ? 1 : 0;
        if (!timeout) received_twice(number);
    };
    for (std::size_t i = 1; i < receivers.size(); ++i) {
        receivers.front()->window().join(receivers[i]->window(), came_twice);
        if (timeout) receivers.front()->in_time()->join(*receivers[i]->in_time(), received_twice);
    }
    joint.late = came - joint.received;
    return joint;
}

std::optional<Histogram> joint_delay(const std::vector<Account*>& receivers) {
    std::optional<Histogram> all = receivers.front()->delay();
    for (std::size_t i = 1; i < receivers.size() && all; ++i) all->add(*receivers[i]->delay());
    return all;
}

std::optional<JointArrivals> joint_arrivals(const std::vector<Account*>& receivers) {
    std::vector<const Silences*> silences;
    for (const Account* one : receivers) {
        if (one->silences().any()) silences.push_back(&one->silences());
    }
    return silences.empty() ? std::nullopt : std::optional(joined(silences));
}

const MissingFrames& missing_of(SequenceWindow& came, const SentFrames& sent) {
    sent.for_each_unsent([&came](std::uint64_t number) { came.insert(number); });  // not missed, as if they had come
    return came.missing_of(sent.end());
}

}  // namespace dutperf
