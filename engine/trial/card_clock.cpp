// SPDX-License-Identifier: Apache-2.0
#include "trial/card_clock.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "platform/error.hpp"

namespace dutperf {

namespace {

constexpr std::uint64_t kComparisonsPerS = 50;
constexpr int kBeforeAndAfter = 10;
constexpr std::chrono::milliseconds kApart{10};
// By which an oscillator's rate may change within a trial; more is somebody who corrects the clock.
constexpr double kWanders = 1e-6;

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

}  // namespace

ClockRecord::ClockRecord(std::vector<ClockPair> pairs, std::uint64_t clock_hz)
    : pairs_(std::move(pairs)), ns_per_tick_(1e9 / static_cast<double>(clock_hz)) {
    find_rate();
    find_errors();
}

double ClockRecord::card_ns_between(std::size_t i) const {
    return static_cast<double>(static_cast<std::int64_t>(pairs_[i + 1].nic - pairs_[i].nic));
}

// By which the time between two comparisons may be wrong.
double ClockRecord::unsure_ns(std::size_t i) const { return ns(pairs_[i].width + pairs_[i + 1].width) / 2; }

// The median is that of a clock that was not set, though somebody set it once.
void ClockRecord::find_rate() {
    std::vector<double> rates, unsure;
    for (std::size_t i = 0; i + 1 < pairs_.size(); ++i) {
        rates.push_back(card_ns_between(i) / own_ns_between(i));
        unsure.push_back(unsure_ns(i) / own_ns_between(i));
    }
    rate_ = median(std::move(rates));
    unsure_rate_ = median(std::move(unsure));
}

void ClockRecord::find_errors() {
    for (std::size_t i = 0; i + 1 < pairs_.size(); ++i) {
        const double own = own_ns_between(i), unsure = unsure_ns(i) + own * unsure_rate_;
        const double off = card_ns_between(i) - own * rate_, beyond = std::max(std::abs(off) - unsure, 0.0);
        unread_ns_ = std::max(unread_ns_, own);
        error_ns_ = std::max(error_ns_, ns(std::max(pairs_[i].width, pairs_[i + 1].width)) / 2 + beyond);
        if (beyond > own * kWanders && std::abs(off) > std::abs(step_ns_)) step_ns_ = off;
    }
}

std::int64_t ClockRecord::own_ns(std::int64_t card_ns, Ticks base) const {
    const auto time = static_cast<std::uint64_t>(card_ns);
    const auto after = std::ranges::upper_bound(pairs_, time, {}, &ClockPair::nic);
    // of those beyond the first or last comparison, by the nearest one and the rate
    const bool inside = after != pairs_.begin() && after != pairs_.end();
    const auto from = after == pairs_.begin() ? pairs_.begin() : after - 1;
    const double since = static_cast<double>(static_cast<std::int64_t>(time - from->nic));
    const double own =
        inside ? since * ns(after->ticks - from->ticks) / static_cast<double>(after->nic - from->nic) : since / rate_;
    const auto from_base = static_cast<double>(static_cast<std::int64_t>(from->ticks - base)) * ns_per_tick_;
    return std::llround(from_base + own);
}

std::int64_t ClockRecord::card_ns(Ticks at) const {
    const auto since = static_cast<double>(static_cast<std::int64_t>(at - pairs_.front().ticks)) * ns_per_tick_;
    return static_cast<std::int64_t>(pairs_.front().nic) + std::llround(since * rate_);
}

CardClock::CardClock(std::string name, PtpClock clock, std::uint64_t clock_hz)
    : name_(std::move(name)), clock_(std::move(clock)), clock_hz_(clock_hz) {}

void CardClock::begin() {
    pairs_.clear();
    compare_repeatedly();
}

void CardClock::follow() {
    if (now_ticks() - last_ >= clock_hz_ / kComparisonsPerS) compare();
}

ClockRecord CardClock::end() {
    compare_repeatedly();
    return {pairs_, clock_hz_};
}

bool CardClock::compare() {
    last_ = now_ticks();
    const auto read = clock_.compare();
    const bool is_later = read && (pairs_.empty() || read->ticks > pairs_.back().ticks);
    if (is_later) pairs_.push_back(*read);
    return is_later;
}

void CardClock::compare_repeatedly() {
    bool was_read = false;
    for (int i = 0; i < kBeforeAndAfter; ++i) {
        was_read |= compare();
        std::this_thread::sleep_for(kApart);
    }
    if (!was_read)
        throw Error("port_unavailable", name_ + " can no longer be read: leave stamps at loop", "params.stamps");
}

}  // namespace dutperf
