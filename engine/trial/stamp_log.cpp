// SPDX-License-Identifier: Apache-2.0
#include "trial/stamp_log.hpp"

#include <algorithm>

#include "frame/arrival.hpp"
#include "frame/dissect.hpp"

namespace dutperf {

StampLog::StampLog(const Port& port, TrialMark trial, std::size_t paths, std::vector<std::uint16_t> tags_from_end)
    : socket_(port.spec().argument, port.interface_index(), port.side(), tags_from_end),
      trial_(trial),
      tags_from_end_(std::move(tags_from_end)),
      accepts_unfinished_(port.may_leave_checksums_unfinished()),
      left_(paths),
      arrived_(paths) {}

void StampLog::read() {
    socket_.take([this](auto frame, std::int64_t at_ns) { note(left_, frame, at_ns); },
                 [this](auto frame, std::int64_t at_ns) { note(arrived_, frame, at_ns); });
}

// As the receiver does it: frames that it does not count have no delay.
void StampLog::note(Stamps& stamps, std::span<const std::uint8_t> frame, std::int64_t at_ns) const {
    const std::uint8_t* tag = find_tag(frame.data(), frame.size());
    if (tag == nullptr || !is_intact(frame.data(), frame.size())) {
        const Dissected dissected = dissect(frame.data(), frame.size(), tags_from_end_);
        tag = dissected.intact || (dissected.unfinished && accepts_unfinished_) ? dissected.tag : nullptr;
    }
    if (tag == nullptr) return;
    const Tag of = read_tag(tag);
    if (of.trial == trial_ && of.path() < stamps.size()) stamps[of.path()].emplace_back(of.sequence, at_ns);
}

StampsMatched match_stamps(const std::vector<StampLog::Stamp>& left, const std::vector<StampLog::Stamp>& arrived,
                           const std::function<void(std::uint64_t, std::uint64_t)>& visit) {
    std::vector<StampLog::Stamp> by_number = left;
    std::ranges::sort(by_number);
    std::vector<bool> seen(by_number.size());
    StampsMatched matched;
    for (const auto& [number, at_ns] : arrived) {
        const auto found = std::ranges::lower_bound(by_number, number, {}, &StampLog::Stamp::first);
        if (found == by_number.end() || found->first != number) {
            ++matched.no_transmit;
            continue;
        }
        const auto place = static_cast<std::size_t>(found - by_number.begin());
        if (seen[place]) continue;
        seen[place] = true;
        ++matched.both;
        const std::int64_t delay = at_ns - found->second;
        matched.impossible += delay < 0 ? 1 : 0;
        visit(number, static_cast<std::uint64_t>(std::max<std::int64_t>(delay, 0)));
    }
    return matched;
}

}  // namespace dutperf
