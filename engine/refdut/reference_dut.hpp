// SPDX-License-Identifier: Apache-2.0
// The reference DUT: two ports with a host each (ARP, NDP), and between them the forwarder (forwarder.hpp) and the
// pipeline (pipeline.hpp). One thread runs everything in turns, so the counts are consistent at any time.
//
// A DNS64 has a resolver (resolver.hpp) instead of routes. Clients' queries pass the pipeline from the left, as far as
// the cores, and answers pass it from the right, without the cores. Messages to and from the server do not pass it.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "measure/histogram.hpp"
#include "platform/eal.hpp"
#include "port/neighbour_responder.hpp"
#include "refdut/datagram.hpp"
#include "refdut/forwarder.hpp"
#include "refdut/pipeline.hpp"
#include "refdut/resolver.hpp"
#include "server/requests.hpp"

namespace dutperf {

struct Dns64Request {
    IpAddress server;
    Prefix<Ipv6> prefix;
};

struct DutRequest {
    std::array<SideRequest, 2> sides;  // left, right; their gateways are the next hops on that side
    Routes routes;
    std::optional<Translator> translator;
    std::optional<Tunnel> tunnel;
    std::optional<NatRequest> nat;
    std::optional<Dns64Request> dns64;
    MemoryChoice memory = MemoryChoice::automatic;
    std::uint16_t max_frame_size = 1522;
    unsigned buffers = 16383;  // of each port: limits the frames inside at once
    bool shares_core = false;  // with other processes, for which it sleeps while it has nothing to do
};

struct DutCounts {
    std::uint64_t received = 0;   // frames to forward; each is forwarded, lost or still held
    std::uint64_t forwarded = 0;  // handed over to the other port, without duplicates
    std::uint64_t translated = 0;
    std::uint64_t tunnelled = 0;  // encapsulated or decapsulated
    std::uint64_t held = 0;
    PipelineCounts pipeline;
};

// In ticks.
struct DutTimes {
    Histogram delay;     // actual time from the arrival of a frame until it was handed over
    Histogram lateness;  // the part of the delay that was not intended
};

// Frames lost at the DUT's own ports, counted by driver and kernel.
struct DutPortLosses {
    std::uint64_t before = 0;  // on the way in, before the DUT: kernel queues, driver
    std::uint64_t after = 0;   // on the way out: counted as forwarded, but the link did not accept them
};

// Of a DNS64.
struct Dns64Counts {
    ResolverCounts resolver;
    ByWrong wrong{};
    std::uint64_t cached = 0, evicted = 0;  // names
    std::uint64_t pending = 0;
    std::uint64_t unsent = 0;  // messages to the server without a MAC address or a buffer
};

class ReferenceDut : private ResolverOutput {
public:
    // Starts DPDK and opens both ports. Throws Error.
    explicit ReferenceDut(const DutRequest& request);
    ~ReferenceDut() override;
    ReferenceDut(const ReferenceDut&) = delete;
    ReferenceDut& operator=(const ReferenceDut&) = delete;

    // Sets new properties: discards all frames inside, deletes all connections and clears the counts.
    void configure(const Properties& properties);
    // Returns whether there was something to do.
    bool turn();
    // Whether it may sleep while it has nothing to do: frames then wait a few microseconds longer, which only delays
    // would show.
    [[nodiscard]] bool may_nap() const { return may_nap_; }
    void clear_counts();
    void stall(const Disturbance& disturbance) { pipeline_->stall_for(disturbance); }
    // Deletes all connections too.
    void reset(const Disturbance& disturbance) { pipeline_->reset_for(disturbance); }

    [[nodiscard]] bool has_nat() const { return nat_.has_value(); }
    // Deletes the connections, and forwards frames meanwhile. Requires a NAT.
    void delete_connections();
    // Of a NAT; connections that have expired do not count.
    [[nodiscard]] ConnectionCounts connections();

