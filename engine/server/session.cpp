// SPDX-License-Identifier: Apache-2.0
#include "server/session.hpp"

#include <rte_ring.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <thread>

#include "platform/ending.hpp"
#include "port/pci_device.hpp"
#include "port/rings.hpp"

namespace dutperf {

namespace {

std::size_t paths_from(const OpenRequest& request, std::size_t port) {
    return static_cast<std::size_t>(
        std::ranges::count_if(request.paths, [port](const Path& path) { return path.from == port; }));
}

// More paths from a port share one pool, which is quicker to make than two for each. In return their frames are written
// as they are sent: a buffer mostly has the frame of another path.
constexpr std::size_t kMostWithOwnPools = 16;

std::size_t pools_of(std::size_t paths) { return paths > kMostWithOwnPools ? 1 : 2 * paths; }

// For each queue: enough for the driver's transmit ring, the pools' caches and a burst in transit. The paths from a
// port share its ring, but one that sends alone may fill it: a ring of 1024, a cache of 384 and a burst of 512.
unsigned frames_per_pool(const OpenRequest& request, std::size_t paths) {
    constexpr std::size_t kFewest = 2048;
    const std::size_t of_port = request.max_frame_size > 2048 ? 4096 : 8192;
    const std::size_t pools = std::max<std::size_t>(1, pools_of(paths) / 2);
    return static_cast<unsigned>(std::max(std::bit_floor(of_port / pools), kFewest) - 1);
}

// Answers to ARP and NDP, and the additional frames of streams: about one in a hundred of those in a transmit ring.
constexpr unsigned kControlFrames = 2047;

// For a gateway that is silent in its VLANs to answer without a tag, for the message.
constexpr std::chrono::milliseconds kUntaggedPatience{500};

std::uint64_t megabytes_needed(const OpenRequest& request, std::uint64_t page_bytes) {
    constexpr std::uint64_t kOtherMb = 124;
    const Reach reach = reach_of(request.sides);
    const std::uint64_t sent = buffer_bytes(request.max_frame_size, reach, page_bytes);
    const std::uint64_t received = buffer_bytes(receive_buffer_size(request.max_frame_size), reach, page_bytes);
    std::uint64_t bytes = request.queues * request.sides.size() * receive_pool_frames(request.sides[0].port) * received;
    for (std::size_t port = 0; port < request.sides.size(); ++port) {
        const std::size_t paths = paths_from(request, port);
        const unsigned count = frames_per_pool(request, paths);
        bytes += pools_of(paths) * (request.queues * count * sent + pool_overhead_bytes(count * request.queues));
        if (request.sides[port].port.spec.does_dma()) bytes += count * sent;
    }
    return bytes / (1024 * 1024) + kOtherMb;
}

EalOptions eal_options(const OpenRequest& request) {
    EalOptions options{.memory = request.memory,
                       .megabytes = megabytes_needed(request, kHugePageBytes),
                       .small_page_megabytes = megabytes_needed(request, kSmallPageBytes),
                       .pci_devices = {},
                       .shares_memory = false,
                       .is_private = true};
    for (const SideRequest& side : request.sides) {
        options.shares_memory |= side.port.spec.shares_memory();
        options.is_private = options.is_private && side.port.spec.has_private_buffers();
        if (side.port.spec.kind == PortSpec::Kind::pci) options.pci_devices.push_back(side.port.spec.device_name());
    }
    return options;
}

std::optional<int> card_node(const SideRequest& side) {
    const PortSpec& spec = side.port.spec;
    return spec.kind == PortSpec::Kind::pci ? numa_node_of_pci_device(spec.argument) : std::nullopt;
}

// Moves the cores on the cards' NUMA nodes to the front.
std::vector<unsigned> near_cards_first(std::vector<unsigned> cores, const OpenRequest& request) {
    std::vector<std::optional<int>> nodes;
    for (const SideRequest& side : request.sides) nodes.push_back(card_node(side));
    std::stable_partition(cores.begin(), cores.end(), [&](unsigned core) {
        const auto node = numa_node_of_core(core);
        return node && std::ranges::find(nodes, node) != nodes.end();
    });
    return cores;
}

std::vector<LockedPort> locked_ports(const OpenRequest& request) {
    std::vector<LockedPort> ports;
    for (const SideRequest& side : request.sides) ports.push_back({.side = side.port.side, .spec = side.port.spec});
    return ports;
}

CoreWishes wishes(const OpenRequest& request) {
    const bool kernel_ports = std::ranges::any_of(
        request.sides, [](const SideRequest& side) { return side.port.spec.uses_kernel_interface(); });
    return {.cores = request.cores,
            .dut_cores = request.dut_cores,
            .queues = request.queues,
            .kernel_ports = kernel_ports,
            .ports = request.sides.size()};
}

}  // namespace

Session::Session(const OpenRequest& request)
    : request_(request),
      locks_(locked_ports(request)),
      cores_(place_roles(near_cards_first(allowed_cores(), request), wishes(request))),
      other_cores_(other_cores(allowed_cores(), cores_.distinct(), request.dut_cores)),
      memory_(start_eal(eal_options(request))) {
    claim_cores();
    run_on(0, other_cores_.between_trials);
    open_ports();
    await_links();
    for (const auto& port : ports_) port->require_flow_control();
    await_links();
    require_not_ending();
    make_buffers();
    place();
    follow_clocks();
    find_dut();
    warn();
}

void Session::open_ports() {
    std::vector<PortOptions> options;
    for (const SideRequest& side : request_.sides) {
        options.push_back(side.port);
        options.back().note = [this, spec = side.port.spec](const std::string& note) { locks_.note(spec, note); };
    }
    auto [ports, without_xdp] = dutperf::open_ports(options);
    ports_ = std::move(ports);
    if (!without_xdp.empty())
        warnings_.push_back("ports named by their interfaces alone are opened by AF_PACKET: " + without_xdp);
}

void Session::make_buffers() {
    const auto make = [&](const std::string& name, std::size_t port, unsigned count) {
        return make_pool({name, count, request_.max_frame_size, reach_of(request_.sides), ports_[port]->numa_node()});
    };
    path_pools_.resize(2 * request_.paths.size());
    for (std::size_t port = 0; port < ports_.size(); ++port) {
        const std::size_t paths = paths_from(request_, port), first = frame_pools_.size();
        const unsigned count = frames_per_pool(request_, paths);
        for (std::size_t pool = 0; pool < pools_of(paths); ++pool)
            frame_pools_.push_back(
                make("frames_" + std::to_string(frame_pools_.size()), port, count * request_.queues));
        for (std::size_t path = 0, pool = first; path < request_.paths.size(); ++path) {
            if (request_.paths[path].from != port) continue;
            for (int kind = 0; kind < 2; ++kind, ++pool)
                path_pools_[2 * path + kind] = frame_pools_[std::min(pool, frame_pools_.size() - 1)].get();
        }
        Pool& fillers = filler_pools_.emplace_back();
        if (ports_[port]->is_card()) fillers = make("fillers_" + std::to_string(port), port, count);
    }
    control_pool_ =
        make_pool({"control", kControlFrames, request_.max_frame_size, reach_of(request_.sides), SOCKET_ID_ANY});
    for (std::size_t side = 0; side < ports_.size(); ++side) {
        control_rings_.emplace_back(rte_ring_create(("control_" + ports_[side]->side()).c_str(), 256, SOCKET_ID_ANY,
                                                    0));  // for all loops of the port
        if (!control_rings_[side]) throw Error("no_memory", "no memory for the ring of control frames");
        hosts_.push_back(std::make_unique<PortHosts>(*ports_[side], hosts_of(side), control_pool_.get()));
    }
}

// With their MAC addresses, and those of all others.
std::vector<HostRequest> Session::hosts_of(std::size_t side) const {
    std::vector<HostRequest> made;
    std::vector<Mac> macs;
    for (std::size_t port = 0; port < ports_.size(); ++port) {
        std::vector<HostRequest> hosts{request_.sides[port].host};
        std::ranges::copy(request_.sides[port].further_hosts, std::back_inserter(hosts));
        for (HostRequest& one : hosts) {
            if (one.host.mac == Mac{}) one.host.mac = ports_[port]->mac();
            macs.push_back(one.host.mac);
        }
        if (port == side) made = std::move(hosts);
    }
    for (HostRequest& one : made) {
        one.host.other_hosts = macs;
        std::erase(one.host.other_hosts, one.host.mac);
    }
    return made;
}

void Session::place() {
    skew_ticks_ = counter_skew(cores_.distinct());
    clock_hz_ = calibration_.hertz();
}

void Session::follow_clocks() {
    clocks_.resize(ports_.size());
    if (!need_clock(request_.offloads)) return;
    for (std::size_t side = 0; side < ports_.size(); ++side) {
        clocks_[side] = std::make_unique<FollowedClock>(
            dpdk_clock("the clock of " + the_port(ports_[side]->side()), clock_of(ports_[side]->id())), clock_hz_);
    }
}

void Session::find_dut() {
    const std::vector<NeighbourResponder*> all = first_of_each(bed().hosts);
    for (const auto& hosts : hosts_) hosts->report_groups();
    for (std::size_t side = 0; side < ports_.size(); ++side) {
        for (std::size_t host = 0; host < hosts_[side]->size(); ++host) find_gateways(side, host, all);
    }
}

void Session::find_gateways(std::size_t side, std::size_t number, const std::vector<NeighbourResponder*>& all) {
    NeighbourResponder& host = (*hosts_[side])[number];
    if (host.resolve(request_.resolve_timeout, all)) return;
    const bool arp = !host.has_mac4();
    const std::string what = arp ? "ARP for gateway4" : "Neighbour Discovery for gateway6";
    std::string message = "the DUT did not answer " + what + " on " + the_port(ports_[side]->side()) + " within " +
                          std::to_string(request_.resolve_timeout.count()) + " ms" +
                          host.why_silent(std::min(kUntaggedPatience, request_.resolve_timeout));
    for (const NeighbourEvidence::Conflict& one : host.take_conflicts().conflicts) {
        if (one.is_gateway) continue;  // two stations answered for the other gateway
        message.append("; another station, MAC address ")
            .append(to_string(one.mac))
            .append(", claims ")
            .append(to_string(one.address))
            .append(", for which the port answers");
    }
    const std::string place = number == 0 ? "" : ".hosts." + std::to_string(number - 1);
    throw Error("no_answer", message, ports_[side]->side() + place + (arp ? ".gateway4" : ".gateway6"));
}

void Session::warn() {
    warnings_.insert(warnings_.end(), locks_.taken_back().begin(), locks_.taken_back().end());
    if (!locks_.warning().empty()) warnings_.push_back(locks_.warning());
    if (!memory_.huge_pages) {
        warnings_.emplace_back(
            "no huge pages: buffers lie in 4 kB pages, which costs translation misses at high rates and rules out "
            "cards without an IOMMU");
    }
    for (std::size_t side = 0; side < ports_.size(); ++side) warn_of_other_node(side);
    for (const auto& port : ports_) {
        warnings_.insert(warnings_.end(), port->warnings().begin(), port->warnings().end());
        if (port->queues() > 1 && !port->spreads_by_hash()) {
            warnings_.push_back("the driver of " + the_port(port->side()) +
                                " offers no hash over addresses and ports: it spreads frames over its " +
                                std::to_string(port->queues()) + " receive queues in its own way");
        }
    }
    const std::size_t roles = 2 * ports_.size() * request_.queues, cores = cores_.distinct().size();
    if (cores < roles)
        warnings_.push_back("the " + std::to_string(roles) + " roles share " + std::to_string(cores) + " core(s)");
}

void Session::warn_of_other_node(std::size_t side) {
    const auto node = card_node(request_.sides[side]);
    if (!node) return;
    const auto elsewhere = [&](unsigned core) { return numa_node_of_core(core).value_or(*node) != *node; };
    for (const unsigned core : cores_.distinct()) {
        if (!elsewhere(core)) continue;
        return warnings_.push_back("core " + std::to_string(core) + " is not on NUMA node " + std::to_string(*node) +
                                   ", where the card of " + the_port(ports_[side]->side()) +
                                   " is, which costs time for each frame");
    }
}

void Session::watch_links() {
    for (const auto& port : ports_) port->watch_link();
}

bool Session::links_are_up() const {
    return std::ranges::all_of(ports_, [](const auto& port) { return !port->owns_link() || port->link().up; });
}

void Session::require_ports() {
    for (const auto& port : ports_) {
        const std::string change = port->counters().change;
        if (change.empty()) continue;
        throw Error("port_away", change + "; start again when it is as before", port->side() + ".port");
    }
}

// A copper link takes seconds to negotiate, and a card starts that when it is opened. The other end may be a DUT that
// is still booting.
void Session::await_links() {
    constexpr std::chrono::milliseconds kAgain{10};
    const auto deadline = std::chrono::steady_clock::now() + request_.link_timeout;
    for (const auto& port : ports_) {
        while (!port->link().up) {
            require_not_ending();
            if (std::chrono::steady_clock::now() >= deadline) {
                throw Error("link_down",
                            "the link of " + the_port(port->side()) + " is down after " +
                                std::to_string(request_.link_timeout.count()) + " ms: " + port->why_link_is_down() +
                                " (link_timeout_s says how long to wait)",
                            port->side() + ".port");
            }
            std::this_thread::sleep_for(kAgain);
        }
    }
}

void Session::serve() {
    for (const auto& hosts : hosts_) hosts->serve();
}

TestBed Session::bed() const {
    TestBed bed{};
    bed.paths = request_.paths;
    for (std::size_t side = 0; side < ports_.size(); ++side) {
        bed.ports.push_back(ports_[side].get());
        bed.hosts.push_back(hosts_[side].get());
        bed.control_rings.push_back(control_rings_[side].get());
        bed.clocks.push_back(clocks_[side].get());
        bed.filler_pools.push_back(filler_pools_[side].get());
    }
    bed.frame_pools = path_pools_;
    bed.control_pool = control_pool_.get();
    bed.queues = request_.queues;
    bed.offloads = request_.offloads;
    bed.cores = cores_;
    bed.other_cores = other_cores_;
    bed.clock_hz = clock_hz_;
    bed.skew_ticks = skew_ticks_.value_or(0);
    bed.run = run_;
    bed.state = &state_;
    bed.dns_connections = &dns_connections_;
    return bed;
}

}  // namespace dutperf
