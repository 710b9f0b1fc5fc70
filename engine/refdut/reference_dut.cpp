// SPDX-License-Identifier: Apache-2.0
#include "refdut/reference_dut.hpp"

#include <rte_mbuf.h>

#include <algorithm>
#include <span>
#include <utility>

#include "platform/clock.hpp"
#include "port/burst.hpp"
#include "port/kernel_port.hpp"
#include "port/rings.hpp"

namespace dutperf {

namespace {

constexpr std::uint64_t kSlowFps = 200'000;  // of a DUT that may nap: few frames come meanwhile
constexpr std::uint16_t kBurst = 32;
constexpr unsigned kCopies = 4095;
constexpr std::uint64_t kAskIntervalNs = 200'000'000;
constexpr std::uint32_t kExpiriesPerTurn = 64;
// at the end of the packet, where only the transport checksum detects an error
constexpr std::size_t kCorruptedBytes = 8;

// Those that a DNS64 sends: answers that are delayed, and queries that wait for the port.
unsigned messages_of(const DutRequest& request) { return 2 * request.buffers + 1; }

EalOptions eal_options(const DutRequest& request) {
    const auto megabytes = [&request](std::uint64_t page_bytes) {
        const std::uint64_t buffer =
            buffer_bytes(receive_buffer_size(request.max_frame_size), reach_of(request.sides), page_bytes);
        const std::uint64_t messages = request.dns64 ? messages_of(request) : 0;
        return (2ULL * request.buffers + kCopies + messages) * buffer / (1024 * 1024) + 128;
    };
    EalOptions options{.memory = request.memory,
                       .megabytes = megabytes(kHugePageBytes),
                       .small_page_megabytes = megabytes(kSmallPageBytes),
                       .pci_devices = {},
                       .is_private = true};
    for (const SideRequest& side : request.sides) {
        options.is_private = options.is_private && side.port.spec.has_private_buffers();
        if (side.port.spec.kind == PortSpec::Kind::pci) options.pci_devices.push_back(side.port.spec.device_name());
    }
    return options;
}

}  // namespace

void ReferenceDut::Buffers::release(Frame frame) const { rte_pktmbuf_free(frame); }

std::optional<rte_mbuf*> ReferenceDut::Buffers::copy(Frame frame) const {
    rte_mbuf* made = rte_pktmbuf_copy(frame, pool, 0, UINT32_MAX);
    return made != nullptr ? std::optional(made) : std::nullopt;
}

void ReferenceDut::Buffers::corrupt(Frame frame, std::uint64_t bits) const {
    const std::size_t bit = bits % (8 * kCorruptedBytes);
    std::uint8_t* end = rte_pktmbuf_mtod(frame, std::uint8_t*) + rte_pktmbuf_data_len(frame);
    std::uint8_t* at = end - kCorruptedBytes + bit / 8;
    *at = static_cast<std::uint8_t>(*at ^ (1U << (bit % 8)));
}

ReferenceDut::~ReferenceDut() { discard_asking(); }

ReferenceDut::ReferenceDut(const DutRequest& request)
    : forwarder_(request.routes, request.translator, kIpv4Layout.mtu_of(request.max_frame_size), request.tunnel),
      nat_(request.nat),
      dns64_(request.dns64),
      shares_core_(request.shares_core) {
    const ClockCalibration calibration;
    open(request);
    clock_hz_ = calibration.hertz();
    configure({});
}

void ReferenceDut::open(const DutRequest& request) {
    start_eal(eal_options(request));
    control_pool_ = make_pool({"control", 1023, kMinEthernetLength, reach_of(request.sides), SOCKET_ID_ANY});
    copy_pool_ = make_pool({"copies", kCopies, request.max_frame_size, reach_of(request.sides), SOCKET_ID_ANY});
    buffers_.pool = copy_pool_.get();
    if (dns64_)
        message_pool_ = make_pool(
            {"messages", messages_of(request), request.max_frame_size, reach_of(request.sides), SOCKET_ID_ANY});
    std::vector<PortOptions> options{request.sides[0].port, request.sides[1].port};
    for (PortOptions& one : options) one.buffers = request.buffers;
    ports_ = open_ports(options).ports;
    for (std::size_t side = 0; side < 2; ++side) {
        auto [host, gateway] = request.sides[side].host;
        host.mac = ports_[side]->mac();
        responders_[side] = std::make_unique<NeighbourResponder>(*ports_[side], host, gateway, control_pool_.get());
    }
}

void ReferenceDut::configure(const Properties& properties) {
    if (dns64_) {
        configure_dns64(properties);
    } else {
        pipeline_ = std::make_unique<FramePipeline>(buffers_, properties, clock_hz_);
    }
    resets_ = 0;
    if (nat_) forwarder_.set_nat(*nat_, properties.nat.value_or(ConnectionProperties{}), clock_hz_);
    for (auto& leaving : leaving_) {
        for (const auto& one : leaving) buffers_.release(one.frame);
        leaving.clear();
    }
    const bool is_slow = properties.capacity_fps != 0 && properties.capacity_fps * properties.cores <= kSlowFps;
    may_nap_ = shares_core_ || (is_slow && !properties.has_delay());
    clear_counts();
}

void ReferenceDut::clear_counts() {
    pipeline_->clear_counts();
    if (nat_) forwarder_.nat()->table().clear_counts();
    if (resolver_) resolver_->clear_counts();
    unsent_ = 0;
    checksums_before_ = forwarder_.checksums_computed();
    counts_ = {};
    times_ = {};
    for (std::size_t side = 0; side < 2; ++side) port_counters_[side] = ports_[side]->counters();
}

DutCounts ReferenceDut::counts(std::size_t direction) const {
    DutCounts counts = counts_[direction];
    const PipelineCounts& pipeline = pipeline_->counts(direction);
    for (std::size_t i = 0; i < kLosses; ++i) counts.pipeline.lost[i] += pipeline.lost[i];
    counts.pipeline.duplicated = pipeline.duplicated;
    counts.pipeline.reordered = pipeline.reordered;
    counts.pipeline.delayed = pipeline.delayed;
    counts.pipeline.corrupted = pipeline.corrupted;
    const auto waiting = std::ranges::count_if(leaving_[1 - direction], [](const auto& one) { return !one.copy; });
    counts.held = pipeline_->held(direction) + static_cast<std::uint64_t>(waiting);
    return counts;
}

void ReferenceDut::delete_connections() {
    ConnectionTable& table = forwarder_.nat()->table();
    table.begin_deletion(now_ticks());
    while (table.continue_deletion(now_ticks())) turn();
}

ConnectionCounts ReferenceDut::connections() {
    ConnectionTable& table = forwarder_.nat()->table();
    table.expire(now_ticks(), UINT32_MAX);
    return table.counts();
}

DutPortLosses ReferenceDut::port_losses(std::size_t side) {
    const PortCounters now = ports_[side]->counters();
    const PortCounters& then = port_counters_[side];
    const auto before = [](const PortCounters& one) {
        return one.nic_missed + one.no_buffer + one.receive_errors + one.kernel_socket + one.kernel_backlog;
    };
    const auto after = [](const PortCounters& one) { return one.link_input_drops + one.interface_transmit_drops; };
    return {.before = before(now) - before(then), .after = after(now) - after(then)};
}

bool ReferenceDut::turn() {
    bool busy = false;
    for (std::size_t side = 0; side < 2; ++side) busy |= receive(side);
    due_.clear();
    const Ticks now = now_ticks();
    pipeline_->advance(now, due_);
    if (nat_) tend_connections(now);
    const bool resolved = dns64_ && resolve_served(now);
    for (const auto& departure : due_) leaving_[1 - departure.direction].push_back(departure);
    for (std::size_t side = 0; side < 2; ++side) hand_over(side);
    return busy || resolved || !due_.empty();
}

// A few that have expired in each turn, so that no frame waits for many.
void ReferenceDut::tend_connections(Ticks now) {
    ConnectionTable& table = forwarder_.nat()->table();
    if (std::exchange(resets_, pipeline_->resets()) != resets_) table.clear();
    table.expire(now, kExpiriesPerTurn);
}

bool ReferenceDut::receive(std::size_t side) {
    std::array<rte_mbuf*, kBurst> frames{};
    const std::uint16_t count = receive_burst({ports_[side]->id()}, frames.data(), kBurst);
    const Ticks now = now_ticks();
    for (std::uint16_t i = 0; i < count; ++i) take(frames[i], side, now);
    return count != 0;
}

void ReferenceDut::take(rte_mbuf* frame, std::size_t side, Ticks now) {
    const auto* bytes = rte_pktmbuf_mtod(frame, const std::uint8_t*);
    const std::size_t length = rte_pktmbuf_data_len(frame);
    if (dns64_ && take_message(frame, side, now)) return;
    if (is_local(bytes, length, side)) {
        if (!pipeline_->is_resetting(now)) responders_[side]->handle(bytes, length);
        return rte_pktmbuf_free(frame);
    }
    if (!std::ranges::equal(ports_[side]->mac(), std::span(bytes, sizeof(Mac)))) return rte_pktmbuf_free(frame);
    forward(frame, side, now);
}

// Whether the DUT handles the frame itself: ARP, multicast, packets to its own addresses, and anything that is not IP.
bool ReferenceDut::is_local(const std::uint8_t* frame, std::size_t length, std::size_t side) const {
    const std::uint16_t type = load_be16(frame + ethernet::kType);
    const std::uint8_t* ip = frame + kEthernetPayloadAt;
    const Host& host = responders_[side]->host();
    if (type == ethernet::kTypeIpv4 && length >= kIpv4Layout.transport_at())
        return host.ipv4 == address_at<Ipv4>(ip + ipv4::kDestination);
    if (type != ethernet::kTypeIpv6 || length < kIpv6Layout.transport_at())
        return type != ethernet::kTypeIpv4 && type != ethernet::kTypeIpv6;
    return ip[ipv6::kDestination] == 0xFF || host.ipv6 == address_at<Ipv6>(ip + ipv6::kDestination);
}

void ReferenceDut::forward(rte_mbuf* frame, std::size_t side, Ticks now) {
    auto* bytes = rte_pktmbuf_mtod(frame, std::uint8_t*);
    Packet packet{bytes, rte_pktmbuf_data_len(frame)};
    ++counts_[side].received;
    const auto checked = forwarder_.route(packet, side);
    if (const Loss* loss = std::get_if<Loss>(&checked)) return lose(frame, side, *loss);
    const Routed& routed = std::get<Routed>(checked);
    if (const auto loss = pipeline_->loss_on_arrival(now, routed.flow)) return lose(frame, side, *loss);
    const auto next_hop = resolve(1 - side, routed.ipv6, now);
    if (!next_hop) return lose(frame, side, Loss::unresolved);
    const auto way = forwarder_.change(packet, side, routed, now);
    if (const Loss* loss = std::get_if<Loss>(&way)) return lose(frame, side, *loss);
    // translation and encapsulation may have moved the start of the packet, and its padding was removed
    frame->data_off = static_cast<std::uint16_t>(frame->data_off + (packet.at - bytes));
    frame->data_len = static_cast<std::uint16_t>(packet.length);
    frame->pkt_len = static_cast<std::uint32_t>(packet.length);
    std::ranges::copy(*next_hop, packet.at + ethernet::kDestination);
    std::ranges::copy(ports_[1 - side]->mac(), packet.at + ethernet::kSource);
    if (std::get<Forwarded>(way).translated) ++counts_[side].translated;
    if (std::get<Forwarded>(way).tunnelled) ++counts_[side].tunnelled;
    pipeline_->accept(now, frame, side, routed.flow);
}

// The next hop's MAC address. If it is unknown, sends a request.
std::optional<Mac> ReferenceDut::resolve(std::size_t side, bool ipv6, Ticks now) {
    NeighbourResponder& responder = *responders_[side];
    const Mac found = responder.dut_mac(ipv6, Mac{});
    if (found != Mac{}) return found;
    if (now >= next_ask_[side]) {
        responder.ask();
        next_ask_[side] = now + due_after(kAskIntervalNs, clock_hz_, 1'000'000'000);
    }
    return std::nullopt;
}

void ReferenceDut::lose(rte_mbuf* frame, std::size_t direction, Loss loss) {
    ++counts_[direction].pipeline.lost[static_cast<std::size_t>(loss)];
    rte_pktmbuf_free(frame);
}

// Frames that the port does not accept wait for the next turn.
void ReferenceDut::hand_over(std::size_t side) {
    auto& leaving = leaving_[side];
    while (!leaving.empty()) {
        std::array<rte_mbuf*, kBurst> frames{};
        const auto count = static_cast<std::uint16_t>(std::min<std::size_t>(kBurst, leaving.size()));
        for (std::uint16_t i = 0; i < count; ++i) {
            frames[i] = leaving[i].frame;
            const std::uint16_t length = rte_pktmbuf_data_len(frames[i]);
            if (length >= kMinEthernetLength) continue;
            const auto missing = static_cast<std::uint16_t>(kMinEthernetLength - length);
            if (char* padding = rte_pktmbuf_append(frames[i], missing)) std::fill_n(padding, missing, '\0');
        }
        const std::uint16_t taken = transmit_burst({ports_[side]->id()}, frames.data(), count);
        record_departures(side, taken);
        if (taken < count) return;
    }
}

// Records that the first `count` frames that waited on that side have left.
void ReferenceDut::record_departures(std::size_t side, std::size_t count) {
    auto& leaving = leaving_[side];
    const Ticks now = now_ticks();
    for (std::size_t i = 0; i < count; ++i) record_departure(1 - side, leaving[i], now);
    leaving.erase(leaving.begin(), leaving.begin() + static_cast<std::ptrdiff_t>(count));
}

void ReferenceDut::record_departure(std::size_t direction, const FramePipeline::Departure& departure, Ticks now) {
    if (departure.copy) return;
    ++counts_[direction].forwarded;
    times_[direction].delay.record(now - departure.arrived);
    times_[direction].lateness.record(now - std::min(now, departure.due));
}

}  // namespace dutperf
