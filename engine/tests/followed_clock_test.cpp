// SPDX-License-Identifier: Apache-2.0
// Whether times of other clocks become the tester's within the stated error, while a trial runs and after it, whatever
// these clocks do, and whether a clock that is set is found.
#include "trial/followed_clock.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>
#include <tuple>

#include "platform/error.hpp"
#include "tests/fake_card.hpp"

namespace dutperf {
namespace {

const std::set<unsigned long> kAll{PTP_SYS_OFFSET_PRECISE, PTP_SYS_OFFSET_EXTENDED, PTP_SYS_OFFSET};
constexpr std::uint64_t kHz = 2'000'000'000;

std::uint64_t measured_hz() {
    static const std::uint64_t hz = ClockCalibration().hertz();
    return hz;
}

std::shared_ptr<FakeOscillator> oscillator(double drift_ppm, std::int64_t offset_ns) {
    return std::make_shared<FakeOscillator>(
        FakeOscillator{.hz = measured_hz(), .drift_ppm = drift_ppm, .offset_ns = offset_ns});
}

ForeignClock clock_of(const std::shared_ptr<FakeOscillator>& oscillator, const std::set<unsigned long>& answers = kAll,
                      int loses_every = 0) {
    return ptp_clock("ptp0", PtpClock(std::make_unique<FakeCard>(oscillator, answers, loses_every), measured_hz()));
}

// A trial of 0.3 s, during which both clocks are followed as the caretaker of a trial does it.
std::pair<ClockRecord, ClockRecord> followed(
    const ForeignClock& of_left, const ForeignClock& of_right, const std::function<void()>& in_the_middle = [] {}) {
    FollowedClock left(of_left, measured_hz()), right(of_right, measured_hz());
    for (int i = 0; i < 100; ++i) {
        if (i == 50) in_the_middle();
        left.follow();
        right.follow();
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    return {left.record(), right.record()};
}

double ns_of(Ticks ticks) { return static_cast<double>(ticks) * 1e9 / static_cast<double>(measured_hz()); }

TEST(FollowedClock, DriftAndOffsetOfTwoCardsChangeNoDelayByMoreThanTheError) {
    const auto left = oscillator(-100, 0), right = oscillator(100, 1'000'000'000);
    const Ticks before = now_ticks();
    const auto [sending, receiving] = followed(clock_of(left), clock_of(right));
    const Clocks both = compared("ptp0", sending, "ptp1", receiving);
    EXPECT_LT(both.error_ns, 100'000);
    EXPECT_EQ(both.step_ns, 0);
    EXPECT_NEAR(*both.drift_ppm, 200, 30);
    EXPECT_NEAR(*both.offset_ns, 1e9, 1e5);
    const Ticks delay = measured_hz() / 1000;
    for (Ticks sent = before; sent < before + measured_hz() / 2; sent += measured_hz() / 1000) {
        const std::int64_t delay_ns =
            receiving.own_ns(right->ns_at(sent + delay), before) - sending.own_ns(left->ns_at(sent), before);
        ASSERT_NEAR(static_cast<double>(delay_ns), ns_of(delay), both.error_ns + 2);
    }
}

TEST(PtpClock, EachWayToCompareGivesTheSameClock) {
    for (const unsigned long way : kAll) {
        const auto card = oscillator(50, 5'000'000);
        PtpClock clock(std::make_unique<FakeCard>(card, std::set{way}), measured_hz());
        for (int i = 0; i < 20; ++i) {
            const auto pair = clock.compare();
            ASSERT_TRUE(pair) << way;
            const double off = static_cast<double>(card->ns_at(pair->ticks) - static_cast<std::int64_t>(pair->nic));
            EXPECT_LE(std::abs(off), ns_of(pair->width) / 2 + 2) << way;
        }
    }
}

TEST(FollowedClock, AClockThatIsSetIsFound) {
    for (const std::int64_t step_ns : {1'000'000, -1'000'000, 200'000'000, -200'000'000}) {
        const auto left = oscillator(100, 0), right = oscillator(0, 0);
        right->step_ns = step_ns;
        const auto [sending, receiving] =
            followed(clock_of(left), clock_of(right), [&] { right->steps_at = now_ticks(); });
        EXPECT_EQ(sending.step_ns(), 0);
        EXPECT_NEAR(receiving.step_ns(), static_cast<double>(step_ns), 50'000);
        EXPECT_GT(receiving.error_ns(), std::abs(static_cast<double>(step_ns)) - 50'000);
    }
}

TEST(FollowedClock, AClockThatIsSetBackBeforeItIsFollowedIsReadAgain) {
    const auto card = oscillator(0, 1'000'000'000);
    card->step_ns = -200'000'000;
    card->steps_at = now_ticks() + measured_hz() / 20;
    FollowedClock clock(clock_of(card), measured_hz());
    EXPECT_GT(now_ticks(), card->steps_at);
    EXPECT_EQ(clock.record().step_ns(), 0);
}

TEST(FollowedClock, TwoPortsOfOneCardHaveOneClock) {
    const auto card = oscillator(100, 5'000);
    card->step_ns = 1'000'000;
    const auto [sending, receiving] = followed(clock_of(card), clock_of(card), [&] { card->steps_at = now_ticks(); });
    const Clocks both = compared("ptp0", sending, "ptp0", receiving);
    EXPECT_EQ(both.sending, both.receiving);
    EXPECT_EQ(std::tuple(*both.offset_ns, *both.drift_ppm, both.error_ns), std::tuple(0.0, 0.0, 0.0));
    EXPECT_NEAR(*both.step_ns, 1e6, 50'000);
    EXPECT_GT(*both.unread_ns, 0);
}

TEST(FollowedClock, LostAnswersOnlyLeaveGaps) {
    const auto card = oscillator(100, 0);
    const auto [record, other] = followed(clock_of(card, {PTP_SYS_OFFSET_EXTENDED}, 2), clock_of(card));
    EXPECT_EQ(record.step_ns(), 0);
    EXPECT_GT(record.unread_ns(), 19e6);
    const Ticks at = record.begin() + measured_hz() / 10;
    EXPECT_NEAR(static_cast<double>(record.own_ns(card->ns_at(at), record.begin())), 1e8, record.error_ns() + 2);
}

TEST(FollowedClock, AClockThatNeverAnswersIsRefused) {
    try {
        const FollowedClock clock(clock_of(oscillator(0, 0), {}), measured_hz());
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "ptp0 cannot be read: leave stamps at kernel or loop");
        EXPECT_EQ(error.field(), "params.stamps");
    }
}

TEST(PtpClock, AnotherProcessThatMaySetItIsNamed) {
    const std::string path = testing::TempDir() + "ptp_clock_test";
    std::ofstream(path) << "a clock";
    const int reads = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const pid_t reader = fork();
    if (reader == 0) _exit(pause());  // it has the file open as its parent has
    EXPECT_EQ(writer_of(path), "");
    const int writes = open(path.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(writer_of(path), "");  // this process itself
    const pid_t writer = fork();
    if (writer == 0) _exit(pause());
    const std::string named = writer_of(path), ending = " (process " + std::to_string(writer) + ")";
    EXPECT_TRUE(named.size() > ending.size() && named.ends_with(ending)) << named;
    for (const pid_t child : {reader, writer}) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }
    for (const int fd : {reads, writes}) close(fd);
    std::filesystem::remove(path);
}

// Comparisons each 20 ms of a card's clock with ns, which are read within `width`.
std::vector<ClockPair> comparisons(std::size_t count, Ticks width) {
    std::vector<ClockPair> pairs;
    for (std::size_t i = 0; i < count; ++i)
        pairs.push_back({.ticks = kHz + i * kHz / 50, .nic = 5'000'000'000 + i * 20'000'000, .width = width});
    return pairs;
}

TEST(ClockRecord, TellsAStepFromTheErrorOfItsReadings) {
    constexpr Ticks kWidth = 2'000;  // 1 us
    std::vector<ClockPair> within = comparisons(30, kWidth), beyond = within;
    within[12].nic += 500;
    within[13].nic -= 500;
    EXPECT_EQ(ClockRecord(within, 0, kHz).step_ns(), 0);
    for (std::size_t i = 12; i < beyond.size(); ++i) beyond[i].nic -= 3'000;
    const ClockRecord stepped(beyond, 0, kHz);
    EXPECT_NEAR(stepped.step_ns(), -3'000, 1);
    EXPECT_NEAR(stepped.error_ns(), 500 + 3'000 - 2 * 1'000, 3);
}

TEST(ClockRecord, ReadingsThatWereInterruptedCountForNothing) {
    std::vector<ClockPair> pairs = comparisons(10, 2'000);
    pairs[4].width = 2'000'000;
    pairs[4].nic += 400'000;
    const ClockRecord record(pairs, pairs.back().ticks, kHz);
    EXPECT_NEAR(record.error_ns(), 500 + 40 / 8, 1);
    EXPECT_NEAR(record.error_between_ns(1e9), 2 * record.error_ns(), 1);
    EXPECT_LT(record.error_between_ns(1e3), 1);
    EXPECT_EQ(record.step_ns(), 0);
    EXPECT_NEAR(record.unread_ns(), 4e7, 1);
    pairs[0].width = pairs[1].width = 2'000'000;
    EXPECT_NEAR(ClockRecord(pairs, pairs.back().ticks, kHz).error_ns(), 500 + 4e7 * 51e-6, 1);
}

TEST(ClockRecord, AClockThatWasNoLongerReadHasALargerError) {
    const auto pairs = comparisons(10, 2'000);  // 1 us of 20 ms
    const ClockRecord read(pairs, pairs.back().ticks, kHz), lost(pairs, pairs.back().ticks + kHz, kHz);
    EXPECT_NEAR(read.unread_ns(), 2e7, 1);
    EXPECT_NEAR(read.error_ns(), 500 + 20 / 8.0, 1);
    EXPECT_NEAR(lost.unread_ns(), 1e9, 1);
    EXPECT_NEAR(lost.error_ns(), 500 + 1e9 * 51e-6, 10);
}

TEST(ClockRecord, ATimeBeyondTheComparisonsGoesOnAtTheRate) {
    std::vector<ClockPair> pairs = comparisons(10, 0);
    for (ClockPair& pair : pairs) pair.nic = 7 + (pair.ticks - kHz) * 3 / 4;  // 1.5 of its ns in each of the tester's
    const ClockRecord record(pairs, 0, kHz);
    EXPECT_NEAR(record.rate(), 1.5, 1e-9);
    EXPECT_EQ(record.own_ns(7 - 1'500, kHz), -1'000);
    EXPECT_EQ(record.own_ns(7 + 1'500'000'000, kHz), 1'000'000'000);
    EXPECT_EQ(record.own_ns(7 + 45'000'000, kHz + kHz / 50), 10'000'000);
    EXPECT_EQ(record.card_ns(kHz + kHz / 2), 7 + 750'000'000);
}

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

TEST(LiveMapping, ConvertsTimesBeforeAndAfterAReading) {
    const Oscillator nic;
    const LiveMapping clock(nic.pair(kHz), nic.pair(kHz + kHz / 10), kHz);
    for (const Ticks at : {kHz, kHz + kHz / 20, kHz + kHz / 5}) EXPECT_NEAR(error_of(clock.mapping(), nic, at), 0, 40);
    EXPECT_NEAR(clock.uncertainty(), 16, 0.1);  // a tick of the NIC
}

TEST(LiveMapping, FollowsADriftingClockAndReportsItsError) {
    Oscillator nic{.ticks_per_nic = 2, .at_zero = 0};
    LiveMapping clock(nic.pair(0), nic.pair(kHz / 10), kHz);
    std::uint64_t nic_now = nic.at(kHz / 10);
    double worst = 0;
    for (Ticks ticks = kHz / 10; ticks < 20 * kHz; ticks += kHz / 50) {
        nic_now += kHz / 50 / 2 + kHz / 50 / 2 * (ticks / kHz) / 1'000'000;  // 1 ppm faster each second
        const ClockPair pair{ticks + kHz / 50, nic_now, 0};
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

TEST(LiveMapping, UncertaintyIncludesTheWidthOfReadings) {
    const Oscillator nic{.ticks_per_nic = 1, .at_zero = 5};
    LiveMapping clock(nic.pair(0), nic.pair(kHz), kHz);
    clock.begin(nic.pair(2 * kHz, 600));
    EXPECT_NEAR(clock.uncertainty(), 300 + 1, 0.01);
    clock.follow(nic.pair(2 * kHz + 1000, 1000));
    EXPECT_NEAR(clock.uncertainty(), 500 + 1, 0.01);
    clock.begin(nic.pair(3 * kHz));
    EXPECT_NEAR(clock.uncertainty(), 1, 0.01);
    clock.raise_uncertainty(12345);
    EXPECT_NEAR(clock.uncertainty(), 12346, 0.01);
}

TEST(LiveMapping, AJumpCountsInItsTrialOnly) {
    for (const std::int64_t jump : {1'000'000LL, 1'000'000'000'000'000'000LL, -1'000'000'000LL}) {
        Oscillator nic{.ticks_per_nic = 2, .at_zero = 10'000'000'000};
        LiveMapping clock(nic.pair(0), nic.pair(kHz / 10), kHz);
        nic.at_zero += static_cast<std::uint64_t>(jump);
        clock.follow(nic.pair(kHz / 8));
        const double expected = 2.0 * static_cast<double>(std::abs(jump));
        EXPECT_NEAR(clock.uncertainty(), expected, 200'000 + expected / 1e9);
        EXPECT_NEAR(clock.mapping().ticks_per_nic, 2,
                    1e-6);  // the rate is still the old one: no reading gives a new one
        clock.begin(nic.pair(kHz / 5));
        clock.follow(nic.pair(kHz / 5 + kHz / 50));
        EXPECT_NEAR(clock.uncertainty(), 2, 10);
        for (Ticks at = kHz / 4; at < 4 * kHz; at += kHz / 50) clock.follow(nic.pair(at));
        clock.begin(nic.pair(4 * kHz));
        clock.follow(nic.pair(4 * kHz + kHz / 50));
        EXPECT_NEAR(clock.uncertainty(), 2, 10);
    }
}

TEST(LiveMapping, ALongGapBetweenReadingsIsNoLastingJump) {
    Oscillator nic{.ticks_per_nic = 2, .at_zero = 0};
    LiveMapping clock(nic.pair(0, 4'000), nic.pair(kHz / 10 + 200),
                      kHz);  // the first reading was 1 us off: 10 us a second
    clock.begin(nic.pair(100 * kHz));
    clock.follow(nic.pair(100 * kHz + kHz / 50));
    EXPECT_LT(clock.uncertainty(), 500);
    clock.follow(nic.pair(100 * kHz + kHz / 25));
    EXPECT_LT(clock.uncertainty(), 500);
}

TEST(FollowedClock, RejectsAClockThatStopsOrCannotBeRead) {
    const auto code_of = [](const ReadClock& read) {
        try {
            const FollowedClock clock(dpdk_clock("the clock", read), kHz);
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
    FollowedClock clock(dpdk_clock("the clock", [&] { return reads ? std::optional(now_ticks() / 3) : std::nullopt; }),
                        kHz);
    clock.begin();
    const Ticks since = now_ticks();
    reads = false;
    while (now_ticks() - since < kHz / 20) {
    }
    clock.follow();
    EXPECT_GE(clock.uncertainty(), static_cast<double>(kHz / 20));
    EXPECT_NEAR(static_cast<double>(clock.mapping().ticks_of(since / 3)), static_cast<double>(since), 1e6);
}

}  // namespace
}  // namespace dutperf
