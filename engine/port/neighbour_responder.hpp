// SPDX-License-Identifier: Apache-2.0
// The host that the tester plays on one port: between trials it answers ARP and NDP for its own addresses and learns
// the DUT's MAC addresses, so that nobody types static entries. (During a trial the receiving loop answers, from the
// same code in neighbour.hpp.)
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "port/burst.hpp"
#include "port/neighbour.hpp"
#include "port/port.hpp"

struct rte_mbuf;

namespace dutperf {

// The DUT's end of the link. Without any of these the port is cabled to the tester's other port.
struct Gateway {
    std::optional<Ipv4> ipv4;
    std::optional<Ipv6> ipv6;
    std::optional<Mac> mac;
};

// One frame into a buffer of the pool; nullptr when the pool is empty.
rte_mbuf* make_frame(rte_mempool* pool, const FrameBytes& bytes);

class NeighbourResponder {
public:
    NeighbourResponder(Port& port, const Host& host, const Gateway& gateway, rte_mempool* pool)
        : port_(port), host_(host), gateway_(gateway), pool_(pool) {}

    [[nodiscard]] const Host& host() const { return host_; }
    [[nodiscard]] const Gateway& gateway() const { return gateway_; }

    // Asks for the gateways' MAC addresses, which teaches the DUT ours as well. True when all answered in time.
    bool resolve(std::chrono::milliseconds timeout);
    [[nodiscard]] bool has_mac4() const { return !gateway_.ipv4 || mac4_; }

    // Where frames of that IP version go; `direct` where the gateway is the other port.
    [[nodiscard]] Mac dut_mac(bool ipv6, const Mac& direct) const;

    // Answers what has arrived and forgets the rest. Not while a trial runs.
    void serve();
    // Frames that it handed over to the port, ever.
    [[nodiscard]] std::uint64_t sent() const { return sent_; }

    // For a host that is asked before it asks, as a router is: `frame` has arrived; it is answered, and the gateways'
    // MAC addresses are learned from answers and from questions alike.
    void hear(const std::uint8_t* frame, std::size_t length);

    // Asks once for what has not been answered yet.
    void ask();

private:
    void serve(PortQueue queue);
    void send(const FrameBytes& frame);
    void learn(const std::uint8_t* frame, std::size_t length);

    Port& port_;
    Host host_;
    Gateway gateway_;
    rte_mempool* pool_;
    std::optional<Mac> mac4_, mac6_;  // what the DUT answered last
    bool heard4_ = false, heard6_ = false;
    std::uint64_t sent_ = 0;
};

}  // namespace dutperf
