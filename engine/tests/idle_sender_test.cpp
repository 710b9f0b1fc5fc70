// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include <array>
#include <vector>

#include "platform/eal.hpp"
#include "port/pool.hpp"
#include "trial/transmitter.hpp"

namespace dutperf {
namespace {

constexpr std::size_t kReplies = 10;

// A port whose frames nobody takes but the test: three find room.
class FullPort {
public:
    FullPort() : frames_(rte_ring_create("full_port", 4, SOCKET_ID_ANY, 0)) {
        id_ = rte_eth_from_ring(frames_);
        const rte_eth_conf conf{};
        rte_eth_dev_configure(port(), 1, 1, &conf);
        rte_eth_rx_queue_setup(port(), 0, 8, SOCKET_ID_ANY, nullptr, pool_.get());
        rte_eth_tx_queue_setup(port(), 0, 8, SOCKET_ID_ANY, nullptr);
        rte_eth_dev_start(port());
    }
    ~FullPort() {
        rte_eth_dev_stop(port());
        rte_eth_dev_close(port());
        rte_ring_free(frames_);
    }
    FullPort(const FullPort&) = delete;
    FullPort& operator=(const FullPort&) = delete;

    [[nodiscard]] std::uint16_t port() const { return static_cast<std::uint16_t>(id_); }
    [[nodiscard]] rte_mempool* pool() const { return pool_.get(); }
    // What the port has sent since the last call.
    std::vector<rte_mbuf*> taken() {
        std::array<void*, kReplies> frames{};
        std::vector<rte_mbuf*> all;
        for (unsigned i = 0, count = rte_ring_dequeue_burst(frames_, frames.data(), kReplies, nullptr); i < count; ++i)
            all.push_back(static_cast<rte_mbuf*>(frames[i]));
        return all;
    }

private:
    Pool pool_ = make_pool({.name = "full_port", .count = 1023, .frame_size = 64});
    rte_ring* frames_;
    int id_ = -1;
};

TEST(IdleSender, AReplyThatFindsNoRoomIsSentLater) {
    start_eal({.memory = MemoryChoice::no_huge_pages, .megabytes = 64, .pci_devices = {}});
    FullPort port;
    rte_ring* const control = rte_ring_create("full_control", 16, SOCKET_ID_ANY, 0);
    std::vector<rte_mbuf*> replies, sent;
    for (std::size_t i = 0; i < kReplies; ++i) {
        replies.push_back(rte_pktmbuf_alloc(port.pool()));
        ASSERT_EQ(rte_ring_enqueue(control, replies.back()), 0);
    }
    {
        const auto sender = make_idle_sender({port.port()}, control);
        while (sent.size() < kReplies) {
            for (int turn = 0; turn < 3; ++turn) sender->turn(0);
            const std::vector<rte_mbuf*> now = port.taken();
            ASSERT_FALSE(now.empty());
            sent.insert(sent.end(), now.begin(), now.end());
        }
        EXPECT_EQ(sender->counts().control_sent, kReplies);
    }
    EXPECT_EQ(sent, replies);
    for (rte_mbuf* frame : sent) rte_pktmbuf_free(frame);
    EXPECT_EQ(rte_mempool_in_use_count(port.pool()), 0U);
    rte_ring_free(control);
}

}  // namespace
}  // namespace dutperf
