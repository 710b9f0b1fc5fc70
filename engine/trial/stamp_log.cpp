// SPDX-License-Identifier: Apache-2.0
#include "trial/stamp_log.hpp"

#include <algorithm>
#include <unordered_set>

#include "trial/any_tag.hpp"

namespace dutperf {

StampLog::StampLog(StampedBy by, const Port& port, PassingProgram* passing, TrialMark trial, std::vector<OfPath> paths,
                   std::vector<std::uint16_t> tags_from_end)
    : without_program_(passing),
      socket_(by, port.interface_index(), port.side(), tags_from_end),
      trial_(trial),
      paths_(std::move(paths)),
      tags_from_end_(std::move(tags_from_end)),
      accepts_unfinished_(port.may_leave_checksums_unfinished()),
      left_(paths_.size()),
      arrived_(paths_.size()) {}

bool StampLog::read() {
    return socket_.take([this](auto frame, std::int64_t at_ns) { note(left_, frame, at_ns); },
                        [this](auto frame, std::int64_t at_ns) { note(arrived_, frame, at_ns); });
}

// As the receiver does it: frames that it does not count have no delay.
void StampLog::note(Stamps& stamps, std::span<const std::uint8_t> frame, std::int64_t at_ns) const {
    const auto is_of_trial = [&](const Tag& tag) { return tag.trial == trial_ && tag.path() < stamps.size(); };
    const auto is_unchecked = [&](const Tag& tag) {
        return is_of_trial(tag) && is_among(paths_[tag.path()].unchecked_kinds, tag);
    };
    const AnyTag found =
        find_any_tag(frame.data(), frame.size(),
                     {.from_end = tags_from_end_, .accepts_unfinished = accepts_unfinished_}, is_unchecked);
    if (!found.intact) return;
    const Tag tag = read_tag(found.tag);
    if (!is_of_trial(tag)) return;
    const ArrivingKind* kind = paths_[tag.path()].arriving.kind_of(tag);
    if (kind == nullptr || kind->fits(found.payload)) stamps[tag.path()].emplace_back(tag.sequence, at_ns);
}

StampsMatched match_stamps(const std::vector<StampLog::Stamp>& left, const std::vector<StampLog::Stamp>& arrived,
                           const std::function<void(std::uint64_t, std::uint64_t)>& visit, std::int64_t error_ns) {
    std::vector<StampLog::Stamp> by_number = left;
    std::ranges::sort(by_number);
    std::vector<bool> seen(by_number.size());
    StampsMatched matched;
    std::unordered_set<std::uint64_t> unmatched;
    for (const auto& [number, at_ns] : arrived) {
        const auto found = std::ranges::lower_bound(by_number, number, {}, &StampLog::Stamp::first);
        if (found == by_number.end() || found->first != number) {
            matched.no_transmit += unmatched.insert(number).second ? 1 : 0;
            continue;
        }
        const auto place = static_cast<std::size_t>(found - by_number.begin());
        if (seen[place]) continue;
        seen[place] = true;
        ++matched.both;
        const std::int64_t delay = at_ns - found->second;
        matched.impossible += delay < -error_ns ? 1 : 0;
        visit(number, static_cast<std::uint64_t>(std::max<std::int64_t>(delay, 0)));
    }
    return matched;
}

}  // namespace dutperf
