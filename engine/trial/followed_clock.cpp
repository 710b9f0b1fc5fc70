// SPDX-License-Identifier: Apache-2.0
#include "trial/followed_clock.hpp"

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "platform/error.hpp"

namespace dutperf {

namespace {

constexpr std::uint64_t kReadingsPerS = 50;
constexpr int kBeforeAndAfter = 10;
constexpr std::chrono::milliseconds kApart{10};
constexpr int kTries = 5;  // of one reading; the tightest is used: an interrupt may separate its two clocks
// By which an oscillator's rate may change within a trial; more is somebody who corrects the clock.
constexpr double kWanders = 1e-6;
// A reading never differs by more from its prediction unless the clock was set. A record finds smaller steps, because
// it also knows the readings after them.
constexpr double kMaxUncertaintyS = 100e-6;

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

ForeignClock dpdk_clock(std::string name, ReadClock read) {
    const auto tightest = [read = std::move(read)] {
        std::optional<ClockPair> best;
        for (int i = 0; i < kTries; ++i) {
            const Ticks before = now_ticks();
            const auto nic = read();
            const Ticks width = now_ticks() - before;
            if (nic && (!best || width < best->width))
                best = ClockPair{.ticks = before + width / 2, .nic = *nic, .width = width};
        }
        return best;
    };
    return {.name = std::move(name),
            .read = tightest,
            .field = "offloads",
            .advice = "leave out receive_timestamps and send_at"};
}

ForeignClock ptp_clock(std::string name, PtpClock clock) {
    return {.name = std::move(name),
            .read = [shared = std::make_shared<PtpClock>(std::move(clock))] { return shared->compare(); },
            .field = "params.stamps",
            .advice = "leave stamps at kernel or loop",
            .is_recorded = true};
}

LiveMapping::LiveMapping(const ClockPair& first, const ClockPair& second, Ticks second_ticks)
    : second_(second_ticks), older_(first), newer_(first) {
    continue_from(second, 0);
}

void LiveMapping::follow(const ClockPair& now) {
    const double off = disagreement(now);
    worst_ = std::max(worst_, off + static_cast<double>(now.width) / 2);
    continue_from(now, off);
}

void LiveMapping::begin(const ClockPair& now) {
    continue_from(now, disagreement(now));
    worst_ = static_cast<double>(now.width) / 2;
}

double LiveMapping::disagreement(const ClockPair& now) const {
    return std::abs(static_cast<double>(static_cast<std::int64_t>(mapping_.ticks_of(now.nic) - now.ticks)));
}

void LiveMapping::continue_from(const ClockPair& now, double disagreement) {
    mapping_.ticks = now.ticks;
    mapping_.nic = now.nic;
    const auto passed = static_cast<std::int64_t>(now.nic - older_.nic);
    if (passed <= 0 ||
        disagreement >
            max_uncertainty()) {  // the clock was set, or not read for long: a rate across this would be wrong
        older_ = newer_ = now;
        return;
    }
    mapping_.ticks_per_nic = static_cast<double>(now.ticks - older_.ticks) / static_cast<double>(passed);
    if (now.ticks - newer_.ticks < second_) return;
    older_ = newer_;
    newer_ = now;
}

double LiveMapping::max_uncertainty() const { return static_cast<double>(second_) * kMaxUncertaintyS; }

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
        worst_rate_error_ = std::max(worst_rate_error_, (unsure_ns(i) + beyond) / own);
        const double bends =
            own * kWanders / 8;  // by which a clock whose rate changes leaves the line between readings
        error_ns_ = std::max(error_ns_, ns(std::max(pairs_[i].width, pairs_[i + 1].width)) / 2 + beyond + bends);
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

Clocks compared(const std::string& sending, const ClockRecord& of_sending, const std::string& receiving,
                const ClockRecord& of_receiving) {
    Clocks both;
    both.sending = {.name = sending, .at = Stamps::card};
    both.receiving = {.name = receiving, .at = Stamps::card};
    both.offset_ns = both.drift_ppm = 0;
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

FollowedClock::FollowedClock(ForeignClock clock, std::uint64_t clock_hz)
    : clock_(std::move(clock)), clock_hz_(clock_hz), live_(started()) {
    share();
}

void FollowedClock::begin() {
    pairs_.clear();
    if (!read()) refuse("can no longer be read");
    live_.begin(pairs_.back());
    share();
}

void FollowedClock::follow() {
    if (now_ticks() - last_ >= clock_hz_ / kReadingsPerS) end();
}

void FollowedClock::end() {
    if (read()) {
        live_.follow(pairs_.back());
    } else {
        live_.raise_uncertainty(now_ticks() - live_.mapping().ticks);
    }
    share();
}

ClockRecord FollowedClock::record() {
    read_repeatedly();
    return {pairs_, last_, clock_hz_};
}

void FollowedClock::refuse(const std::string& why) const {
    throw Error("port_unavailable", clock_.name + " " + why + ": " + clock_.advice, clock_.field);
}

// Returns whether there is a new reading.
bool FollowedClock::read() {
    last_ = now_ticks();
    const auto pair = clock_.read();
    if (!pair || (!pairs_.empty() && pair->ticks <= pairs_.back().ticks)) return false;
    if (!clock_.is_recorded && pairs_.size() >= kBeforeAndAfter) pairs_.clear();
    pairs_.push_back(*pair);
    return true;
}

void FollowedClock::read_repeatedly() {
    for (int i = 0; i < kBeforeAndAfter; ++i) {
        read();
        std::this_thread::sleep_for(kApart);
    }
}

LiveMapping FollowedClock::started() {
    const auto went_back = [this] {
        return pairs_.size() >= 2 && static_cast<std::int64_t>(pairs_.back().nic - pairs_.front().nic) <= 0;
    };
    read_repeatedly();
    if (went_back()) {  // it may have been set just then
        pairs_.clear();
        read_repeatedly();
    }
    if (pairs_.size() < 2) refuse("cannot be read");
    if (went_back()) refuse("does not advance, or was set");
    return {pairs_.front(), pairs_.back(), clock_hz_};
}

void FollowedClock::share() {
    ClockMapping mapping = live_.mapping();
    mapping.uncertainty = live_.uncertainty();
    mapping.max_uncertainty = live_.max_uncertainty();
    shared_.prepare(mapping);
    shared_.publish();
}

}  // namespace dutperf
