// SPDX-License-Identifier: Apache-2.0
// The reference DUT as a DNS64: frames from and to its resolver.
#include <rte_mbuf.h>

#include <algorithm>
#include <span>
#include <utility>

#include "port/burst.hpp"
#include "refdut/reference_dut.hpp"

namespace dutperf {

namespace {

constexpr std::size_t kLeft = 0, kRight = 1, kQueries = 0, kAnswers = 1;
constexpr std::size_t kMostAtOnce = 32;

// Queries have the cores, answers all else.
Properties of_queries(const Properties& properties) {
    return {.seed = properties.seed,
            .capacity_fps = properties.capacity_fps,
            .queue_frames = properties.queue_frames,
            .cores = properties.cores,
            .flow_cache = properties.flow_cache,
            .flow_miss_ns = properties.flow_miss_ns};
}

Packet packet_of(rte_mbuf* frame) { return {rte_pktmbuf_mtod(frame, std::uint8_t*), rte_pktmbuf_data_len(frame)}; }

bool may_be_datagram(const Packet& packet) {
    if (packet.length < datagram_payload_at(false)) return false;
    return packet.is_ipv6() ? packet.length >= datagram_payload_at(true)
                            : load_be16(packet.at + ethernet::kType) == ethernet::kTypeIpv4;
}

}  // namespace

void ReferenceDut::configure_dns64(const Properties& properties) {
    pipeline_ = std::make_unique<FramePipeline>(buffers_, std::array{of_queries(properties), properties}, clock_hz_);
    discard_asking();
    ResolverOutput& output = *this;
    resolver_.emplace(dns64_->prefix, properties.dns64.value_or(Dns64Properties{}), clock_hz_, output);
}

Dns64Counts ReferenceDut::dns64_counts() const {
    return {.resolver = resolver_->counts(),
            .wrong = resolver_->wrong(),
            .cached = resolver_->cache().size(),
            .evicted = resolver_->cache().evicted(),
            .pending = resolver_->pending(),
            .unsent = unsent_};
}

// Takes a client's query or a response of the server. Returns false for any other frame.
bool ReferenceDut::take_message(rte_mbuf* frame, std::size_t side, Ticks now) {
    const Packet packet = packet_of(frame);
    if (!may_be_datagram(packet) || !std::ranges::equal(ports_[side]->mac(), std::span(packet.at, sizeof(Mac))))
        return false;
    const auto datagram = read_datagram(packet);
    if (!datagram) return false;
    const Host& host = responders_[side]->host();
    const Endpoints& between = datagram->between;
    if (side == kLeft) {
        if (between.destination != ip_of(*host.ipv6) || between.destination_port != dns::kServerPort) return false;
        take_query(frame, packet, now);
        return true;
    }
    const IpAddress own = dns64_->server.is_ipv6 ? ip_of(*host.ipv6) : ip_of(*host.ipv4);
    if (between.destination != own || between.source != dns64_->server || between.source_port != dns::kServerPort)
        return false;
    take_response(frame, packet, now);
    return true;
}

void ReferenceDut::take_query(rte_mbuf* frame, const Packet& packet, Ticks now) {
    ++counts_[kQueries].received;
    if (!has_right_checksum(packet)) return lose(frame, kQueries, Loss::malformed);
    const std::uint64_t flow = flow_of(packet);
    if (const auto loss = pipeline_->loss_on_arrival(now, flow)) return lose(frame, kQueries, *loss);
    pipeline_->accept(now, frame, kQueries, flow);
}

void ReferenceDut::take_response(rte_mbuf* frame, const Packet& packet, Ticks now) {
    if (!pipeline_->is_resetting(now) && has_right_checksum(packet)) {
        const auto datagram = read_datagram(packet);
        resolver_->response(now, datagram->between.destination_port, datagram->payload);
    }
    rte_pktmbuf_free(frame);
}

// Moves served queries from due_ to the resolver. Returns whether there were any.
bool ReferenceDut::resolve_served(Ticks now) {
    if (std::exchange(resets_, pipeline_->resets()) != resets_) resolver_->clear();
    served_.clear();
    std::ranges::copy_if(due_, std::back_inserter(served_), [](const auto& one) { return one.direction == kQueries; });
    std::erase_if(due_, [](const auto& one) { return one.direction == kQueries; });
    for (const auto& departure : served_) {
        record_departure(kQueries, departure, now);
        const auto datagram = read_datagram(packet_of(departure.frame));
        const Endpoints& between = datagram->between;
        resolver_->query(now,
                         {.address = between.source.bytes, .port = between.source_port, .arrived = departure.arrived},
                         datagram->payload);
        rte_pktmbuf_free(departure.frame);
    }
    resolver_->expire(now);
    pipeline_->advance(now, due_);  // answers without a delay
    hand_over_asking();
    return !served_.empty();
}

void ReferenceDut::answer(Ticks now, const DnsClient& client, dns::Bytes message) {
    ++counts_[kAnswers].received;
    const auto lost = [&](Loss loss) { ++counts_[kAnswers].pipeline.lost[static_cast<std::size_t>(loss)]; };
    const auto next_hop = resolve(kLeft, true, now);
    if (!next_hop) return lost(Loss::unresolved);
    const Endpoints between{.source = ip_of(*responders_[kLeft]->host().ipv6),
                            .destination = ip_of(client.address),
                            .source_port = dns::kServerPort,
                            .destination_port = client.port};
    rte_mbuf* frame = make_datagram(kLeft, *next_hop, between, message);
    if (frame == nullptr) return lost(Loss::no_buffer);
    pipeline_->accept_served(now, client.arrived, frame, kAnswers);
}

void ReferenceDut::ask(Ticks now, std::uint16_t port, dns::Bytes message) {
    const bool six = dns64_->server.is_ipv6;
    const Host& host = responders_[kRight]->host();
    const auto next_hop = resolve(kRight, six, now);
    const Endpoints between{.source = six ? ip_of(*host.ipv6) : ip_of(*host.ipv4),
                            .destination = dns64_->server,
                            .source_port = port,
                            .destination_port = dns::kServerPort};
    rte_mbuf* frame = next_hop ? make_datagram(kRight, *next_hop, between, message) : nullptr;
    if (frame != nullptr) {
        asking_.push_back(frame);
    } else {
        ++unsent_;
    }
}

// nullptr: all buffers are in use.
rte_mbuf* ReferenceDut::make_datagram(std::size_t side, const Mac& next_hop, const Endpoints& between,
                                      dns::Bytes payload) {
    rte_mbuf* frame = rte_pktmbuf_alloc(message_pool_.get());
    if (frame == nullptr) return nullptr;
    auto* at = rte_pktmbuf_mtod(frame, std::uint8_t*);
    std::ranges::copy(payload, at + datagram_payload_at(between.source.is_ipv6));
    const std::size_t length =
        write_datagram(at, {.source = ports_[side]->mac(), .destination = next_hop}, between, payload.size());
    frame->data_len = static_cast<std::uint16_t>(length);
    frame->pkt_len = static_cast<std::uint32_t>(length);
    return frame;
}

// Messages that the port does not accept wait for the next turn. None is shorter than an Ethernet frame must be: a
// query has an OPT record.
void ReferenceDut::hand_over_asking() {
    while (!asking_.empty()) {
        std::array<rte_mbuf*, kMostAtOnce> frames{};
        const auto count = static_cast<std::uint16_t>(std::min(kMostAtOnce, asking_.size()));
        std::copy_n(asking_.begin(), count, frames.begin());
        const std::uint16_t taken = transmit_burst({ports_[kRight]->id()}, frames.data(), count);
        asking_.erase(asking_.begin(), asking_.begin() + taken);
        if (taken < count) return;
    }
}

void ReferenceDut::discard_asking() {
    for (rte_mbuf* frame : asking_) rte_pktmbuf_free(frame);
    asking_.clear();
}

}  // namespace dutperf
