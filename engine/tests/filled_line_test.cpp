// SPDX-License-Identifier: Apache-2.0
// Places on a filled line are exact to a byte time wherever a filler fits, and errors do not add up; a line that was
// idle is always noticed.
#include "pace/filled_line.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>
#include <vector>

#include "pace/due_after.hpp"
#include "pace/patterns.hpp"

namespace dutperf {
namespace {

constexpr std::uint32_t kLongest = on_line(1514);

struct Laid {
    std::vector<std::uint64_t> places;
    std::vector<std::uint32_t> fillers;
};

// Lays out frames of one length on the line.
Laid lay_out(const std::vector<std::uint64_t>& dues, std::uint32_t frame, std::uint32_t longest = kLongest) {
    LinePlan plan(longest);
    Laid laid;
    for (const std::uint64_t due : dues) {
        while (const std::uint32_t filler = plan.filler_before(due)) {
            laid.fillers.push_back(filler);
            plan.add(filler);
        }
        laid.places.push_back(plan.place());
        plan.add(frame);
    }
    return laid;
}

TEST(FilledLine, LengthsHaveFcsPreambleAndGap) {
    EXPECT_EQ(on_line(60), 84U);
    EXPECT_EQ(on_line(1514), 1538U);
    EXPECT_EQ(line_hz(1000), 125'000'000U);
}

struct Gap {
    std::uint64_t gap;
    std::vector<std::uint32_t> fillers;
};

TEST(FilledLine, AGapIsFilledExactlyWhereAFillerFits) {
    const std::vector<Gap> rows{{0, {}},
                                {1, {84}},
                                {83, {84}},
                                {84, {84}},
                                {85, {85}},
                                {1538, {1538}},
                                {1539, {1455, 84}},
                                {1621, {1537, 84}},
                                {1622, {1538, 84}},
                                {3076, {1538, 1538}},
                                {3077, {1538, 1455, 84}}};
    for (const Gap& row : rows) {
        const Laid laid = lay_out({0, 100 + row.gap}, 100);
        EXPECT_EQ(laid.fillers, row.fillers) << row.gap;
        const std::uint64_t error = row.gap == 0 || row.gap >= 84 ? 0 : 84 - row.gap;
        EXPECT_EQ(laid.places.back(), 100 + row.gap + error) << row.gap;
    }
}

// A property, for many rates: no frame is early, and none is later than the shortest filler less a byte, however many
// came before it.
TEST(FilledLine, NoFrameIsEarlyAndErrorsDoNotAddUp) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 200; ++i) {
        const std::uint64_t hz = line_hz(std::array{10U, 100U, 1000U, 10'000U, 100'000U}[random() % 5]);
        const auto frame = static_cast<std::uint32_t>(84 + random() % 1455);
        const std::uint64_t most = hz / frame, rate = i % 4 == 0 ? most - random() % 3 : 1 + random() % most;
        const std::uint32_t longest = i % 3 == 0 ? static_cast<std::uint32_t>(random() % 200) : kLongest;
        std::vector<std::uint64_t> dues;
        for (std::uint64_t k = 0; k < std::min<std::uint64_t>(2000, 1 + 100'000'000 / (hz / rate)); ++k)
            dues.push_back(due_after(k, hz, rate));
        const Laid laid = lay_out(dues, frame, longest);
        for (std::size_t k = 0; k < dues.size(); ++k) {
            ASSERT_GE(laid.places[k], dues[k]) << rate;
            ASSERT_LE(laid.places[k] - dues[k], 83U)
                << "frame " << k << " of " << rate << " fps, " << frame << " bytes";
        }
        for (const std::uint32_t filler : laid.fillers) {
            ASSERT_GE(filler, 84U);
            ASSERT_LE(filler, std::max(84U, longest));
        }
    }
}