    [[nodiscard]] bool has_dns64() const { return dns64_.has_value(); }
    [[nodiscard]] Dns64Counts dns64_counts() const;

    // Direction 0: from the left.
    [[nodiscard]] DutCounts counts(std::size_t direction) const;
    [[nodiscard]] const DutTimes& times(std::size_t direction) const { return times_[direction]; }
    [[nodiscard]] DutPortLosses port_losses(std::size_t side);
    [[nodiscard]] std::uint64_t checksums_computed() const {
        return forwarder_.checksums_computed() - checksums_before_;
    }
    [[nodiscard]] const Port& port(std::size_t side) const { return *ports_[side]; }
    [[nodiscard]] std::uint64_t clock_hz() const { return clock_hz_; }

private:
    struct Buffers {
        using Frame = rte_mbuf*;
        rte_mempool* pool = nullptr;
        void release(Frame frame) const;
        [[nodiscard]] std::optional<Frame> copy(Frame frame) const;
        void corrupt(Frame frame, std::uint64_t bits) const;
    };
    using FramePipeline = Pipeline<Buffers>;

    void open(const DutRequest& request);
    bool receive(std::size_t side);
    void take(rte_mbuf* frame, std::size_t side, Ticks now);
    [[nodiscard]] bool is_local(const std::uint8_t* frame, std::size_t length, std::size_t side) const;
    void forward(rte_mbuf* frame, std::size_t side, Ticks now);
    void tend_connections(Ticks now);
    [[nodiscard]] std::optional<Mac> resolve(std::size_t side, bool ipv6, Ticks now);
    void lose(rte_mbuf* frame, std::size_t direction, Loss loss);
    void hand_over(std::size_t side);
    void record_departures(std::size_t side, std::size_t count);
    void record_departure(std::size_t direction, const FramePipeline::Departure& departure, Ticks now);

    // as a DNS64: reference_dns64.cpp
    void configure_dns64(const Properties& properties);
    bool take_message(rte_mbuf* frame, std::size_t side, Ticks now);
    void take_query(rte_mbuf* frame, const Packet& packet, Ticks now);
    void take_response(rte_mbuf* frame, const Packet& packet, Ticks now);
    bool resolve_served(Ticks now);
    void answer(Ticks now, const DnsClient& client, dns::Bytes message) override;
    void ask(Ticks now, std::uint16_t port, dns::Bytes message) override;
    [[nodiscard]] rte_mbuf* make_datagram(std::size_t side, const Mac& next_hop, const Endpoints& between,
                                          dns::Bytes payload);
    void hand_over_asking();
    void discard_asking();

    std::uint64_t clock_hz_ = 0;
    Forwarder forwarder_;
    std::optional<NatRequest> nat_;
    std::optional<Dns64Request> dns64_;
    std::uint64_t checksums_before_ = 0;  // of the forwarder when the counters were cleared
    std::uint64_t resets_ = 0;            // after which the connections, or the resolver's memory, were deleted
    Pool control_pool_, copy_pool_, message_pool_;
    std::vector<std::unique_ptr<Port>> ports_;
    std::array<std::unique_ptr<NeighbourResponder>, 2> responders_;
    std::array<PortCounters, 2> port_counters_;  // when the counts were cleared
    Buffers buffers_;
    std::unique_ptr<FramePipeline> pipeline_;
    bool shares_core_ = false, may_nap_ = false;
    std::array<DutCounts, 2> counts_;
    std::array<DutTimes, 2> times_;
    std::array<Ticks, 2> next_ask_{};
    std::vector<FramePipeline::Departure> due_;
    std::array<std::vector<FramePipeline::Departure>, 2> leaving_;  // by outgoing side
    std::optional<Resolver> resolver_;
    std::vector<FramePipeline::Departure> served_;
    std::deque<rte_mbuf*> asking_;  // messages to the server that wait for the port
    std::uint64_t unsent_ = 0;
};

}  // namespace dutperf
