// SPDX-License-Identifier: Apache-2.0
// Checks that nobody writes into a buffer while a driver holds it. Each buffer has its own page. A page that is handed
// over is read-only until the driver returns its buffer, so that a single write into a frame in flight ends the test.
#include "trial/frame_source.hpp"

#include <gtest/gtest.h>
#include <rte_mbuf.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "frame/arrival.hpp"
#include "platform/eal.hpp"
#include "port/port.hpp"

namespace dutperf {
namespace {

constexpr std::size_t kPage = 4096, kBuffers = 511;
using Bytes = std::vector<std::uint8_t>;

// A pool whose buffers each have their own page.
class PagedPool {
public:
    explicit PagedPool(const std::string& name) {
        start_eal({.memory = MemoryChoice::no_huge_pages, .megabytes = 64, .pci_devices = {}});
        pages_ = static_cast<std::uint8_t*>(
            mmap(nullptr, kBuffers * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        pool_ = make_pool({.name = name, .count = kBuffers, .frame_size = kMinFrameSize});
        const auto give_page = [](rte_mempool* /*pool*/, void* pages, void* buffer, unsigned i) {
            static_cast<rte_mbuf*>(buffer)->buf_addr = static_cast<std::uint8_t*>(pages) + i * kPage;
        };
        rte_mempool_obj_iter(pool_.get(), give_page, pages_);
    }
    ~PagedPool() {
        pool_.reset();
        munmap(pages_, kBuffers * kPage);
    }
    PagedPool(const PagedPool&) = delete;
    PagedPool& operator=(const PagedPool&) = delete;

    [[nodiscard]] rte_mempool* get() const { return pool_.get(); }

private:
    std::uint8_t* pages_;
    Pool pool_;
};

// Holds frames like a driver's transmit ring, first in, first out, and write-protects them.
class HoldingDriver {
public:
    ~HoldingDriver() {
        while (!held_.empty()) complete();
    }
    void take(rte_mbuf* frame) {
        mprotect(frame->buf_addr, kPage, PROT_READ);
        held_.push_back(frame);
    }
    void complete() {
        mprotect(held_.front()->buf_addr, kPage, PROT_READ | PROT_WRITE);
        rte_pktmbuf_free(held_.front());
        held_.pop_front();
    }
    [[nodiscard]] std::size_t held() const { return held_.size(); }

private:
    std::deque<rte_mbuf*> held_;
};

FrameTemplate frame_of(bool ipv6, std::uint16_t size, std::uint16_t trial) {
    const IpPair v4{*parse_ipv4("198.18.0.2"), *parse_ipv4("198.19.0.2")},
        v6{*parse_ipv6("2001:2::2"), *parse_ipv6("2001:2:0:8000::2")};
    const AddressVariations vary{.source = AddressVariation::word,
                                 .destination = AddressVariation::network,
                                 .source_offset = 1,
                                 .destination_offset = 0};
    const FrameIdentity identity{.trial = trial, .stream = 0, .source_port = 1024, .destination_port = 1};
    return {{.size = size, .addresses = ipv6 ? v6 : v4}, Mac{2}, Mac{4}, identity, vary};
}

using Everything = Varies<true, true, true, true>;

// A stream with every kind of variation, and its pools.
struct Stream {
    Stream(const PagedPool& foreground_pool, const PagedPool& background_pool, std::uint16_t trial,
           const Share& share = {})
        : foreground(foreground_pool.get(), frame_of(false, 64, trial), trial),
          background(background_pool.get(), frame_of(true, 128, trial), trial),
          source({.foreground = &foreground,
                  .background = &background,
                  .fields = {{{.mode = FieldMode::random, .min = 1024, .max = 65535},
                              {.mode = FieldMode::decreasing, .min = 1, .max = 49151},
                              1,
                              share.stride},
                             {{.mode = FieldMode::increasing, .min = 2, .max = 9},
                              {.mode = FieldMode::random, .min = 0, .max = 255},
                              2,
                              share.stride}},
                  .n = 3,
                  .m = 2,
                  .stamps = StampChoice::tagged(50, 100, 900, 3),
                  .share = share}) {}

    FramePool foreground, background;
    FrameSource<Everything> source;
};

// The share's frames of the first 1000 of the stream, made in bursts of `burst`.
std::vector<Bytes> thousand_frames(std::uint32_t burst, const Share& share = {}) {
    const PagedPool foreground("of_burst_f"), background("of_burst_b");
    Stream stream(foreground, background, 7, share);
    const std::uint64_t total = share.among(1000);
    std::vector<rte_mbuf*> frames(burst);
    std::vector<Bytes> all;
    for (std::uint64_t k = 0; k < total; k += burst) {
        const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(burst, total - k));
        EXPECT_TRUE(stream.source.make(k, count, 0x1234567890, frames.data()));
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint8_t* bytes = begin_of_frame(frames[i]);
            all.emplace_back(bytes, bytes + rte_pktmbuf_data_len(frames[i]));
            rte_pktmbuf_free(frames[i]);
        }
    }
    return all;
}

TEST(FrameSource, SendersThatShareAStreamMakeIdenticalFrames) {
    const std::vector<Bytes> expected = thousand_frames(32);
    for (const std::uint64_t senders : {2U, 3U, 16U}) {
        for (std::uint64_t sender = 0; sender < senders; ++sender) {
            const Share share{sender, senders};
            const std::vector<Bytes> made = thousand_frames(static_cast<std::uint32_t>(1 + 5 * sender), share);
            for (std::uint64_t j = 0; j < made.size(); ++j)
                ASSERT_EQ(made[j], expected[share.number(j)]) << share.number(j);
        }
    }
}

TEST(FrameSource, NeverWritesIntoAFrameInFlight) {
    const PagedPool foreground("held_f"), background("held_b");
    HoldingDriver driver;
    std::vector<rte_mbuf*> frames(kMaxBurst);
    int started_while_held = 0;
    for (std::uint16_t trial = 1; trial <= 20;
         ++trial) {  // the driver still holds frames of the previous trial when the next one writes its template
        started_while_held += driver.held() > 0 ? 1 : 0;
        Stream stream(foreground, background, trial);
        std::uint64_t number = 0;
        for (std::uint64_t turn = 0; turn < 200; ++turn) {
            const auto count = static_cast<std::uint32_t>(1 + random_bits(trial, turn) % 48);
            if (stream.source.make(number, count, turn, frames.data())) {
                for (std::uint32_t i = 0; i < count; ++i) driver.take(frames[i]);
                number += count;
            }
            for (std::uint64_t gone = random_bits(trial + 100U, turn) % 60; gone > 0 && driver.held() > 0; --gone)
                driver.complete();
        }
        EXPECT_GT(number, 1000U);
    }
    EXPECT_GT(started_while_held, 10);
}

TEST(FrameSource, ABufferThatADriverChangedIsRewritten) {
    const PagedPool pool("changed");
    const FrameTemplate frame = frame_of(false, 64, 5);
    FramePool frames(pool.get(), frame, 5);
    constexpr std::uint32_t kCount = 9;
    std::array<rte_mbuf*, kCount> taken{};
    ASSERT_TRUE(frames.take(taken.data(), kCount));
    const std::array<rte_mbuf*, kCount> before = taken;
    before[1]->data_off = 0;
    before[2]->pkt_len += 0x10000;
    before[4]->data_len = 1;
    before[7]->hash.usr = 4;
    for (rte_mbuf* buffer : before) begin_of_frame(buffer)[0] = 0xEE;
    rte_mempool_put_bulk(pool.get(), reinterpret_cast<void* const*>(before.data()), kCount);
    ASSERT_TRUE(frames.take(taken.data(), kCount));
    for (std::uint32_t i = 0; i < kCount; ++i) {
        const rte_mbuf& buffer = *before[i];
        ASSERT_NE(std::ranges::find(taken, &buffer), taken.end());
        EXPECT_EQ(buffer.data_off, RTE_PKTMBUF_HEADROOM) << i;
        EXPECT_EQ(buffer.pkt_len, frame.length()) << i;
        EXPECT_EQ(buffer.data_len, frame.length()) << i;
        EXPECT_EQ(buffer.hash.usr, 5U) << i;
        const bool changed = i == 1 || i == 2 || i == 4 || i == 7;
        EXPECT_EQ(begin_of_frame(before[i])[0], changed ? frame.data()[0] : 0xEE) << i;  // the others are not rewritten
    }
}

TEST(FrameSourceDeathTest, TheTrapCatchesAWrite) {
    GTEST_FLAG_SET(death_test_style, "fast");
    const PagedPool pool("trap");
    HoldingDriver driver;
    rte_mbuf* frame = rte_pktmbuf_alloc(pool.get());
    driver.take(frame);
    EXPECT_DEATH(store(begin_of_frame(frame), std::uint16_t{1}), "");
}

TEST(FrameSource, TheSameFramesAtAnyBurst) {
    const std::vector<Bytes> one_by_one = thousand_frames(1);
    ASSERT_EQ(one_by_one.size(), 1000U);
    for (const std::uint32_t burst : {2U, 7U, 8U, 32U, 61U, 200U})
        EXPECT_EQ(thousand_frames(burst), one_by_one) << burst;
}

TEST(FrameSource, EveryFrameIsIntactAndNumbered) {
    std::uint64_t k = 0, stamped = 0;
    for (const Bytes& frame : thousand_frames(32)) {
        const std::uint8_t* payload = find_tag(frame.data(), frame.size());
        ASSERT_NE(payload, nullptr) << k;
        EXPECT_TRUE(is_intact(frame.data(), frame.size())) << k;
        const Tag tag = read_tag(payload);
        EXPECT_EQ(tag.sequence, k);
        EXPECT_EQ(frame.size(), k % 3 < 2 ? 60U : 124U);
        EXPECT_TRUE(tag.stamp == 0 || tag.stamp == 0x1234567890) << tag.stamp;
        stamped += tag.stamp != 0 ? 1U : 0U;
        ++k;
    }
    EXPECT_EQ(stamped, 50U);
}

}  // namespace
}  // namespace dutperf
