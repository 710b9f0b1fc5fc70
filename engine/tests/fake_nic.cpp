// SPDX-License-Identifier: Apache-2.0
// A fake NIC with offloads: linked into a separate engine that calls these functions instead of DPDK's (the linker's
// --wrap). Every port, whatever its driver, then offers all offloads of engine/port/offloads.hpp. Ports that are
// connected in memory have a cable: frames leave when they are handed over, or at the time given with them. They arrive
// kCable later by the NIC's clock and can be polled kModeration after that. $DUTPERF_FAKE_NIC names faults to inject
// (see struct Faults). If $DUTPERF_FAKE_NIC_LEAVES names a file, the times at which frames leave go there (see Leaves).
#define ALLOW_EXPERIMENTAL_API
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf_dyn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
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
constexpr double kTicksPerNicTick = 24.0019;  // not a whole number, as with any two oscillators
constexpr std::uint64_t kTransmitOffloads = RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
constexpr std::uint64_t kNicAtStart = 1'000'000'007;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

// The faults that $DUTPERF_FAKE_NIC names.
struct Faults {
    bool no_clock = has("no_clock");        // time stamps, but the clock cannot be read
    bool unstamped = has("unstamped");      // every tenth frame has no time stamp
    bool jumps = has("jumps");              // the clock is advanced by a millisecond, ten times a second
    bool steps_back = has("steps_back");    // the clock is put back by kStepBackS after kFramesBeforeStep frames
    bool uncounted = has("uncounted");      // the driver does not count sent frames
    bool halved = has("halved");            // it counts half of them
    bool counts_late = has("counts_late");  // it counts them a second later
    bool wraps = has("wraps");              // it counts them in 32 bits, starting close to the wrap
    bool keeps = has("keeps");              // holds every tenth frame forever
    bool loses = has("loses");              // loses every tenth frame on the cable
    bool errors = has("errors");            // a frame that it keeps counts as an error
    bool card = has("card");                // the ports are cards
    bool no_link = has("no_link");          // the cable is unplugged
    bool slow_link = has("slow_link");      // no link until kLinkAfterS after the port was started
    bool flaps = has("flaps");              // no link for kFlapS, from kFlapAfterS after the first frame
    bool pause = has("pause");              // flow control is on, and stays on
    bool pauses = has("pauses");            // flow control is on, and can be set
    bool filters = has("filters");          // drops what it receives for other stations than itself
    bool agrees = has("agrees");            // but the link negotiation overrides what was set before
    double media_mbps = number("media=");   // Mbit/s of the ports' links
    double slow_ppm = number("slow=");      // the card's clock is slower than the tester's by this
    double ring = number("ring=");          // size of each transmit queue in frames; 0: never full

    static double number(const char* word) {
        const char* all = std::getenv("DUTPERF_FAKE_NIC");
        const char* at = all == nullptr ? nullptr : std::strstr(all, word);
        return at == nullptr ? 0 : std::strtod(at + std::strlen(word), nullptr);
    }

    static bool has(const char* word) {
        const char* all = std::getenv("DUTPERF_FAKE_NIC");
        return all != nullptr && std::string(all).find(word) != std::string::npos;
    }
};
const Faults faults;

struct Held {
    rte_mbuf* frame;
    std::uint64_t arrives;  // ticks
};

struct FakePort {
    std::uint64_t receive_offloads = 0, transmit_offloads = 0;
    std::array<std::deque<Held>, 16> cable;  // to each receive queue
    std::uint64_t received = 0;
    rte_eth_fc_mode flow_control = RTE_ETH_FC_FULL;
    unsigned flow_control_set = 0;                       // how often it was set
    std::array<std::uint32_t, 16> limit_mbps{};          // of each transmit queue; 0: none
    std::array<double, 16> idle_from{};                  // when the queue has sent all its frames, since `start`
    std::array<std::deque<std::uint64_t>, 16> to_leave;  // when each frame of a queue leaves, or is counted
    std::uint64_t handed_over = 0, kept = 0, sent = 0;   // `sent` as reported
};

std::array<FakePort, RTE_MAX_ETHPORTS> ports;
const std::uint64_t start = rte_rdtsc();

std::uint64_t ticks_of(double seconds) {
    return static_cast<std::uint64_t>(seconds * static_cast<double>(rte_get_tsc_hz()));
}

std::atomic<std::uint64_t> handed_over{0}, stepped_back{0};  // frames of all ports; ticks
std::atomic<std::uint64_t> first_handed_over{0}, last_started{0};

// Whether the fake cable has a link now.
bool has_link() {
    const std::uint64_t now = rte_rdtsc(), first = first_handed_over;
    const bool flapping =
        first != 0 && now >= first + ticks_of(kFlapAfterS) && now < first + ticks_of(kFlapAfterS + kFlapS);
    return !faults.no_link && !(faults.slow_link && now < last_started + ticks_of(kLinkAfterS)) &&
           !(faults.flaps && flapping);
}

