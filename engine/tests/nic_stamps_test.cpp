// SPDX-License-Identifier: Apache-2.0
#include "trial/nic_stamps.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "frame/tag.hpp"
#include "platform/clock.hpp"
#include "trial/departures.hpp"
#include "trial/rx_statistics.hpp"

namespace dutperf {
namespace {

constexpr Ticks kSecond = 2'000'000'000;

ForeignClock nic_clock(ReadClock read) { return dpdk_clock("the clock", std::move(read)); }

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
    FollowedClock clock(nic_clock([] { return std::optional(now_ticks() / 2); }), kSecond);
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
    FollowedClock clock(nic_clock([&] { return reads ? std::optional(now_ticks() / 2) : std::nullopt; }), kSecond);
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
    FollowedClock clock{nic_clock([] { return std::optional(now_ticks()); }), kSecond};
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
