// SPDX-License-Identifier: Apache-2.0
// Fillers, byte for byte, and the order of test frames, fillers and replies on the line.
#include "trial/line_filler.hpp"

#include <gtest/gtest.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "platform/eal.hpp"
#include "port/pool.hpp"

namespace dutperf {
namespace {

constexpr Mac kSource{0x02, 0, 0, 0, 0, 1}, kNobody{0x02, 0, 0, 0, 0x88, 0xB5};
constexpr std::uint64_t kLineHz = 125'000'000, kClockHz = 2'000'000'000, kTicksPerByte = 16;
constexpr std::uint64_t kLead = 187'500;  // 1.5 ms

class LineFillerTest : public testing::Test {
protected:
    LineFillerTest() {
        start_eal({.memory = MemoryChoice::no_huge_pages, .megabytes = 64, .pci_devices = {}});
        static int number = 0;
        const std::string name = std::to_string(number++);
        pool_ = make_pool({.name = "fillers" + name, .count = 1023, .frame_size = 1522});
        frames_ = make_pool({.name = "line" + name, .count = 1023, .frame_size = 1522});
    }

    [[nodiscard]] std::unique_ptr<LineFiller> filler(bool reverse = false) const {
        return std::make_unique<LineFiller>(LineFillerParts{.pool = pool_.get(),
                                                            .source = kSource,
                                                            .destination = kNobody,
                                                            .path = reverse ? 1U : 0U,
                                                            .longest_length = longest_filler(pool_.get()),
                                                            .generation = 77,
                                                            .ring = 128,
                                                            .line_hz = kLineHz,
                                                            .clock_hz = kClockHz,
                                                            .clock_difference = 0,
                                                            .burst = 512});
    }

    rte_mbuf* frame(std::uint16_t length) const {
        rte_mbuf* buffer = rte_pktmbuf_alloc(frames_.get());
        rte_pktmbuf_append(buffer, length);
        return buffer;
    }

    // Lays out frames of one length, due so many bytes after the start; returns the lengths of all buffers.
    std::vector<std::uint32_t> lay_out(LineFiller& line, const std::vector<std::uint64_t>& dues, std::uint16_t length) {
        const std::uint64_t start = line.start(10 * kClockHz);
        for (std::uint32_t i = 0; i < dues.size(); ++i) {
            line.made()[i] = frame(length);
            line.set_due(i, start + dues[i]);
        }
        line.set_made(static_cast<std::uint32_t>(dues.size()));
        line.begin();
        while (!line.is_full() && line.waiting() != 0 && line.place_next(0, burst_.data())) {
        }
        std::vector<std::uint32_t> lengths;
        for (std::uint32_t i = 0; i < line.count(); ++i) lengths.push_back(burst_[i]->pkt_len);
        return lengths;
    }

