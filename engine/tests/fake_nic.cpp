// SPDX-License-Identifier: Apache-2.0
// A NIC that helps, where there is none: linked into an engine of its own, whose calls of DPDK pass here first (the
// linker's --wrap). Every port, whatever its driver, then offers what engine/port/offloads.hpp knows. Between ports
// that are joined in memory there is a cable: frames leave when they are handed over, or at the time that is given with
// them, arrive kCable later by the NIC's clock, and may be polled another kModeration later. $DUTPERF_FAKE_NIC names
// what is amiss (see struct Amiss).
#define ALLOW_EXPERIMENTAL_API
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf_dyn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>

#include "port/port.hpp"

namespace {

constexpr double kCableS = 0.001, kModerationS = 0.002, kStepBackS = 1;
constexpr double kLinkAfterS = 0.5, kFlapAfterS = 0.1, kFlapS = 0.1;
constexpr std::uint64_t kFramesBeforeStep = 200;
constexpr double kTicksPerNicTick = 24.0019;  // no whole number, as with any two oscillators
constexpr std::uint64_t kTransmitOffloads =
    RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
constexpr std::uint64_t kNicAtStart = 1'000'000'007;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

// What $DUTPERF_FAKE_NIC says.
struct Amiss {
    bool no_clock = says("no_clock");    // time stamps, and no way to read the clock
    bool unstamped = says("unstamped");  // every tenth frame
    bool jumps = says("jumps");          // somebody advances the clock by a millisecond, ten times a second
    bool steps_back =
        says("steps_back");  // ... puts it back by kStepBackS when kFramesBeforeStep frames were handed over
    bool uncounted = says("uncounted");      // the driver does not count what left
    bool halved = says("halved");            // ... but half of it
    bool counts_late = says("counts_late");  // ... when a second has passed
    bool wraps = says("wraps");              // ... in 32 bits, which are nearly full
    bool keeps = says("keeps");              // every tenth frame, for ever
    bool loses = says("loses");              // on the way, every tenth frame
    bool errors = says("errors");            // ... that it keeps counts as an error
    bool card = says("card");                // the ports are cards
    bool no_link = says("no_link");          // the cable is not in
    bool slow_link = says("slow_link");      // ... until kLinkAfterS after the port was started
    bool flaps = says("flaps");              // ... for kFlapS, kFlapAfterS after the first frame was handed over
    bool pause = says("pause");              // flow control is on, and stays on
    bool pauses = says("pauses");            // flow control is on, and can be set
    bool agrees = says("agrees");            // ... but what the link negotiates takes the place of what was set before
    double media_mbps = number("media=");    // their link carries so much
    double slow_ppm = number("slow=");       // ... by the card's clock, which is slower than the tester's
    double ring = number("ring=");           // frames of each transmit queue; 0: it is never full

    static double number(const char* word) {
        const char* all = std::getenv("DUTPERF_FAKE_NIC");
        const char* at = all == nullptr ? nullptr : std::strstr(all, word);
        return at == nullptr ? 0 : std::strtod(at + std::strlen(word), nullptr);
    }

    static bool says(const char* word) {
        const char* all = std::getenv("DUTPERF_FAKE_NIC");
        return all != nullptr && std::string(all).find(word) != std::string::npos;
    }
};
const Amiss amiss;

struct Held {
    rte_mbuf* frame;
    std::uint64_t arrives;  // ticks
};

struct FakePort {
    std::uint64_t receive_offloads = 0, transmit_offloads = 0;
    std::array<std::deque<Held>, 16> cable;  // to each receive queue
    std::uint64_t received = 0;
    rte_eth_fc_mode flow_control = RTE_ETH_FC_FULL;
    unsigned flow_control_set = 0;                       // how often
    std::array<std::uint32_t, 16> limit_mbps{};          // of each transmit queue; 0: none
    std::array<std::uint64_t, 16> idle_from{};           // when the queue has sent what it got
    std::array<std::deque<std::uint64_t>, 16> to_leave;  // when each frame of a queue leaves, or is counted
    std::uint64_t handed_over = 0, kept = 0, sent = 0;   // the last as it was told
};

std::array<FakePort, RTE_MAX_ETHPORTS> ports;
const std::uint64_t start = rte_rdtsc();

std::uint64_t ticks_of(double seconds) {
    return static_cast<std::uint64_t>(seconds * static_cast<double>(rte_get_tsc_hz()));
}

std::atomic<std::uint64_t> handed_over{0}, stepped_back{0};  // frames of all ports; ticks
std::atomic<std::uint64_t> first_handed_over{0}, last_started{0};

// Of the fake cable, now.
bool has_link() {
    const std::uint64_t now = rte_rdtsc(), first = first_handed_over;
    const bool flapping =
        first != 0 && now >= first + ticks_of(kFlapAfterS) && now < first + ticks_of(kFlapAfterS + kFlapS);
    return !amiss.no_link && !(amiss.slow_link && now < last_started + ticks_of(kLinkAfterS)) &&
           !(amiss.flaps && flapping);
}

std::uint64_t nic_time(std::uint64_t ticks) {
    const std::uint64_t jumped = amiss.jumps ? (ticks - start) / ticks_of(0.1) * ticks_of(0.001) : 0;
    const auto since = static_cast<double>(
        static_cast<std::int64_t>(ticks - start + jumped - stepped_back));  // perhaps before the start
    return kNicAtStart + static_cast<std::uint64_t>(static_cast<std::int64_t>(since / kTicksPerNicTick));
}

// Where a frame on its way keeps when it left, and where the engine looks for its arrival.
struct Fields {
    int left = -1, time = -1;
    std::uint64_t arrived_flag = 0, timed_flag = 0;

