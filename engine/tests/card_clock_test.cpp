// SPDX-License-Identifier: Apache-2.0
// Whether the stamps of two cards become times of one clock within the stated error, whatever their clocks do, and
// whether a clock that is set is found.
#include "trial/card_clock.hpp"

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

CardClock clock_of(const std::shared_ptr<FakeOscillator>& oscillator, const std::set<unsigned long>& answers = kAll,
                   int loses_every = 0) {
    return {"ptp0", PtpClock(std::make_unique<FakeCard>(oscillator, answers, loses_every), measured_hz()),
            measured_hz()};
}

// A trial of 0.3 s, during which both clocks are followed as the caretaker of a trial does it.
std::pair<ClockRecord, ClockRecord> followed(
    CardClock left, CardClock right, const std::function<void()>& in_the_middle = [] {}) {
    left.begin();
    right.begin();
    for (int i = 0; i < 100; ++i) {
        if (i == 50) in_the_middle();
        left.follow();
        right.follow();
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    return {left.end(), right.end()};
}

double ns_of(Ticks ticks) { return static_cast<double>(ticks) * 1e9 / static_cast<double>(measured_hz()); }

TEST(CardClock, DriftAndOffsetOfTwoCardsChangeNoDelayByMoreThanTheError) {
    const auto left = oscillator(-100, 0), right = oscillator(100, 1'000'000'000);
    const Ticks before = now_ticks();
    const auto [sending, receiving] = followed(clock_of(left), clock_of(right));
    const CardClocks both = compared("ptp0", sending, "ptp1", receiving);
    EXPECT_LT(both.error_ns, 100'000);
    EXPECT_EQ(both.step_ns, 0);
    EXPECT_NEAR(both.drift_ppm, 200, 30);
    EXPECT_NEAR(both.offset_ns, 1e9, 1e5);
    const Ticks delay = measured_hz() / 1000;
    for (Ticks sent = before; sent < before + measured_hz() / 2; sent += measured_hz() / 1000) {
        const std::int64_t delay_ns =
            receiving.own_ns(right->ns_at(sent + delay), before) - sending.own_ns(left->ns_at(sent), before);
        ASSERT_NEAR(static_cast<double>(delay_ns), ns_of(delay), both.error_ns + 2);
    }
}

TEST(CardClock, EachWayToCompareGivesTheSameClock) {
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

TEST(CardClock, AClockThatIsSetIsFound) {
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

TEST(CardClock, TwoPortsOfOneCardHaveOneClock) {
    const auto card = oscillator(100, 5'000);
    card->step_ns = 1'000'000;
    const auto [sending, receiving] = followed(clock_of(card), clock_of(card), [&] { card->steps_at = now_ticks(); });
    const CardClocks both = compared("ptp0", sending, "ptp0", receiving);
    EXPECT_EQ(std::tuple(both.offset_ns, both.drift_ppm, both.error_ns), std::tuple(0.0, 0.0, 0.0));
    EXPECT_NEAR(both.step_ns, 1e6, 50'000);
    EXPECT_GT(both.unread_ns, 0);
}

TEST(CardClock, LostAnswersOnlyLeaveGaps) {
    const auto card = oscillator(100, 0);
    const auto [record, other] = followed(clock_of(card, {PTP_SYS_OFFSET_EXTENDED}, 2), clock_of(card));
    EXPECT_EQ(record.step_ns(), 0);
    EXPECT_GT(record.unread_ns(), 19e6);
    const Ticks at = record.begin() + measured_hz() / 10;
    EXPECT_NEAR(static_cast<double>(record.own_ns(card->ns_at(at), record.begin())), 1e8, record.error_ns() + 2);
}

TEST(CardClock, AClockThatNeverAnswersIsRefused) {
    CardClock clock = clock_of(oscillator(0, 0), {});
    try {
        clock.begin();
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
    EXPECT_NEAR(stepped.error_ns(), 500 + 3'000 - 2 * 1'000, 1);
}

TEST(ClockRecord, ReadingsThatWereInterruptedCountForNothing) {
    std::vector<ClockPair> pairs = comparisons(10, 2'000);
    pairs[4].width = 2'000'000;
    pairs[4].nic += 400'000;
    const ClockRecord record(pairs, pairs.back().ticks, kHz);
    EXPECT_NEAR(record.error_ns(), 500, 1);
    EXPECT_EQ(record.step_ns(), 0);
    EXPECT_NEAR(record.unread_ns(), 4e7, 1);
    pairs[0].width = pairs[1].width = 2'000'000;
    EXPECT_NEAR(ClockRecord(pairs, pairs.back().ticks, kHz).error_ns(), 500 + 4e7 * 51e-6, 1);
}

TEST(ClockRecord, AClockThatWasNoLongerReadHasALargerError) {
    const auto pairs = comparisons(10, 2'000);  // 1 us of 20 ms
    const ClockRecord read(pairs, pairs.back().ticks, kHz), lost(pairs, pairs.back().ticks + kHz, kHz);
    EXPECT_NEAR(read.unread_ns(), 2e7, 1);
    EXPECT_NEAR(read.error_ns(), 500, 1);
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

}  // namespace
}  // namespace dutperf
