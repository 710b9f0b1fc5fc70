// SPDX-License-Identifier: Apache-2.0
// The reference DUT: two ports, a host on each (ARP, NDP), and between them the way of every frame, forwarder.hpp and
// pipeline.hpp. One thread does it all, turn by turn, so what is counted is consistent at any time.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "measure/histogram.hpp"
#include "platform/eal.hpp"
#include "port/neighbour_responder.hpp"
#include "refdut/forwarder.hpp"
#include "refdut/pipeline.hpp"
#include "server/requests.hpp"

namespace dutperf {

struct DutRequest {
    std::array<SideRequest, 2> sides;  // left, right; their gateways are the next hops of all that leaves there
    Routes routes;
    std::optional<Translator> translator;
    MemoryChoice memory = MemoryChoice::automatic;
    std::uint16_t max_frame_size = 1522;
    unsigned buffers = 16383;  // of each port: how many frames can be inside at once
};

struct DutCounts {
    std::uint64_t received = 0;  // frames that were to be forwarded; every one of them is forwarded, lost or still held
    std::uint64_t forwarded = 0;  // handed over to the other port; without copies
    std::uint64_t translated = 0;
    std::uint64_t held = 0;
    PipelineCounts pipeline;
};

// In ticks.
struct DutTimes {
    Histogram delay;     // from the arrival of a frame until it was handed over, as it came to be
    Histogram lateness;  // how much of that was not intended
};

// Where the DUT's own ports lost frames, by driver and kernel.
struct DutPortLosses {
    std::uint64_t before = 0;  // on their way in, never seen here: kernel's queues, driver
    std::uint64_t after = 0;   // counted as forwarded, but the link did not take them
};

class ReferenceDut {
public:
    // Starts DPDK and opens both ports. Throws Error.
    explicit ReferenceDut(const DutRequest& request);

    // New properties for an empty DUT: what is inside is let go, counts begin anew.
    void configure(const Properties& properties);
    void turn();
    void clear_counts();
    void stall(const Disturbance& disturbance) { pipeline_->stall_for(disturbance); }
    void reset(const Disturbance& disturbance) { pipeline_->reset_for(disturbance); }

    // Direction 0: from the left.
    [[nodiscard]] DutCounts counts(std::size_t direction) const;
    [[nodiscard]] const DutTimes& times(std::size_t direction) const { return times_[direction]; }
    [[nodiscard]] DutPortLosses port_losses(std::size_t side);
    [[nodiscard]] std::uint64_t checksums_computed() const { return forwarder_.checksums_computed(); }
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
    using Way = Pipeline<Buffers>;

    void open(const DutRequest& request);
    void receive(std::size_t side);
    void take(rte_mbuf* frame, std::size_t side, Ticks now);
    [[nodiscard]] bool is_for_us(const std::uint8_t* frame, std::size_t length, std::size_t side) const;
    void forward(rte_mbuf* frame, std::size_t side, Ticks now);
    [[nodiscard]] bool address(rte_mbuf* frame, std::size_t side, bool ipv6, Ticks now);
    void lose(rte_mbuf* frame, std::size_t direction, Loss loss);
    void hand_over(std::size_t side);
    void statistics(std::size_t side, std::size_t count);

    std::uint64_t clock_hz_ = 0;
    Forwarder forwarder_;
    Pool control_pool_, copy_pool_;
    std::array<std::unique_ptr<Port>, 2> ports_;
    std::array<std::unique_ptr<NeighbourResponder>, 2> responders_;
    std::array<PortCounters, 2> port_counters_;  // when the counts began
    Buffers buffers_;
    std::unique_ptr<Way> pipeline_;
    std::array<DutCounts, 2> counts_;
    std::array<DutTimes, 2> times_;
    std::array<Ticks, 2> ask_again_{};
    std::vector<Way::Departure> due_;
    std::array<std::vector<Way::Departure>, 2> leaving_;  // by the side that they leave by
};

}  // namespace dutperf