    Fields() {
        const rte_mbuf_dynfield field{
            .name = "fake_nic_left", .size = sizeof(std::uint64_t), .align = alignof(std::uint64_t), .flags = 0};
        left = rte_mbuf_dynfield_register(&field);
        rte_mbuf_dyn_rx_timestamp_register(&time, &arrived_flag);
        rte_mbuf_dyn_tx_timestamp_register(&time, &timed_flag);
    }
};
const Fields& fields() {
    static const Fields all;
    return all;
}

// When the clock reaches a time, from `now` on; a jump may take it there.
std::uint64_t ticks_at(std::uint64_t time, std::uint64_t now) {
    for (std::uint64_t at = now;;) {
        const auto missing = static_cast<double>(static_cast<std::int64_t>(time - nic_time(at)));
        if (missing <= 0) return at;
        const std::uint64_t reached = at + static_cast<std::uint64_t>(missing * kTicksPerNicTick);
        at = start + ((at - start) / ticks_of(0.1) + 1) * ticks_of(0.1);
        if (!amiss.jumps || reached < at) return reached;
    }
}

std::uint64_t departure(const FakePort& port, const rte_mbuf* frame) {
    const std::uint64_t now = rte_rdtsc();
    if ((port.transmit_offloads & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP) == 0 ||
        (frame->ol_flags & fields().timed_flag) == 0)
        return now;
    return ticks_at(*RTE_MBUF_DYNFIELD(frame, fields().time, const rte_mbuf_timestamp_t*), now);
}

// As NICs do: sums up what stands there, also in UDP's own field, where the sum of the pseudo-header is. A NIC
// completes its copy; here it is the buffer, which comes again with IPv4's checksum in it. Not for frames that a driver
// may refuse and get again.
void complete_checksums(const FakePort& port, rte_mbuf* frame) {
    auto* const ip = rte_pktmbuf_mtod_offset(frame, std::uint8_t*, frame->l2_len);
    std::uint8_t* const udp = ip + frame->l3_len;
    const auto complete = [](std::uint8_t* field, std::uint16_t sum) {
        sum = static_cast<std::uint16_t>(~sum);
        std::memcpy(field, &sum, sizeof sum);
        return sum;
    };
    if ((port.transmit_offloads & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0 &&
        (frame->ol_flags & RTE_MBUF_F_TX_IP_CKSUM) != 0) {
        std::memset(ip + 10, 0, 2);
        complete(ip + 10, rte_raw_cksum(ip, frame->l3_len));
    }
    if ((port.transmit_offloads & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) == 0 ||
        (frame->ol_flags & RTE_MBUF_F_TX_L4_MASK) != RTE_MBUF_F_TX_UDP_CKSUM)
        return;
    const std::size_t length = frame->data_len - frame->l2_len - frame->l3_len;
    if (complete(udp + 6, rte_raw_cksum(udp, length)) == 0) std::memset(udp + 6, 0xFF, 2);
}

// Not before the queue has sent what came before, as fast as it may.
std::uint64_t through_queue(FakePort& port, std::uint16_t queue, const rte_mbuf* frame) {
    const std::uint64_t leaves = std::max(departure(port, frame), port.idle_from[queue]);
    const double mbps =
        port.limit_mbps[queue] != 0 ? port.limit_mbps[queue] : amiss.media_mbps * (1 - amiss.slow_ppm / 1e6);
    port.idle_from[queue] = leaves + (mbps != 0 ? ticks_of((frame->pkt_len + 24.0) * 8 / mbps / 1e6) : 0);
    port.to_leave[queue].push_back(leaves);
    return leaves;
}

std::uint64_t counted_at(std::uint64_t leaves) { return leaves + (amiss.counts_late ? ticks_of(1) : 0); }

void count_what_left(std::deque<std::uint64_t>& queue) {
    for (const std::uint64_t now = rte_rdtsc(); !queue.empty() && counted_at(queue.front()) <= now;) queue.pop_front();
}

std::uint16_t room_in(std::deque<std::uint64_t>& queue, std::uint16_t count) {
    if (amiss.ring == 0) return count;
    count_what_left(queue);
    const std::size_t left = static_cast<std::size_t>(std::ranges::upper_bound(queue, rte_rdtsc()) - queue.begin());
    return static_cast<std::uint16_t>(
        std::min<double>(count, std::max(0.0, amiss.ring - static_cast<double>(queue.size() - left))));
}

std::mutex counting;

std::uint16_t leave(std::uint16_t port, std::uint16_t queue, rte_mbuf** frames, std::uint16_t count, void* /*unused*/) {
    const std::lock_guard lock(counting);
    count = room_in(ports[port].to_leave[queue], count);
    if (first_handed_over == 0) first_handed_over = rte_rdtsc();
    for (std::uint16_t i = 0; i < count; ++i) {
        if (++handed_over == kFramesBeforeStep && amiss.steps_back) stepped_back = ticks_of(kStepBackS);
        complete_checksums(ports[port], frames[i]);
        std::uint64_t left = through_queue(ports[port], queue, frames[i]);
        if (++ports[port].handed_over % 10 == 0 && (amiss.keeps || amiss.loses)) {
            left = kNever;
            ports[port].kept += amiss.keeps ? 1 : 0;
        }
        *RTE_MBUF_DYNFIELD(frames[i], fields().left, std::uint64_t*) = left;
    }
    return count;
}

void stamp(FakePort& port, const Held& held) {
    held.frame->ol_flags &= ~fields().arrived_flag;
    if ((port.receive_offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP) == 0 || (amiss.unstamped && ++port.received % 10 == 0))
        return;
    *RTE_MBUF_DYNFIELD(held.frame, fields().time, rte_mbuf_timestamp_t*) = nic_time(held.arrives);
    held.frame->ol_flags |= fields().arrived_flag;
}

std::uint16_t arrive(std::uint16_t port, std::uint16_t queue, rte_mbuf** frames, std::uint16_t count,
                     std::uint16_t most, void* /*unused*/) {
    auto& cable = ports[port].cable[queue];
    for (std::uint16_t i = 0; i < count; ++i) {
        const std::uint64_t left = *RTE_MBUF_DYNFIELD(frames[i], fields().left, std::uint64_t*);
        left == kNever ? rte_pktmbuf_free(frames[i]) : cable.push_back({frames[i], left + ticks_of(kCableS)});
    }
    const std::uint64_t now = rte_rdtsc();
    std::uint16_t there = 0;
    for (; there < most && !cable.empty() && cable.front().arrives + ticks_of(kModerationS) <= now; ++there) {
        stamp(ports[port], cable.front());
        frames[there] = cable.front().frame;
        cable.pop_front();
    }
    return there;
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): names that the linker makes
extern "C" {

int __real_rte_eth_dev_info_get(std::uint16_t port, rte_eth_dev_info* info);
int __real_rte_eth_dev_configure(std::uint16_t port, std::uint16_t receive, std::uint16_t transmit,
                                 const rte_eth_conf* conf);
int __real_rte_eth_dev_start(std::uint16_t port);
int __real_rte_eth_link_get_nowait(std::uint16_t port, rte_eth_link* link);
int __real_rte_eth_stats_get(std::uint16_t port, rte_eth_stats* stats);

int __wrap_rte_eth_dev_info_get(std::uint16_t port, rte_eth_dev_info* info) {
    const int status = __real_rte_eth_dev_info_get(port, info);
    info->rx_offload_capa |= RTE_ETH_RX_OFFLOAD_TIMESTAMP;
    info->tx_offload_capa |= kTransmitOffloads;
    return status;
}

int __wrap_rte_eth_dev_configure(std::uint16_t port, std::uint16_t receive, std::uint16_t transmit,
                                 const rte_eth_conf* conf) {
    rte_eth_conf real = *conf;
    ports[port].receive_offloads = conf->rxmode.offloads;
    ports[port].transmit_offloads = conf->txmode.offloads;
    real.rxmode.offloads &= ~RTE_ETH_RX_OFFLOAD_TIMESTAMP;
    real.txmode.offloads &= ~kTransmitOffloads;
    return __real_rte_eth_dev_configure(port, receive, transmit, &real);
}

int __wrap_rte_eth_dev_start(std::uint16_t port) {
    rte_eth_dev_info info{};
    __real_rte_eth_dev_info_get(port, &info);
    for (std::uint16_t queue = 0; queue < info.nb_tx_queues; ++queue)
        rte_eth_add_tx_callback(port, queue, leave, nullptr);
    // a driver of another kind receives what never left here
    const bool joined = std::string(info.driver_name) == "net_ring";
    for (std::uint16_t queue = 0; joined && queue < info.nb_rx_queues; ++queue)
        rte_eth_add_rx_callback(port, queue, arrive, nullptr);
    last_started = rte_rdtsc();
    return __real_rte_eth_dev_start(port);
}

int __wrap_rte_eth_link_get_nowait(std::uint16_t port, rte_eth_link* link) {
    const int status = __real_rte_eth_link_get_nowait(port, link);
    if (!has_link()) link->link_status = RTE_ETH_LINK_DOWN;
    return status;
}

int __wrap_rte_eth_dev_flow_ctrl_get(std::uint16_t port, rte_eth_fc_conf* conf) {
    if (!amiss.pause && !amiss.pauses && !amiss.agrees) return -ENOTSUP;
    conf->mode = ports[port].flow_control;
    return 0;
}

int __wrap_rte_eth_dev_flow_ctrl_set(std::uint16_t port, rte_eth_fc_conf* conf) {
    if (!amiss.pauses && !amiss.agrees) return -ENOTSUP;
    if (!amiss.agrees || ports[port].flow_control_set++ > 0) ports[port].flow_control = conf->mode;
    return 0;
}

// What waits has not been sent. Counters are read while others send: a frame is in a queue here before the driver
// counts it, and no counter goes back.
int __wrap_rte_eth_stats_get(std::uint16_t port, rte_eth_stats* stats) {
    const int status = __real_rte_eth_stats_get(port, stats);
    const std::lock_guard lock(counting);
    std::uint64_t not_sent = ports[port].kept;
    for (auto& queue : ports[port].to_leave) {
        count_what_left(queue);
        not_sent += queue.size();
    }
    ports[port].sent = std::max(ports[port].sent, stats->opackets - std::min(stats->opackets, not_sent));
    stats->opackets = ports[port].sent;
    stats->oerrors += amiss.errors ? ports[port].kept : 0;
    if (amiss.uncounted) stats->opackets = 0;
    if (amiss.halved) stats->opackets /= 2;
    if (amiss.wraps) stats->opackets = static_cast<std::uint32_t>(stats->opackets + 0xFFFF'FF00U);
    return status;
}

int __wrap_rte_eth_read_clock(std::uint16_t /*port*/, std::uint64_t* now) {
    if (amiss.no_clock) return -ENOTSUP;
    *now = nic_time(rte_rdtsc());
    return 0;
}

int __wrap_rte_eth_set_queue_rate_limit(std::uint16_t port, std::uint16_t queue, std::uint32_t mbps) {
    ports[port].limit_mbps[queue] = mbps;
    return 0;
}

// Of dutperf::Port, by the names that the compiler gives them.
bool __real__ZNK7dutperf4Port7is_cardEv(const dutperf::Port* port);
bool __wrap__ZNK7dutperf4Port7is_cardEv(const dutperf::Port* port) {
    return amiss.card || __real__ZNK7dutperf4Port7is_cardEv(port);
}

dutperf::LinkStatus __real__ZNK7dutperf4Port4linkEv(const dutperf::Port* port);
dutperf::LinkStatus __wrap__ZNK7dutperf4Port4linkEv(const dutperf::Port* port) {
    dutperf::LinkStatus link = __real__ZNK7dutperf4Port4linkEv(port);
    if (amiss.card && amiss.media_mbps != 0) link.mbps = static_cast<std::uint32_t>(amiss.media_mbps);
    return link;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
