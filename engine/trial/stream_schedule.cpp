// SPDX-License-Identifier: Apache-2.0
#include "trial/stream_schedule.hpp"

namespace dutperf {

namespace {

AnySchedule steady_schedule(const TrialSpec& spec, const Shared& of, std::uint64_t clock_hz) {
    const StreamSpec& stream = *spec.streams[index_of(of.direction)];
    const std::uint64_t frames = spec.intended(of.direction);
    if (!stream.then) return ConstantRate(clock_hz, stream.rate_fps, frames, spec.burst, of.share);
    const std::uint64_t before_change = spec.due_before(of.direction, stream.interval.begin_ns + stream.then->after_ns);
    const Ticks change = ticks_of(stream.then->after_ns, clock_hz) + 1;  // rounded up: no frame is early
    return ChangingRate(
        {clock_hz, stream.rate_fps, before_change, spec.burst, of.share},
        {clock_hz, stream.then->rate_fps, frames - before_change, spec.burst, of.share.from(before_change)}, change,
        spec.burst);
}

}  // namespace

AnySchedule schedule_of(const TrialSpec& spec, const Shared& of, std::uint64_t clock_hz) {
    const StreamSpec& stream = *spec.streams[index_of(of.direction)];
    const std::uint64_t frames = spec.intended(of.direction);
    if (const auto* bursts = std::get_if<Bursts>(&stream.pattern)) {
        return Listed(BurstTimes(*bursts, clock_hz, stream.rate_fps), frames, spec.burst, of.share);
    }
    if (const auto* profile = std::get_if<Profile>(&stream.pattern)) {
        return Listed(ProfileTimes(*profile, clock_hz), frames, spec.burst, of.share);
    }
    if (const auto* joining = std::get_if<Joining>(&stream.pattern)) {
        return Listed(JoiningTimes(*joining, clock_hz), frames, spec.burst, of.share);
    }
    if (const auto* recorded = std::get_if<Recorded>(&stream.pattern)) {
        return Listed(RecordedTimes(*recorded, clock_hz), frames, spec.burst, of.share);
    }
    if (std::holds_alternative<Poisson>(stream.pattern)) {
        const Ticks all = ticks_of(spec.sends_ns(of.direction), clock_hz);
        return Listed(PoissonTimes(spec.uniform_times(of.direction), all), frames, spec.burst, of.share);
    }
    return steady_schedule(spec, of, clock_hz);
}

}  // namespace dutperf