    Pool pool_, frames_;
    std::array<rte_mbuf*, kMaxBurst> burst_{};
};

TEST_F(LineFillerTest, AFillerIsAFrameToNobody) {
    const auto line = filler();
    lay_out(*line, {0, 200}, 60);
    const std::vector<std::uint8_t> wanted{0x02, 0,    0,    0,   0x88, 0xB5, 0x02, 0,   0,   0,   0,
                                           1,    0x88, 0xB5, 'd', 'u',  't',  'p',  'e', 'r', 'f', ' ',
                                           'f',  'i',  'l',  'l', 'e',  'r',  ' ',  'f', 0,   0};
    const rte_mbuf* first = burst_[0];
    const auto* bytes = rte_pktmbuf_mtod(first, const std::uint8_t*);
    EXPECT_EQ(std::vector<std::uint8_t>(bytes, bytes + wanted.size()), wanted);
    EXPECT_TRUE(
        std::all_of(bytes + wanted.size(), bytes + first->data_len, [](std::uint8_t byte) { return byte == 0; }));
    EXPECT_EQ(first->data_len, 1514);
    EXPECT_EQ(first->nb_segs, 1);
}

TEST_F(LineFillerTest, GapsAreExactlyFilled) {
    const auto line = filler();
    const std::vector<std::uint32_t> lengths = lay_out(*line, {0, 84 + 100, 84 + 100 + 84 + 1539}, 60);
    std::uint64_t lead = 0;
    std::size_t at = 0;
    for (; lengths[at] != 60 || lead < kLead; ++at) lead += on_line(lengths[at]);
    EXPECT_EQ(lead, kLead);
    EXPECT_EQ((std::vector<std::uint32_t>(lengths.begin() + static_cast<std::ptrdiff_t>(at), lengths.end())),
              (std::vector<std::uint32_t>{60, 76, 60, 1455 - 24, 60, 60}));
}

TEST_F(LineFillerTest, ShortFramesCountWithTheirPadding) {
    const auto line = filler();
    const std::vector<std::uint32_t> lengths = lay_out(*line, {0, 84 + 84}, 42);
    EXPECT_EQ((std::vector<std::uint32_t>(lengths.end() - 3, lengths.end())), (std::vector<std::uint32_t>{42, 60, 42}));
}

TEST_F(LineFillerTest, WhatTheDriverTookIsCountedAndItsErrorsRecorded) {
    const auto line = filler();
    const auto count = static_cast<std::uint32_t>(lay_out(*line, {0, 94, 300}, 60).size());
    std::vector<std::pair<Ticks, Ticks>> frames;  // due, late
    const auto record = [&](Ticks due, Ticks late) { frames.emplace_back(due, late); };
    const Ticks began = line->begins();
    EXPECT_EQ(line->taken(0, count - 1, true, began, began + 10, record).frames, 2U);
    EXPECT_EQ(line->taken(count - 1, 1, false, began + 20, began + 30, record).frames, 1U);
    const Ticks start = 10 * kClockHz;
    // 94 cannot be reached behind a frame of 84: a gap of 10 takes a filler of 84
    EXPECT_EQ(frames, (std::vector<std::pair<Ticks, Ticks>>{{start, 0},
                                                            {start + 94 * kTicksPerByte, 74 * kTicksPerByte},
                                                            {start + 300 * kTicksPerByte, 36 * kTicksPerByte}}));
    EXPECT_EQ(line->errors().max(), 74U);
    EXPECT_EQ(line->fillers(), count - 3);
    EXPECT_EQ(line->watch().times_idle(), 0U);
    EXPECT_EQ(line->early(), 0);
}

// A driver that takes frames at once: the line cannot be as slow as it is said to be.
TEST_F(LineFillerTest, AFasterLineThanToldIsNoticed) {
    const auto line = filler();
    const auto count = static_cast<std::uint32_t>(lay_out(*line, {0, 500'000}, 60).size());
    const Ticks began = line->begins();
    line->taken(0, count, false, began, began, [](Ticks, Ticks) {});
    const double held = 128 * 1538 * kTicksPerByte;  // at most
    EXPECT_GE(line->early(), (500'000 + kLead) * kTicksPerByte - held);
}

TEST_F(LineFillerTest, ARepliesPlaceShortensTheNextFiller) {
    const auto line = filler();
    rte_ring* control = rte_ring_create("line_filler_test", 8, SOCKET_ID_ANY, 0);
    ASSERT_NE(control, nullptr);
    const std::uint64_t due = line->start(10 * kClockHz) + 1;
    rte_ring_enqueue(control, frame(60));
    line->made()[0] = frame(60);
    line->set_due(0, due);
    line->set_made(1);
    line->begin();
    EXPECT_TRUE(line->place_reply(control, burst_.data()));
    EXPECT_FALSE(line->place_reply(control, burst_.data()));
    while (line->waiting() != 0) line->place_next(0, burst_.data());
    std::uint64_t before = 0, late = 1;
    for (std::uint32_t i = 0; i + 1 < line->count(); ++i) before += on_line(burst_[i]->pkt_len);
    EXPECT_EQ(before, due);
    EXPECT_EQ(burst_[0]->pkt_len, 60U);
    const Ticks began = line->begins();
    const auto taken = line->taken(0, line->count(), false, began, began, [&](Ticks, Ticks by) { late = by; });
    EXPECT_EQ(taken.replies, 1U);
    EXPECT_EQ(taken.frames, 1U);
    EXPECT_EQ(late, 0U);
    rte_ring_free(control);
}

TEST_F(LineFillerTest, FillersAreRecognisedByPathAndBehindATag) {
    const auto line = filler(true);
    lay_out(*line, {0}, 60);
    const auto* bytes = rte_pktmbuf_mtod(burst_[0], const std::uint8_t*);
    std::vector<std::uint8_t> tagged(bytes, bytes + 60);
    EXPECT_TRUE(has_marks(filler_marks(1), tagged.data(), tagged.size()));
    for (const std::size_t other : {0, 3, 513})
        EXPECT_FALSE(has_marks(filler_marks(other), tagged.data(), tagged.size())) << other;
    const std::array<std::uint8_t, 4> tag{0x81, 0, 0, 5};
    tagged.insert(tagged.begin() + 12, tag.begin(), tag.end());
    EXPECT_TRUE(has_marks(filler_marks(1), tagged.data(), tagged.size()));
}

}  // namespace
}  // namespace dutperf
