// SPDX-License-Identifier: Apache-2.0
#include "trial/sender_turns.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace dutperf {
namespace {

// Is due every `every` ticks, from `every` on, until it has had `frames` turns that were due.
class FakeSender final : public Sender {
public:
    FakeSender(rte_ring* control, Ticks every, std::uint64_t frames)
        : Sender({.control = control}), every_(every), next_(every), frames_(frames) {}

    Ticks turn(Ticks now) override {
        ++turns;
        if (is_stuck || done()) return 0;
        if (stopped_.load()) {
            done_.store(true);
        } else if (now >= next_) {
            latest = std::max(latest, now - next_);
            next_ += every_;
            if (++sent == frames_) done_.store(true);
        }
        return now;
    }
    [[nodiscard]] Ticks next_turn() const override { return is_stuck ? 0 : next_; }

    std::uint64_t turns = 0, sent = 0;
    Ticks latest = 0;
    bool is_stuck = false;

private:
    Ticks every_, next_;
    std::uint64_t frames_;
};

class SenderTurnsTest : public testing::Test {
protected:
    // Of two ports in turn.
    void make(std::size_t count, std::uint64_t frames) {
        for (std::size_t i = 0; i < count; ++i) {
            made_.push_back(std::make_unique<FakeSender>(&rings_[i % 2], 100 + i, frames));
            all_.push_back(made_.back().get());
        }
    }

    std::array<rte_ring, 2> rings_{};
    std::vector<std::unique_ptr<FakeSender>> made_;
    std::vector<Sender*> all_;
};

TEST_F(SenderTurnsTest, AFewHaveOneInEachTurnOfTheLoop) {
    make(SenderTurns::kFew, 3);
    SenderTurns turns(all_);
    for (Ticks now = 1; now <= 1000; ++now) turns.turn(now);
    for (const auto& one : made_) EXPECT_EQ(one->turns, 1000U);
    EXPECT_EQ(turns.sending(), 0U);
}

TEST_F(SenderTurnsTest, OneThatOnlyAnswersIsNotOneOfTheFew) {
    make(1, 0);
    made_[0]->stop();
    made_[0]->turn(0);
    make(SenderTurns::kFew, 1'000);
    SenderTurns turns(all_);
    for (Ticks now = 1; now <= 1000; ++now) turns.turn(now);
    for (std::size_t i = 1; i < made_.size(); ++i) EXPECT_EQ(made_[i]->turns, 1000U) << i;
}

TEST_F(SenderTurnsTest, ManyHaveOneWhenTheyAreDue) {
    make(1000, 50);
    SenderTurns turns(all_);
    for (Ticks now = 1; turns.sending() != 0; ++now) {
        ASSERT_LE(now, 60'000U);
        turns.turn(now);
    }
    for (std::size_t i = 0; i < made_.size(); ++i) {
        EXPECT_EQ(made_[i]->sent, 50U) << i;
        EXPECT_LE(made_[i]->latest, 64U) << i;  // 1,000 first turns, 16 at a time
        if (i >= 2) {
            EXPECT_EQ(made_[i]->turns, 51U) << i;
        }
    }
    EXPECT_GT(made_[1]->turns, 50'000U);  // answers ARP and NDP of its port
}

TEST_F(SenderTurnsTest, OnesThatWaitForRoomDoNotHoldUpOthers) {
    make(200, 20);
    for (std::size_t i = 0; i < 150; ++i) made_[i]->is_stuck = true;
    SenderTurns turns(all_);
    for (Ticks now = 1; now <= 10'000; ++now) turns.turn(now);
    EXPECT_EQ(turns.sending(), 150U);
    for (std::size_t i = 150; i < made_.size(); ++i) EXPECT_LE(made_[i]->latest, 20U) << i;
    for (std::size_t i = 0; i < 150; ++i) EXPECT_GT(made_[i]->turns, 900U) << i;
}

TEST_F(SenderTurnsTest, AllEndSoonAfterTheyAreStopped) {
    make(100, 1'000'000);
    SenderTurns turns(all_);
    for (Ticks now = 1; now <= 90; ++now) turns.turn(now);
    for (const auto& one : made_) one->stop();
    for (Ticks now = 91; now <= 97; ++now) {
        turns.wake();
        turns.turn(now);
    }
    EXPECT_EQ(turns.sending(), 0U);
}

}  // namespace
}  // namespace dutperf
