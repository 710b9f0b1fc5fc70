// SPDX-License-Identifier: Apache-2.0
#include "pace/profile.hpp"

#include <algorithm>
#include <cmath>

namespace dutperf {

namespace {

__extension__ using SignedWide = __int128;

SignedWide change_fps(const Profile::Segment& of) {
    return static_cast<SignedWide>(of.to_fps) - static_cast<SignedWide>(of.from_fps);
}

// The integral of a segment's rate over its first `ns`, times its duration.
SignedWide integral_by_duration(const Profile::Segment& of, std::uint64_t ns) {
    const auto time = static_cast<SignedWide>(ns);
    return change_fps(of) * time * time + static_cast<SignedWide>(2 * of.from_fps) * of.duration_ns * time;
}

// Close to last_ns(limit): the solution of the quadratic equation in floating point.
std::uint64_t estimate_ns(const Profile::Segment& of, Wide limit) {
    const auto from = static_cast<double>(of.from_fps), wanted = static_cast<double>(limit);
    const double slope = static_cast<double>(change_fps(of)) / static_cast<double>(of.duration_ns);
    const double divisor = from + std::sqrt(std::max(0.0, from * from + slope * wanted));
    return divisor > 0 ? std::min(static_cast<std::uint64_t>(wanted / divisor), of.duration_ns - 1) : 0;
}

}  // namespace

std::uint64_t Profile::Segment::last_ns(Wide limit) const {
    const SignedWide wanted = static_cast<SignedWide>(limit) * duration_ns;
    const auto is_reached = [&](std::uint64_t ns) { return integral_by_duration(*this, ns) <= wanted; };
    std::uint64_t low = estimate_ns(*this, limit), step = 1;
    for (; !is_reached(low); step *= 2) low -= std::min(low, step);
    std::uint64_t high = low + step;
    for (; high < duration_ns && is_reached(high); high += step *= 2) low = high;
    high = std::min(high, duration_ns);
    while (high - low > 1) {
        const std::uint64_t middle = low + (high - low) / 2;
        (is_reached(middle) ? low : high) = middle;
    }
    return low;
}

Profile::Profile(std::vector<Segment> segments) : segments_(std::move(segments)) {
    for (const Segment& one : segments_) {
        begins_ns_.push_back(begins_ns_.back() + one.duration_ns);
        begins_.push_back(begins_.back() + one.integral());
    }
}

std::uint64_t Profile::highest_fps() const {
    std::uint64_t highest = 0;
    for (const Segment& one : segments_) highest = std::max({highest, one.from_fps, one.to_fps});
    return highest;
}

double Profile::share_from(double fps) const {
    double time_ns = 0;
    for (const Segment& one : segments_) {
        const auto [low, high] = std::minmax({static_cast<double>(one.from_fps), static_cast<double>(one.to_fps)});
        const double share = low >= fps ? 1 : high < fps ? 0 : (high - fps) / (high - low);
        time_ns += share * static_cast<double>(one.duration_ns);
    }
    return time_ns / static_cast<double>(begins_ns_.back());
}

std::uint64_t Profile::frames_before(std::uint64_t after_ns) const {
    const std::uint64_t rounds = after_ns / begins_ns_.back(), rest_ns = after_ns % begins_ns_.back();
    const auto at = static_cast<std::size_t>(std::ranges::upper_bound(begins_ns_, rest_ns) - begins_ns_.begin()) - 1;
    const Segment& segment = segments_[at];
    const SignedWide product = integral_by_duration(segment, rest_ns - begins_ns_[at]), divisor = segment.duration_ns;
    const Wide frames = rounds * begins_.back() + begins_[at] + static_cast<Wide>((product + divisor - 1) / divisor);
    return static_cast<std::uint64_t>((frames + kOneFrame - 1) / kOneFrame);
}

std::uint64_t Profile::due_ns(std::uint64_t k) const {
    const Wide frames = static_cast<Wide>(k) * kOneFrame, rest = frames % begins_.back();
    const auto rounds = static_cast<std::uint64_t>(frames / begins_.back());
    const auto at = static_cast<std::size_t>(std::ranges::upper_bound(begins_, rest) - begins_.begin()) - 1;
    return rounds * begins_ns_.back() + begins_ns_[at] + segments_[at].last_ns(rest - begins_[at]);
}

}  // namespace dutperf
