// SPDX-License-Identifier: Apache-2.0
#include "trial/merge.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace dutperf {
namespace {

constexpr std::uint16_t kTrial = 3;
constexpr std::uint32_t kN = 4, kM = 3;

bool is_background(std::uint64_t k) { return k % kN >= kM; }

// Receivers that share a direction, and one that receives all of it.
class SeveralReceivers : public testing::Test {
protected:
    void make(std::size_t receivers, std::uint64_t frames, Ticks frame_timeout = 0) {
        MissingFrames::Bounds bounds{};
        for (std::size_t bin = 0; bin < bounds.size(); ++bin) bounds[bin] = frames * (bin + 1) / bounds.size();
        Expected expected{kTrial, Direction::forward, frames, bounds, Stamping::every, frame_timeout, nullptr, true};
        for (std::size_t i = 0; i < receivers; ++i) {
            shared_.push_back(std::make_unique<RxStatistics>(expected));
            all_.push_back(shared_.back().get());
        }
        expected.shared = false;
        one_ = std::make_unique<RxStatistics>(expected);
    }

    void arrive(std::size_t receiver, std::uint64_t number, Ticks delay = 100) {
        now_ += 10;
        const auto stream = static_cast<std::uint8_t>(is_background(number) ? kStreamBackground : 0);
        const Tag tag{.trial = kTrial, .stream = stream, .sequence = number, .stamp = now_ - delay};
        for (RxStatistics* statistics : {shared_[receiver].get(), one_.get()}) {
            RxStatistics::Burst burst{.arrival = now_};
            statistics->take(tag, burst);
            statistics->add(burst);
        }
    }

    // Compares the merged counts with those of the single receiver.
    void expect_same_counts(const SentFrames& sent) {
        const FrameKinds kinds{.is_background = is_background, .is_stamped = [](std::uint64_t) { return true; }};
        const MergedCounts merged = merge(all_, kinds), one = merge({one_.get()}, kinds);
        EXPECT_EQ(merged.received, one.received);
        EXPECT_EQ(merged.background, one.background);
        EXPECT_EQ(merged.duplicates, one.duplicates);
        EXPECT_EQ(merged.stamped, one.stamped);
        EXPECT_EQ(merged.late, one.late);
        EXPECT_EQ(one.received, one_->counts().received);
        const MissingFrames &missing = missing_of(all_.front()->window(), sent),
                            &expected = missing_of(one_->window(), sent);
        EXPECT_EQ(missing.total(), expected.total());
        EXPECT_EQ(missing.total() + merged.received + merged.late, sent.count());
        EXPECT_EQ(missing.longest_run(), expected.longest_run());
        EXPECT_EQ(missing.bins(), expected.bins());
    }

    std::vector<std::unique_ptr<RxStatistics>> shared_;
    std::vector<RxStatistics*> all_;
    std::unique_ptr<RxStatistics> one_;
    Ticks now_ = 1'000'000;
};

TEST_F(SeveralReceivers, ADuplicateAtAnotherReceiverIsADuplicate) {
    make(2, 100);
    for (std::uint64_t k = 0; k < 100; ++k) arrive(k % 2, k);
    arrive(1, 4);
    arrive(0, 4);
    arrive(0, 7);  // a background frame
    expect_same_counts(SentFrames({50, 50}));
}

TEST_F(SeveralReceivers, AFrameThatComesInTimeAnywhereIsNotLate) {
    make(3, 10, 1'000);
    for (std::uint64_t k = 0; k < 8; ++k) arrive(k % 3, k, k == 3 ? 2'000 : 100);
    arrive(0, 5, 5'000);  // a late copy of a frame that was in time
    arrive(1, 3, 6'000);  // a late copy of a late frame
    arrive(2, 8, 1'001);
    expect_same_counts(SentFrames({4, 3, 3}));
}

// Random losses, duplicates, lateness and order, with more frames than a sliding window holds.
TEST_F(SeveralReceivers, CountWhatOneReceiverCounts) {
    for (const std::size_t receivers : {1U, 2U, 3U, 7U}) {
        shared_.clear();
        all_.clear();
        constexpr std::uint64_t kFrames = 50'000;
        make(receivers, kFrames, 1'000);
        std::mt19937_64 random(receivers);
        for (std::uint64_t k = 0; k < kFrames; ++k) {
            if (random() % 10 == 0) continue;
            const Ticks delay = random() % 1'100;
            arrive(random() % receivers, k, delay);
            if (random() % 5 == 0) arrive(random() % receivers, k, delay + 10);
            if (random() % 5 == 0) arrive(random() % receivers, k - std::min(k, random() % 3), 1'200);
        }
        std::vector<std::uint64_t> of_senders;
        for (std::uint64_t i = 0; i < receivers; ++i) of_senders.push_back(Share{i, receivers}.among(kFrames));
        expect_same_counts(SentFrames(of_senders));
    }
}

TEST(SentFrames, OfSendersThatEndedAtDifferentPlaces) {
    const SentFrames sent({3, 1, 0});  // 0 3 6, 1
    std::vector<std::uint64_t> unsent;
    sent.for_each_unsent([&](std::uint64_t k) { unsent.push_back(k); });
    EXPECT_EQ(sent.count(), 4U);
    EXPECT_EQ(sent.end(), 7U);
    EXPECT_EQ(unsent, (std::vector<std::uint64_t>{4, 2, 5}));
    SequenceWindow came(100);
    came.insert(0);
    came.insert(1);
    const MissingFrames& missing = missing_of(came, sent);
    EXPECT_EQ(missing.total(), 2U);
    EXPECT_EQ(missing.first(), 3U);
    EXPECT_EQ(missing.last(), 6U);
    EXPECT_EQ(SentFrames({0, 0}).end(), 0U);
}

}  // namespace
}  // namespace dutperf
