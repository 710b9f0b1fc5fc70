// SPDX-License-Identifier: Apache-2.0
// ARP and NDP during a trial: answers what is asked for, and keeps what may explain a loss. The DUT drops frames while
// it asks for an address that nobody answers for, and gets none that are sent to a MAC address that it has no more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "port/neighbour.hpp"

namespace dutperf {

struct NeighbourEvidence {
    // An address for which nobody answered.
    struct Unanswered {
        IpAddress target, asker;  // the last one that asked
        std::uint64_t requests = 0;
    };
    // Messages in which a gateway has another MAC address than the one that frames are sent to.
    struct Moved {
        IpAddress gateway;
        Mac mac{};
        std::uint64_t messages = 0;
        std::optional<Mac> given{};  // that the request gives for the gateways, whatever they answer
    };
    // Messages in which another station says that it has an address of the tester's port, or of a gateway that answered
    // with two MAC addresses when it was asked.
    struct Conflict {
        IpAddress address;
        bool is_gateway = false;
        bool of_range = false;  // the port answers for the address, but does not have it as its own
        bool by_dut = false;    // the other station is a gateway of the port
        Mac holder{};           // the port's, or the one that frames are sent to
        Mac mac{};              // of the other station
        std::uint64_t messages = 0;
    };
    static constexpr std::size_t kMostNamed = 8;

    std::uint64_t requests = 0;  // for addresses for which nobody answered, also for those that are not named
    std::vector<Unanswered> unanswered;
    std::vector<Moved> moved;
    std::vector<Conflict> conflicts;

    [[nodiscard]] bool empty() const { return requests == 0 && moved.empty() && conflicts.empty(); }
    void add(const Unanswered& one);
    void add(const Moved& one);
    void add(const Conflict& one);
    void add(const NeighbourEvidence& other);
};

// What a message claims of the host's addresses, if no port of the tester sent it.
std::optional<NeighbourEvidence::Conflict> claim_in(const NeighbourMessage& message, const Host& host);

// Adds the claim, unless a gateway has an address of a range: that is no conflict, its messages change no entry of its
// own. `gateways`: their MAC addresses.
void add_claim(NeighbourEvidence::Conflict claim, const Host& host, const std::set<Mac>& gateways,
               NeighbourEvidence& to);

struct WatchedHost {
    Host host{};
    std::set<Mac> macs{};  // of its gateways, by which frames are sent to them; empty: they have not answered, or were
                           // not asked
};

class NeighbourWatch {
public:
    NeighbourWatch() : NeighbourWatch(Host{}, {}) {}
    NeighbourWatch(Host host, std::set<Mac> macs)
        : NeighbourWatch({{.host = std::move(host), .macs = std::move(macs)}}) {}
    // `hosts`: all of a port.
    explicit NeighbourWatch(std::vector<WatchedHost> hosts) : hosts_(std::move(hosts)) {}

    // The replies to a received frame, which is no test frame.
    std::vector<FrameBytes> take(const std::uint8_t* frame, std::size_t length);

    [[nodiscard]] const NeighbourEvidence& evidence() const { return evidence_; }

private:
    // The same of what is in a tunnel to the port. The DUT's addresses there are not those of its gateways.
    std::vector<FrameBytes> take_in_tunnel(const std::uint8_t* frame, std::size_t length, std::size_t inner_at);
    [[nodiscard]] bool expects_no_answer(const NeighbourMessage& message) const;
    // Whether a request is for the host or its gateway.
    bool note(const NeighbourMessage& message, const WatchedHost& of);

    std::vector<WatchedHost> hosts_;
    NeighbourEvidence evidence_;
};

}  // namespace dutperf