std::uint64_t nic_time(std::uint64_t ticks) {
    const std::uint64_t jumped = faults.jumps ? (ticks - start) / ticks_of(0.1) * ticks_of(0.001) : 0;
    // perhaps before the start
    const auto since = static_cast<double>(static_cast<std::int64_t>(ticks - start + jumped - stepped_back));
    return kNicAtStart + static_cast<std::uint64_t>(static_cast<std::int64_t>(since / kTicksPerNicTick));
}

// Buffer fields for the departure time of a frame on the cable, and for the arrival time that the engine reads.
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

// When the NIC clock reaches a time, from `now` on; a jump may reach it early.
std::uint64_t ticks_at(std::uint64_t time, std::uint64_t now) {
    for (std::uint64_t at = now;;) {
        const auto missing = static_cast<double>(static_cast<std::int64_t>(time - nic_time(at)));
        if (missing <= 0) return at;
        const std::uint64_t reached = at + static_cast<std::uint64_t>(missing * kTicksPerNicTick);
        at = start + ((at - start) / ticks_of(0.1) + 1) * ticks_of(0.1);
        if (!faults.jumps || reached < at) return reached;
    }
}

std::uint64_t departure(const FakePort& port, const rte_mbuf* frame) {
    const std::uint64_t now = rte_rdtsc();
    if ((port.transmit_offloads & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP) == 0 ||
        (frame->ol_flags & fields().timed_flag) == 0)
        return now;
    return ticks_at(*RTE_MBUF_DYNFIELD(frame, fields().time, const rte_mbuf_timestamp_t*), now);
}

// When frames leave a port, in a file: for each 16 bytes in the machine's order, which are the time in ns (a double),
// the port, and the length. The length of a frame of IEEE 802's EtherType for local experiments, a filler, is negative.
class Leaves {
public:
    void record(std::uint16_t port, const rte_mbuf* frame, double ticks) {
        if (file_ == nullptr) return;
        const auto* bytes = rte_pktmbuf_mtod(frame, const std::uint8_t*);
        const auto length = static_cast<std::int32_t>(frame->pkt_len);
        const struct {
            double ns;
            std::int32_t port, length;
        } one{ticks * 1e9 / static_cast<double>(rte_get_tsc_hz()), port,
              bytes[12] == 0x88 && bytes[13] == 0xB5 ? -length : length};
        std::fwrite(&one, sizeof one, 1, file_);
    }

private:
    static std::FILE* open() {
        const char* path = std::getenv("DUTPERF_FAKE_NIC_LEAVES");
        return path == nullptr ? nullptr : std::fopen(path, "wb");
    }
    std::FILE* file_ = open();  // closed at the exit
};
Leaves recorded;

// The time at which a frame leaves: after the frames before it, at the rate of the queue. The line keeps parts of a
// tick.
std::uint64_t through_queue(std::uint16_t id, std::uint16_t queue, const rte_mbuf* frame) {
    FakePort& port = ports[id];
    const double leaves = std::max(static_cast<double>(departure(port, frame) - start), port.idle_from[queue]);
    const double mbps =
        port.limit_mbps[queue] != 0 ? port.limit_mbps[queue] : faults.media_mbps * (1 - faults.slow_ppm / 1e6);
    const double bytes = std::max(frame->pkt_len, 60U) + 24.0;  // a card pads short frames
    port.idle_from[queue] = leaves + (mbps != 0 ? bytes * 8 / mbps / 1e6 * static_cast<double>(rte_get_tsc_hz()) : 0);
    recorded.record(id, frame, leaves);
    port.to_leave[queue].push_back(start + static_cast<std::uint64_t>(leaves));
    return port.to_leave[queue].back();
}

std::uint64_t counted_at(std::uint64_t leaves) { return leaves + (faults.counts_late ? ticks_of(1) : 0); }

void count_what_left(std::deque<std::uint64_t>& queue) {
    for (const std::uint64_t now = rte_rdtsc(); !queue.empty() && counted_at(queue.front()) <= now;) queue.pop_front();
}

std::uint16_t room_in(std::deque<std::uint64_t>& queue, std::uint16_t count) {
    if (faults.ring == 0) return count;
    count_what_left(queue);
    const std::size_t left = static_cast<std::size_t>(std::ranges::upper_bound(queue, rte_rdtsc()) - queue.begin());
    return static_cast<std::uint16_t>(
        std::min<double>(count, std::max(0.0, faults.ring - static_cast<double>(queue.size() - left))));
}

std::mutex counting;

