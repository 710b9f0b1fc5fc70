// SPDX-License-Identifier: Apache-2.0
// A host of the tester on a port: between trials it answers ARP and NDP for its addresses and resolves the DUT's MAC
// addresses, so that no static entries are needed. (During a trial the receiving loop answers: neighbour_watch.hpp.)
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "port/burst.hpp"
#include "port/neighbour.hpp"
#include "port/neighbour_watch.hpp"
#include "port/port.hpp"

struct rte_mbuf;

namespace dutperf {

// Copies a frame into a buffer of the pool; nullptr when the pool is empty.
rte_mbuf* make_frame(rte_mempool* pool, const FrameBytes& bytes);

class NeighbourResponder {
public:
    // A gateway's MAC addresses by the VLAN in which it was asked (0: none), from its last answers.
    struct Found {
        std::map<std::uint16_t, Mac> macs;
        std::set<std::uint16_t> waiting;       // VLANs in which it has not answered yet
        std::uint16_t asked_in = 0;            // the last one
        std::map<Mac, std::uint64_t> answers;  // since it was asked last, by its MAC address

        bool ask_next();  // whether there is any left; they are asked one after the other
        void take(std::uint16_t vlan, const Mac& mac);
        void wait_for(const std::set<std::uint16_t>& vlans);
        // Those that answered with another MAC address than frames are sent to. `given`: the one that the request
        // gives.
        void add_others(const IpAddress& gateway, const std::optional<Mac>& given, NeighbourEvidence& to) const;
        // Of another VLAN if it was not asked in this one.
        [[nodiscard]] std::optional<Mac> in(std::uint16_t vlan) const;
    };

    NeighbourResponder(Port& port, const Host& host, const Gateway& gateway, rte_mempool* pool)
        : port_(port), host_(host), always_(host.others), gateway_(gateway), pool_(pool) {
        host_.dut = gateway;
        wait_for_all();
    }

    [[nodiscard]] const Host& host() const { return host_; }
    [[nodiscard]] const Gateway& gateway() const { return gateway_; }

    // Answers for these addresses too, beside those that the host has from the beginning, instead of those of the last
    // call.
    void answer_for(const AddressRanges& of_trial);

    // For which it answers in all trials, with its own.
    [[nodiscard]] AddressRanges addresses() const;

    // What the receivers of a trial answer, and what they look for.
    [[nodiscard]] WatchedHost watched() const;

    // Gateways that answered with two MAC addresses when they were asked last: two stations have the address; or with
    // another one than the request gives. And what
    // other stations have claimed since the last call, between trials, of the host's addresses.
    NeighbourEvidence take_conflicts();

    // By this evidence other stations have addresses of ranges: `resolve` asks for these each time from now on.
    void remember(const NeighbourEvidence& evidence);

    // Resolves the gateways' MAC addresses; from the requests the DUT learns ours. Asks before whether anybody else has
    // the host's own addresses, and afterwards whether anybody has addresses of ranges that are new. Returns whether
    // all gateways answered in time. Those of `all` answer meanwhile: a gateway may be another of the tester's ports.
    bool resolve(std::chrono::milliseconds timeout, const std::vector<NeighbourResponder*>& all);
    static constexpr std::size_t kMostAsked = 256;  // of new ranges
    [[nodiscard]] bool has_mac4() const { return found4_.waiting.empty(); }

    // Why the gateway that did not answer `resolve` may be silent: in which VLANs it was asked, whether it answers
    // without a tag, and in which others it asks itself. A clause for a message; empty: nothing is known.
    [[nodiscard]] std::string why_silent(std::chrono::milliseconds patience);

    // The destination MAC for frames of that IP version and VLAN (0: none); `direct` if the other port is the gateway.
    [[nodiscard]] Mac dut_mac(bool ipv6, const Mac& direct, std::uint16_t vlan = 0) const;

    // Sends a frame to all, from which a switch learns where the port is; its own addresses are asked for.
    void announce();

    // Tells switches that snoop which groups the DUT's Neighbour Solicitations have.
    void report_groups();

    // Answers the requests that have arrived and drops all other frames. Not while a trial runs.
    void serve();
    // Frames handed over to the port so far.
    [[nodiscard]] std::uint64_t sent() const { return sent_; }

    // Whichever of the port's hosts takes frames from the port, each gets them. `hosts`: all of the port.
    void share_port(const std::vector<NeighbourResponder*>& hosts) { at_port_ = hosts; }

    // For a host that receives requests before it sends any, such as a router: answers a received frame and learns the
    // gateways' MAC addresses from replies and from requests.
    void handle(const std::uint8_t* frame, std::size_t length);

    // Sends one request for each address that is not resolved yet.
    void ask();

private:
    void wait_for_all();
    bool resolve_gateways(std::chrono::milliseconds timeout, const std::vector<NeighbourResponder*>& all);
    void ask_for_ranges();
    [[nodiscard]] std::vector<IpAddress> to_ask_for();
    [[nodiscard]] std::size_t waiting() const;
    [[nodiscard]] std::uint16_t asked_in(const Found& found, const std::uint8_t* frame, std::size_t length) const;
    [[nodiscard]] bool answers_untagged(std::chrono::milliseconds patience);
    template <class Take>
    void receive(const Take& take);
    void answer(const std::uint8_t* frame, std::size_t length);
    [[nodiscard]] std::uint64_t sent_at_port() const;
    void send(const FrameBytes& frame);
    void send_in_vlans(const std::vector<FrameBytes>& frames);
    [[nodiscard]] bool has_gateway() const { return gateway_.ipv4 || gateway_.ipv6 || gateway_.mac; }
    [[nodiscard]] std::set<Mac> gateway_macs() const;
    void learn(const std::uint8_t* frame, std::size_t length);

    Port& port_;
    Host host_;
    AddressRanges always_;  // for which it answers in all trials
    Gateway gateway_;
    rte_mempool* pool_;
    Found found4_, found6_;
    std::vector<NeighbourResponder*> at_port_{this};
    NeighbourEvidence claims_;        // between trials
    AddressRanges asked_;             // whose addresses it has asked for
    std::vector<IpAddress> claimed_;  // of ranges, by other stations
    std::set<std::uint16_t> heard_;   // VLANs of the messages of other stations (0: none) since it resolved last
    std::uint64_t sent_ = 0;
};

}  // namespace dutperf