TEST(FilledLine, FramesThatAreDueAtOnceLeaveBackToBack) {
    std::vector<std::uint64_t> dues;
    BurstTimes bursts({.frames = 32, .within_fps = 0}, line_hz(1000), 10'000);
    for (FewTimes few{}; dues.size() < 64;) {
        const std::uint32_t count = bursts.next(few);
        dues.insert(dues.end(), few.begin(), few.begin() + count);
    }
    const Laid laid = lay_out(dues, 148);
    for (std::size_t k = 0; k < 32; ++k) EXPECT_EQ(laid.places[k], k * 148);
    EXPECT_EQ(laid.places[32], line_hz(1000) / 10'000 * 32);
}

// A line and a driver's ring, with a card's own clock and a sender that stalls. Times are in byte times.
class Line {
public:
    Line(std::uint32_t ring, double byte_ticks, double noticed) : ring_(ring), byte_(byte_ticks), noticed_(noticed) {}

    // How many of `lengths` the driver takes at `now`.
    std::size_t take(double now, const std::vector<std::uint32_t>& lengths) {
        while (!ends_.empty() && ends_.front() + noticed_ <= now) ends_.pop_front();
        if (last_end_ > 0 && now > last_end_) ++idle_;
        std::size_t taken = 0;
        for (; taken < lengths.size() && ends_.size() < ring_; ++taken) {
            last_end_ = std::max(last_end_, now) + lengths[taken] * byte_;
            ends_.push_back(last_end_);
        }
        return taken;
    }
    [[nodiscard]] int idle() const { return idle_; }

private:
    std::uint32_t ring_;
    double byte_, noticed_;
    std::deque<double> ends_;  // of the frames that the driver has not seen leave
    double last_end_ = 0;
    int idle_ = 0;
};

struct Seen {
    int idle = 0;
    std::uint64_t noticed = 0;
};

// A sender beside such a line. `stall`: longest pause between two calls.
Seen send(std::uint64_t seed, double card_clock, double stall, double noticed) {
    constexpr std::uint32_t kRing = 128;
    constexpr double kDifference = 200e-6;
    std::mt19937_64 random(seed);
    Line line(kRing, 1 / card_clock, noticed);
    LineWatch watch(kRing, 1, kDifference);
    double now = 1;
    std::vector<std::uint32_t> pending;
    for (int call = 0; call < 20'000; ++call) {
        while (pending.size() < 32) pending.push_back(static_cast<std::uint32_t>(84 + random() % 1455));
        const double began = now, ended = began + 50;
        const std::size_t taken = line.take(began + 20, pending);
        if (taken != 0) watch.begin_call(began, ended, call != 0);
        for (std::size_t i = 0; i < taken; ++i) watch.add(pending[i]);
        if (taken < pending.size()) watch.ring_was_full(began);
        pending.erase(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(taken));
        now = ended + (random() % 50 == 0 ? static_cast<double>(random() % 1000) / 1000 * stall : 100);
    }
    return {line.idle(), watch.times_idle()};
}

TEST(LineWatch, AnIdleLineIsNoticedWhateverTheCardsClock) {
    int idle = 0;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        for (const double clock : {1 - 200e-6, 1.0, 1 + 200e-6}) {
            const Seen seen = send(seed, clock, 150'000, 20'000);
            idle += seen.idle;
            EXPECT_GE(seen.noticed, static_cast<std::uint64_t>(seen.idle)) << seed << ' ' << clock;
        }
    }
    EXPECT_GT(idle, 100);  // else this shows nothing
}

TEST(LineWatch, ASenderThatIsInTimeLeavesNoDoubt) {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        const Seen seen = send(seed, 1.0, 20'000, 10'000);
        EXPECT_EQ(seen.idle, 0);
        EXPECT_EQ(seen.noticed, 0U) << seed;
    }
}

TEST(LineWatch, TheLengthOfAnIdleTimeIsStated) {
    LineWatch watch(8, 1, 0);
    watch.begin_call(0, 10, false);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(watch.add(100), i * 100);
    watch.ring_was_full(0);
    watch.begin_call(799, 800, true);
    EXPECT_EQ(watch.add(100), 800);
    EXPECT_EQ(watch.times_idle(), 0U);
    watch.begin_call(1000, 1010, true);
    EXPECT_EQ(watch.times_idle(), 1U);
    EXPECT_EQ(watch.longest_idle(), 110);  // 900 to 1010, the latest time at which the frames were there
    watch.add(100);
    watch.begin_call(1050, 1090, true);
    EXPECT_EQ(watch.times_idle(), 1U);
}

TEST(LineWatch, AFrameHasLeftWhenARingOfOthersHas) {
    LineWatch watch(4, 1, 0.01);
    watch.begin_call(0, 10, false);
    watch.add(100);
    EXPECT_DOUBLE_EQ(watch.latest(10), 10 + 101);
    for (int i = 0; i < 10; ++i) watch.add(200);
    EXPECT_DOUBLE_EQ(watch.latest(50), 50 + 808);
}

// Four of eight frames of 100 byte times certainly wait.
TEST(LineWatch, AFullRingHoldsHalfOfItsFrames) {
    LineWatch watch(8, 1, 0);
    watch.begin_call(0, 0, false);
    for (int i = 0; i < 8; ++i) watch.add(100);
    watch.ring_was_full(5000);
    watch.begin_call(5400, 5400, true);
    EXPECT_EQ(watch.times_idle(), 0U);
    watch.begin_call(5401, 5401, true);
    EXPECT_EQ(watch.times_idle(), 1U);
}

}  // namespace
}  // namespace dutperf