std::uint16_t leave(std::uint16_t port, std::uint16_t queue, rte_mbuf** frames, std::uint16_t count, void* /*unused*/) {
    const std::lock_guard lock(counting);
    count = room_in(ports[port].to_leave[queue], count);
    if (first_handed_over == 0) first_handed_over = rte_rdtsc();
    for (std::uint16_t i = 0; i < count; ++i) {
        if (++handed_over == kFramesBeforeStep && faults.steps_back) stepped_back = ticks_of(kStepBackS);
        std::uint64_t left = through_queue(port, queue, frames[i]);
        if (++ports[port].handed_over % 10 == 0 && (faults.keeps || faults.loses)) {
            left = kNever;
            ports[port].kept += faults.keeps ? 1 : 0;
        }
        *RTE_MBUF_DYNFIELD(frames[i], fields().left, std::uint64_t*) = left;
    }
    return count;
}

// Whether a NIC takes a frame in: it is for its address, or for a group.
bool is_for(std::uint16_t port, const rte_mbuf* frame) {
    const auto* bytes = rte_pktmbuf_mtod(frame, const std::uint8_t*);
    rte_ether_addr own{};
    rte_eth_macaddr_get(port, &own);
    return (bytes[0] & 1) != 0 || std::memcmp(bytes, own.addr_bytes, sizeof own.addr_bytes) == 0;
}

void stamp(FakePort& port, const Held& held) {
    held.frame->ol_flags &= ~fields().arrived_flag;
    if ((port.receive_offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP) == 0 || (faults.unstamped && ++port.received % 10 == 0))
        return;
    *RTE_MBUF_DYNFIELD(held.frame, fields().time, rte_mbuf_timestamp_t*) = nic_time(held.arrives);
    held.frame->ol_flags |= fields().arrived_flag;
}

std::uint16_t arrive(std::uint16_t port, std::uint16_t queue, rte_mbuf** frames, std::uint16_t count,
                     std::uint16_t most, void* /*unused*/) {
    auto& cable = ports[port].cable[queue];
    for (std::uint16_t i = 0; i < count; ++i) {
        const std::uint64_t left = *RTE_MBUF_DYNFIELD(frames[i], fields().left, std::uint64_t*);
        const bool gone = left == kNever || (faults.filters && !is_for(port, frames[i]));
        gone ? rte_pktmbuf_free(frames[i]) : cable.push_back({frames[i], left + ticks_of(kCableS)});
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
    // another driver may receive frames that were not sent here
    const bool is_ring = std::string(info.driver_name) == "net_ring";
    for (std::uint16_t queue = 0; is_ring && queue < info.nb_rx_queues; ++queue)
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
    if (!faults.pause && !faults.pauses && !faults.agrees) return -ENOTSUP;
    conf->mode = ports[port].flow_control;
    return 0;
}

int __wrap_rte_eth_dev_flow_ctrl_set(std::uint16_t port, rte_eth_fc_conf* conf) {
    if (!faults.pauses && !faults.agrees) return -ENOTSUP;
    if (!faults.agrees || ports[port].flow_control_set++ > 0) ports[port].flow_control = conf->mode;
    return 0;
}

// Waiting frames do not count as sent. Counters are read while other threads send: a frame is in a queue here before
// the driver counts it, and counters never decrease.
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
    stats->oerrors += faults.errors ? ports[port].kept : 0;
    if (faults.uncounted) stats->opackets = 0;
    if (faults.halved) stats->opackets /= 2;
    if (faults.wraps) stats->opackets = static_cast<std::uint32_t>(stats->opackets + 0xFFFF'FF00U);
    return status;
}

int __wrap_rte_eth_read_clock(std::uint16_t /*port*/, std::uint64_t* now) {
    if (faults.no_clock) return -ENOTSUP;
    *now = nic_time(rte_rdtsc());
    return 0;
}

int __wrap_rte_eth_set_queue_rate_limit(std::uint16_t port, std::uint16_t queue, std::uint32_t mbps) {
    ports[port].limit_mbps[queue] = mbps;
    return 0;
}

// Mangled names of members of dutperf::Port.
bool __real__ZNK7dutperf4Port7is_cardEv(const dutperf::Port* port);
bool __wrap__ZNK7dutperf4Port7is_cardEv(const dutperf::Port* port) {
    return faults.card || __real__ZNK7dutperf4Port7is_cardEv(port);
}

dutperf::LinkStatus __real__ZNK7dutperf4Port4linkEv(const dutperf::Port* port);
dutperf::LinkStatus __wrap__ZNK7dutperf4Port4linkEv(const dutperf::Port* port) {
    dutperf::LinkStatus link = __real__ZNK7dutperf4Port4linkEv(port);
    if (faults.card && faults.media_mbps != 0) link.mbps = static_cast<std::uint32_t>(faults.media_mbps);
    return link;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
