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

// Readings that were interrupted say less than their neighbours do.
std::vector<ClockPair> without_wide(std::vector<ClockPair> pairs) {
    std::vector<double> widths;
    widths.reserve(pairs.size());
    for (const ClockPair& pair : pairs) widths.push_back(static_cast<double>(pair.width));
    const double usual = median(std::move(widths));
    std::erase_if(pairs, [&](const ClockPair& pair) { return static_cast<double>(pair.width) > 2 * usual; });
    return pairs;
}

}  // namespace

ClockRecord::ClockRecord(std::vector<ClockPair> pairs, Ticks end, std::uint64_t clock_hz)
    : pairs_(without_wide(pairs)), ns_per_tick_(1e9 / static_cast<double>(clock_hz)) {
    find_rate();
    find_errors(end);
    const double before_first = ns(pairs_.front().ticks - pairs.front().ticks);
    error_ns_ = std::max(error_ns_, ns(pairs_.front().width) / 2 + before_first * (unsure_rate_ + kWanders));
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

void ClockRecord::find_errors(Ticks end) {
    for (std::size_t i = 0; i + 1 < pairs_.size(); ++i) {
        const double own = own_ns_between(i), unsure = unsure_ns(i) + own * unsure_rate_;
        const double off = card_ns_between(i) - own * rate_, beyond = std::max(std::abs(off) - unsure, 0.0);
        unread_ns_ = std::max(unread_ns_, own);
        error_ns_ = std::max(error_ns_, ns(std::max(pairs_[i].width, pairs_[i + 1].width)) / 2 + beyond);
        if (beyond > own * kWanders && std::abs(off) > std::abs(step_ns_)) step_ns_ = off;
    }
    const double since_last = end > pairs_.back().ticks ? ns(end - pairs_.back().ticks) : 0;
    unread_ns_ = std::max(unread_ns_, since_last);
    error_ns_ = std::max(error_ns_, ns(pairs_.back().width) / 2 + since_last * (unsure_rate_ + kWanders));
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

CardClocks compared(const std::string& sending, const ClockRecord& of_sending, const std::string& receiving,
                    const ClockRecord& of_receiving) {
    CardClocks both{.sending = sending, .receiving = receiving};
    const double steps[] = {of_sending.step_ns(), of_receiving.step_ns()};
    both.step_ns = std::abs(steps[0]) < std::abs(steps[1]) ? steps[1] : steps[0];
    both.unread_ns = std::max(of_sending.unread_ns(), of_receiving.unread_ns());
    if (sending == receiving) return both;
    const Ticks begin = of_sending.begin();
    both.offset_ns = static_cast<double>(of_receiving.card_ns(begin) - of_sending.card_ns(begin));
    both.drift_ppm = (of_receiving.rate() / of_sending.rate() - 1) * 1e6;
    both.error_ns = of_sending.error_ns() + of_receiving.error_ns();
    return both;
}

CardClock::CardClock(std::string name, PtpClock clock, std::uint64_t clock_hz)
    : name_(std::move(name)), clock_(std::move(clock)), clock_hz_(clock_hz) {}

void CardClock::begin() {
    pairs_.clear();
    compare_repeatedly();
    if (pairs_.size() < 2)
        throw Error("port_unavailable", name_ + " cannot be read: leave stamps at kernel or loop", "params.stamps");
}

void CardClock::follow() {
    if (now_ticks() - last_ >= clock_hz_ / kComparisonsPerS) compare();
}

ClockRecord CardClock::end() {
    compare_repeatedly();
    return {pairs_, last_, clock_hz_};
}

void CardClock::compare() {
    last_ = now_ticks();
    const auto read = clock_.compare();
    if (read && (pairs_.empty() || read->ticks > pairs_.back().ticks)) pairs_.push_back(*read);
}

void CardClock::compare_repeatedly() {
    for (int i = 0; i < kBeforeAndAfter; ++i) {
        compare();
        std::this_thread::sleep_for(kApart);
    }
}

}  // namespace dutperf
