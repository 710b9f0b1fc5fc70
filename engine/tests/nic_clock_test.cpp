// SPDX-License-Identifier: Apache-2.0
#include "trial/nic_clock.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "frame/tag.hpp"
#include "platform/clock.hpp"
#include "platform/error.hpp"
#include "trial/departures.hpp"
#include "trial/nic_stamps.hpp"
#include "trial/rx_statistics.hpp"

namespace dutperf {
namespace {

constexpr Ticks kSecond = 2'000'000'000;

// A NIC clock with one tick per `ticks_per_nic` and an arbitrary start.
struct Oscillator {
    double ticks_per_nic = 16.0005;
    std::uint64_t at_zero = 0xFFFF'FFFF'FFFF'0000;  // it wraps

    [[nodiscard]] std::uint64_t at(Ticks ticks) const {
        return at_zero + static_cast<std::uint64_t>(static_cast<double>(ticks) / ticks_per_nic);
    }
    [[nodiscard]] ClockPair pair(Ticks ticks, Ticks width = 0) const { return {ticks, at(ticks), width}; }
};

TEST(ClockMapping, NicTimesAreNeverEarly) {
    const ClockMapping mapping{
        .ticks = 1'000'000'000'000, .nic = 0xFFFF'FFFF'FFFF'FF00, .ticks_per_nic = 24.0019, .uncertainty = 0};
    for (Ticks at = mapping.ticks - 100'000; at < mapping.ticks + 100'000; at += 997) {
        const Ticks nic_time = mapping.ticks_of(mapping.nic_at_or_after(at));
        EXPECT_GE(nic_time + 1, at);  // rounded
        EXPECT_LT(nic_time, at + 26);
    }
}

TEST(ClockMapping, OutOfRangeTimesAreClamped) {
    const ClockMapping mapping{.ticks = 1'000'000'000'000, .nic = 1'000'000, .ticks_per_nic = 24.0019};
    EXPECT_GT(static_cast<std::int64_t>(mapping.ticks_of(mapping.nic + (std::uint64_t{1} << 62U)) - mapping.ticks),
              std::int64_t{1} << 60U);
    EXPECT_LT(static_cast<std::int64_t>(mapping.ticks_of(mapping.nic - (std::uint64_t{1} << 62U)) - mapping.ticks),
              -(std::int64_t{1} << 60U));
}

double error_of(const ClockMapping& mapping, const Oscillator& nic, Ticks ticks) {
    return static_cast<double>(static_cast<std::int64_t>(mapping.ticks_of(nic.at(ticks)) - ticks));
}

TEST(NicClock, ConvertsTimesBeforeAndAfterAReading) {
    const Oscillator nic;
    const NicClock clock(nic.pair(kSecond), nic.pair(kSecond + kSecond / 10), kSecond);
    for (const Ticks at : {kSecond, kSecond + kSecond / 20, kSecond + kSecond / 5})
        EXPECT_NEAR(error_of(clock.mapping(), nic, at), 0, 40);
    EXPECT_NEAR(clock.uncertainty(), 16, 0.1);  // a tick of the NIC
}

TEST(NicClock, FollowsADriftingClockAndReportsItsError) {
    Oscillator nic{.ticks_per_nic = 2, .at_zero = 0};
    NicClock clock(nic.pair(0), nic.pair(kSecond / 10), kSecond);
    std::uint64_t nic_now = nic.at(kSecond / 10);
    double worst = 0;
    for (Ticks ticks = kSecond / 10; ticks < 20 * kSecond; ticks += kSecond / 50) {
        nic_now += kSecond / 50 / 2 + kSecond / 50 / 2 * (ticks / kSecond) / 1'000'000;  // 1 ppm faster each second
        const ClockPair pair{ticks + kSecond / 50, nic_now, 0};
        worst = std::max(
            worst,
            std::abs(static_cast<double>(static_cast<std::int64_t>(clock.mapping().ticks_of(nic_now) - pair.ticks))));
        clock.follow(pair);
        EXPECT_EQ(clock.mapping().ticks_of(nic_now), pair.ticks);
    }
    EXPECT_DOUBLE_EQ(clock.uncertainty(), worst + clock.mapping().ticks_per_nic);
    EXPECT_LT(worst, 200);  // of 40 million ticks between readings
    EXPECT_GT(worst, 10);
}

TEST(NicClock, UncertaintyIncludesTheWidthOfReadings) {
    const Oscillator nic{.ticks_per_nic = 1, .at_zero = 5};
    NicClock clock(nic.pair(0), nic.pair(kSecond), kSecond);
    clock.begin(nic.pair(2 * kSecond, 600));
    EXPECT_NEAR(clock.uncertainty(), 300 + 1, 0.01);
    clock.follow(nic.pair(2 * kSecond + 1000, 1000));
    EXPECT_NEAR(clock.uncertainty(), 500 + 1, 0.01);
    clock.begin(nic.pair(3 * kSecond));
    EXPECT_NEAR(clock.uncertainty(), 1, 0.01);
    clock.raise_uncertainty(12345);
    EXPECT_NEAR(clock.uncertainty(), 12346, 0.01);
}

TEST(NicClock, AJumpCountsInItsTrialOnly) {
    for (const std::int64_t jump : {1'000'000LL, 1'000'000'000'000'000'000LL, -1'000'000'000LL}) {
        Oscillator nic{.ticks_per_nic = 2, .at_zero = 10'000'000'000};
        NicClock clock(nic.pair(0), nic.pair(kSecond / 10), kSecond);
        nic.at_zero += static_cast<std::uint64_t>(jump);
        clock.follow(nic.pair(kSecond / 8));
        const double expected = 2.0 * static_cast<double>(std::abs(jump));
        EXPECT_NEAR(clock.uncertainty(), expected, 200'000 + expected / 1e9);
        EXPECT_NEAR(clock.mapping().ticks_per_nic, 2,
                    1e-6);  // the rate is still the old one: no reading gives a new one
        clock.begin(nic.pair(kSecond / 5));
        clock.follow(nic.pair(kSecond / 5 + kSecond / 50));
        EXPECT_NEAR(clock.uncertainty(), 2, 10);
        for (Ticks at = kSecond / 4; at < 4 * kSecond; at += kSecond / 50) clock.follow(nic.pair(at));
        clock.begin(nic.pair(4 * kSecond));
        clock.follow(nic.pair(4 * kSecond + kSecond / 50));
        EXPECT_NEAR(clock.uncertainty(), 2, 10);
    }
}

TEST(NicClock, ALongGapBetweenReadingsIsNoLastingJump) {
    Oscillator nic{.ticks_per_nic = 2, .at_zero = 0};
    NicClock clock(nic.pair(0, 4'000), nic.pair(kSecond / 10 + 200),
                   kSecond);  // the first reading was 1 us off: 10 us a second
    clock.begin(nic.pair(100 * kSecond));
    clock.follow(nic.pair(100 * kSecond + kSecond / 50));
    EXPECT_LT(clock.uncertainty(), 500);
    clock.follow(nic.pair(100 * kSecond + kSecond / 25));
    EXPECT_LT(clock.uncertainty(), 500);
}

TEST(FollowedClock, RejectsAClockThatStopsOrCannotBeRead) {
    const auto code_of = [](const ReadClock& read) {
        try {
            const FollowedClock clock(read, kSecond);
        } catch (const Error& error) {
            return error.field();
        }
        return std::string("none");
    };
    EXPECT_EQ(code_of([] { return std::optional<std::uint64_t>(7); }), "offloads");
    EXPECT_EQ(code_of([]() -> std::optional<std::uint64_t> { return std::nullopt; }), "offloads");
    EXPECT_EQ(code_of([] { return std::optional(now_ticks() / 3); }), "none");
}

TEST(FollowedClock, CountsTheTimeWithoutReadings) {
    bool reads = true;
    FollowedClock clock([&] { return reads ? std::optional(now_ticks() / 3) : std::nullopt; }, kSecond);
    clock.begin();
    const Ticks since = now_ticks();
    reads = false;
    while (now_ticks() - since < kSecond / 20) {
    }
    clock.follow();
    EXPECT_GE(clock.uncertainty(), static_cast<double>(kSecond / 20));
    EXPECT_NEAR(static_cast<double>(clock.mapping().ticks_of(since / 3)), static_cast<double>(since), 1e6);
}

// Due times of a constant rate, and frames to send at them.
struct Sending {
    static constexpr std::uint32_t kFrames = 5;
    static constexpr Ticks kEvery = 1'000'000;
    std::array<rte_mbuf, kFrames> frames{};
    std::array<rte_mbuf*, kFrames> burst{};
    ConstantRate schedule{kSecond, kSecond / kEvery, kFrames, kFrames};
    TimeField field{.offset = offsetof(rte_mbuf, dynfield1), .flag = std::uint64_t{1} << 23U};

    Sending() {
        for (std::uint32_t i = 0; i < kFrames; ++i) burst[i] = &frames[i];
        for (rte_mbuf& frame : frames) frame.ol_flags = field.flag;  // left from an earlier use
    }
};

TEST(Departures, AreTheDueTimesPlusTheClocksUncertainty) {
    FollowedClock clock([] { return std::optional(now_ticks() / 2); }, kSecond);
    Sending sending;
    const Ticks now = now_ticks(), margin = static_cast<Ticks>(std::ceil(clock.mapping().uncertainty));
    sending.schedule.start(now - 3 * Sending::kEvery / 2);  // two are late, three are ahead
    Departures departures({&clock, sending.field, 10 * Sending::kEvery});
    const Ticks* times = departures.plan(sending.schedule, Sending::kFrames, now);
    departures.write(sending.burst.data(), Sending::kFrames);
    for (std::uint32_t i = 0; i < Sending::kFrames; ++i) {
        const Ticks due = sending.schedule.due_of(i);
        EXPECT_EQ(times[i], std::max(now, due + margin));
        EXPECT_EQ(sending.field.is_set(sending.burst[i]), i >= 2);
        if (i < 2) continue;
        const Ticks leaves = clock.mapping().ticks_of(sending.field.time(sending.burst[i]));
        EXPECT_GE(leaves + 1, due + margin);
        EXPECT_LE(leaves, due + margin + 4);
    }
    EXPECT_EQ(departures.counts().timed, 3);
    EXPECT_EQ(departures.counts().at_once, 2);
}

TEST(Departures, AreAtOnceWhenTheClockIsNotUsable) {
    bool reads = true;
    FollowedClock clock([&] { return reads ? std::optional(now_ticks() / 2) : std::nullopt; }, kSecond);
    Sending sending;
    Departures departures({&clock, sending.field, 10 * Sending::kEvery});
    EXPECT_EQ(departures.lead(), 10 * Sending::kEvery);
    reads = false;
    const Ticks since = now_ticks();
    while (now_ticks() - since < kSecond / 1000) {
    }
    clock.end();  // the clock could not be read for a millisecond
    const Ticks now = now_ticks();
    sending.schedule.start(now);
    const Ticks* times = departures.plan(sending.schedule, Sending::kFrames, now);
    departures.write(sending.burst.data(), Sending::kFrames);
    for (std::uint32_t i = 0; i < Sending::kFrames; ++i) {
        EXPECT_EQ(times[i], now);
        EXPECT_FALSE(sending.field.is_set(sending.burst[i]));
    }
    EXPECT_EQ(departures.counts().at_once, Sending::kFrames);
    EXPECT_EQ(departures.lead(), 0);
}

TEST(Departures, LeadByAtMostHalfTheRing) {
    constexpr std::uint64_t kHz = 2'000'000'000;
    EXPECT_EQ(lead_at(1'000, 1024, kHz), 400'000);
    EXPECT_EQ(lead_at(2'560'000, 1024, kHz), 400'000);
    EXPECT_EQ(lead_at(14'880'953, 1024, kHz) * 14'880'953 / kHz, 511);  // frames
    EXPECT_EQ(lead_at(14'880'953, 512, kHz) * 14'880'953 / kHz, 255);
}

TEST(Departures, AreNotPlannedWithoutAClock) {
    Sending sending;
    sending.schedule.start(0);
    Departures departures({});
    EXPECT_EQ(departures.plan(sending.schedule, Sending::kFrames, 1), nullptr);
    EXPECT_EQ(departures.lead(), 0);
}

// A frame with an optional NIC time stamp.
struct Buffer {
    rte_mbuf frame{};
    TimeField field{.offset = offsetof(rte_mbuf, dynfield1), .flag = std::uint64_t{1} << 23U};

    explicit Buffer(std::optional<std::uint64_t> nic) {
        if (!nic) return;
        frame.ol_flags = field.flag;
        *RTE_MBUF_DYNFIELD(&frame, field.offset, rte_mbuf_timestamp_t*) = *nic;
    }
};

// A NIC clock that equals the tester's within about 1 ppm.
struct Arriving {
    FollowedClock clock{[] { return std::optional(now_ticks()); }, kSecond};
    Ticks polled = now_ticks(), sent = polled - 1'000'000;
    Tag stamped{.trial = 1, .stream = 0, .sequence = 0, .stamp = sent & kMask40};
    StampCounts counts{};

    Ticks arrival(std::optional<std::uint64_t> nic, const Tag& tag) {
        const Buffer buffer(nic);
        const NicStamps stamps{&clock, buffer.field};
        BurstArrivals arrivals(stamps, polled);
        const Ticks arrived = arrivals.of(buffer.frame, tag);
        counts.add(arrivals.last());
        return arrived;
    }
};

TEST(BurstArrivals, AreTheNicsTimesWherePossible) {
    Arriving arriving;
    const Ticks polled = arriving.polled;
    const auto off =
        static_cast<std::int64_t>(arriving.arrival(polled - 500'000, arriving.stamped) - (polled - 500'000));
    EXPECT_LT(std::abs(off), 100'000);
    EXPECT_EQ(arriving.counts.impossible, 0);
    EXPECT_EQ(arriving.arrival(polled - 10'000'000, arriving.stamped), arriving.sent);
    EXPECT_EQ(arriving.arrival(polled + 10'000'000, arriving.stamped), polled);
    EXPECT_EQ(arriving.arrival(std::nullopt, arriving.stamped), polled);
    EXPECT_EQ(arriving.arrival(polled - 500'000, Tag{.trial = 1, .stream = 0, .sequence = 0, .stamp = 0}), polled);
    EXPECT_EQ(arriving.counts.by_nic, 3);
    EXPECT_EQ(arriving.counts.impossible, 2);
    EXPECT_EQ(arriving.counts.by_poll, 1);
}

TEST(BurstArrivals, WithinTheUncertaintyAreNotImpossible) {
    Arriving arriving;
    arriving.clock.begin();
    while (now_ticks() - arriving.polled < kSecond / 1000) {
    }
    arriving.clock.end();
    const ClockMapping mapping = arriving.clock.mapping();
    const auto nic_time = [&](double after) {
        return mapping.nic_at_or_after(arriving.polled + static_cast<Ticks>(static_cast<std::int64_t>(after)));
    };
    EXPECT_EQ(arriving.arrival(nic_time(mapping.uncertainty / 2), arriving.stamped), arriving.polled);
    EXPECT_EQ(arriving.arrival(nic_time(-1'000'000 - mapping.uncertainty / 2), arriving.stamped), arriving.sent);
    EXPECT_EQ(arriving.counts.impossible, 0);
    EXPECT_EQ(arriving.arrival(nic_time(2 * mapping.uncertainty + 10), arriving.stamped), arriving.polled);
    EXPECT_EQ(arriving.counts.impossible, 1);
}

TEST(BurstArrivals, BeforeAFutureStampHaveNoDelay) {
    Arriving arriving;
    const Ticks leaves = arriving.polled + 400'000;
    const Tag ahead{.trial = 1, .stream = 0, .sequence = 0, .stamp = leaves & kMask40};
    EXPECT_EQ(arriving.arrival(arriving.polled - 500'000, ahead), leaves);
    EXPECT_EQ(arriving.arrival(std::nullopt, ahead), leaves);
    EXPECT_EQ(arriving.counts.impossible, 2);
}

TEST(RxStatistics, AFrameBeforeItsTimeHasNoDelayAndIsInTime) {
    const auto statistics_of = [](Ticks max_tsc_skew) {
        MissingFrames::Bounds bounds{};
        bounds.fill(2);
        RxStatistics statistics(
            {1, Direction::forward, 2, bounds, Stamping::every, 1'000'000, nullptr, false, max_tsc_skew});
        RxStatistics::Burst burst{.arrival = 10'000'000};
        statistics.take({.trial = 1, .stream = 0, .sequence = 0, .stamp = 10'000'300}, burst);
        statistics.take({.trial = 1, .stream = 0, .sequence = 1, .stamp = 9'999'300}, burst);
        statistics.add(burst);
        return std::tuple(statistics.counts().received.load(), statistics.counts().late, statistics.counts().early,
                          statistics.delay()->min());
    };
    EXPECT_EQ(statistics_of(0), std::tuple(2, 0, 1, 0));
    EXPECT_EQ(statistics_of(299), std::tuple(2, 0, 1, 0));
    EXPECT_EQ(statistics_of(300), std::tuple(2, 0, 0, 0));  // the receiving core's TSC lags by no more than the skew
}

}  // namespace
}  // namespace dutperf
