// SPDX-License-Identifier: Apache-2.0
#include "port/neighbour_responder.hpp"

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <thread>

#include "port/burst.hpp"

namespace dutperf {

namespace {

constexpr std::chrono::milliseconds kAskInterval{200};
constexpr std::chrono::microseconds kPause{50};

}  // namespace

rte_mbuf* make_frame(rte_mempool* pool, const FrameBytes& bytes) {
    rte_mbuf* frame = rte_pktmbuf_alloc(pool);
    if (frame == nullptr) return nullptr;
    char* room = rte_pktmbuf_append(frame, static_cast<std::uint16_t>(bytes.size()));
    std::ranges::copy(bytes, room);
    return frame;
}

bool NeighbourResponder::resolve(std::chrono::milliseconds timeout) {
    if (gateway_.mac) return true;
    using Clock = std::chrono::steady_clock;
    resolved4_ = !gateway_.ipv4;
    resolved6_ = !gateway_.ipv6;
    const auto deadline = Clock::now() + timeout;
    for (auto next = Clock::now(); !(resolved4_ && resolved6_) && Clock::now() < deadline;
         std::this_thread::sleep_for(kPause)) {
        if (Clock::now() >= next) {
            ask();
            next += kAskInterval;
        }
        serve();
    }
    return resolved4_ && resolved6_;
}

Mac NeighbourResponder::dut_mac(bool ipv6, const Mac& direct) const {
    if (gateway_.mac) return *gateway_.mac;
    const std::optional<Mac>& wanted = ipv6 ? mac6_ : mac4_;
    const std::optional<Mac>& other = ipv6 ? mac4_ : mac6_;
    return wanted.value_or(other.value_or(direct));
}

void NeighbourResponder::serve() {
    for (std::uint16_t queue = 0; queue < port_.queues(); ++queue) serve(port_.queue(queue));
}

void NeighbourResponder::serve(PortQueue queue) {
    std::array<rte_mbuf*, 32> frames{};
    const std::uint16_t count = receive_burst(queue, frames.data(), frames.size());
    for (std::uint16_t i = 0; i < count; ++i) {
        const auto* bytes = rte_pktmbuf_mtod(frames[i], const std::uint8_t*);
        const std::size_t length = rte_pktmbuf_data_len(frames[i]);
        learn(bytes, length);
        if (const auto reply = answer(host_, bytes, length)) send(*reply);
    }
    rte_pktmbuf_free_bulk(frames.data(), count);
}

void NeighbourResponder::handle(const std::uint8_t* frame, std::size_t length) {
    learn(frame, length);
    if (gateway_.ipv4) {
        if (const auto mac = arp_requester_mac(*gateway_.ipv4, frame, length)) mac4_ = mac;
    }
    if (gateway_.ipv6) {
        if (const auto mac = solicitor_mac(*gateway_.ipv6, frame, length)) mac6_ = mac;
    }
    if (const auto reply = answer(host_, frame, length)) send(*reply);
}

void NeighbourResponder::ask() {
    if (!resolved4_ && host_.ipv4 && gateway_.ipv4) send(arp_request(host_, *gateway_.ipv4));
    if (!resolved6_ && host_.ipv6 && gateway_.ipv6) send(neighbour_solicitation(host_, *gateway_.ipv6));
}

void NeighbourResponder::send(const FrameBytes& frame) {
    rte_mbuf* buffer = make_frame(pool_, frame);
    if (buffer == nullptr) return;
    if (transmit_burst({port_.id()}, &buffer, 1) == 1) {
        ++sent_;
    } else {
        rte_pktmbuf_free(buffer);
    }
}

void NeighbourResponder::learn(const std::uint8_t* frame, std::size_t length) {
    if (gateway_.ipv4) {
        if (const auto mac = arp_reply_mac(*gateway_.ipv4, frame, length)) {
            mac4_ = mac;
            resolved4_ = true;
        }
    }
    if (gateway_.ipv6) {
        if (const auto mac = advertised_mac(*gateway_.ipv6, frame, length)) {
            mac6_ = mac;
            resolved6_ = true;
        }
    }
}

}  // namespace dutperf
