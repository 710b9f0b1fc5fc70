// SPDX-License-Identifier: Apache-2.0
// The cost of sending described frames, on the cheapest port (null): the compositions of benchmarks/cases.py.
#include "bench/bed.hpp"
#include "port/burst.hpp"
#include "trial/described_source.hpp"

namespace dutperf {
namespace {

constexpr std::uint32_t kBurst = 32;
constexpr std::size_t kEthernet = 14, kUdp = 8;

// UDP behind headers that a benchmark names: `ip_at` is where its IP header begins, `ip` how long that is.
DescribedFrame udp_frame(std::uint16_t size, std::size_t ip_at, std::size_t ip, bool ipv6) {
    DescribedFrame frame;
    frame.size = size;
    const std::size_t udp_at = ip_at + ip, end = frame.length();
    frame.head.resize(udp_at + kUdp);
    frame.head[ip_at] = ipv6 ? 0x60 : 0x45;
    const std::size_t length_at = ip_at + (ipv6 ? 4 : 2), counted_from = ipv6 ? ip_at + 40 : ip_at;
    store_be16(&frame.head[length_at], static_cast<std::uint16_t>(end - counted_from));
    store_be16(&frame.head[udp_at + 4], static_cast<std::uint16_t>(end - udp_at));
    frame.tag_at = static_cast<std::uint16_t>(udp_at + kUdp);
    const std::size_t addresses_at = ip_at + (ipv6 ? 8 : 12), addresses = ipv6 ? 32 : 8;
    if (!ipv6) frame.checksums.push_back({.at = static_cast<std::uint16_t>(ip_at + 10), .covers = {{ip_at, udp_at}}});
    frame.checksums.push_back({.at = static_cast<std::uint16_t>(udp_at + 6),
                               .covers = {{addresses_at, addresses_at + addresses}, {udp_at, end}},
                               .plus = static_cast<std::uint32_t>(17 + end - udp_at),
                               .zero_as_ones = true});
    return frame;
}

DescribedFrame plain(std::uint16_t size) { return udp_frame(size, kEthernet, 20, false); }

std::vector<DescribedFrame> vlan() { return {udp_frame(68, kEthernet + 4, 20, false)}; }
std::vector<DescribedFrame> extension() { return {udp_frame(92, kEthernet, 48, true)}; }
std::vector<DescribedFrame> imix() { return {plain(64), plain(594), plain(1518)}; }

// Destination address, source port and destination port of 1,000 flows, or of each frame.
std::vector<DescribedFrame> three_fields(bool by_flow) {
    DescribedFrame frame = plain(64);
    frame.flows = by_flow ? 1000 : 1;
    const auto field = [by_flow](std::uint32_t at, std::uint32_t bits, FieldMode mode, std::uint32_t first,
                                 std::uint32_t count) {
        return VaryingBits{.bit = 8 * at,
                           .bits = bits,
                           .by_flow = by_flow,
                           .mode = mode,
                           .first = first,
                           .count = count,
                           .values = {}};
    };
    frame.fields = {field(30, 32, FieldMode::increasing, 0xC6130002, 1000),
                    field(34, 16, FieldMode::increasing, 1024, 64512), field(36, 16, FieldMode::random, 1, 49151)};
    return {frame};
}

DescribedFrames made_of(const std::vector<DescribedFrame>& frames, const KindOrder& order) {
    std::vector<DescribedKind> kinds;
    for (const DescribedFrame& frame : frames) {
        const auto stream = static_cast<std::uint8_t>(kinds.size() << kStreamKindShift);
        kinds.emplace_back(
            DescribedTemplate(frame, {.source = {}, .destination = {}, .trial = 0, .stream = stream, .seed = 1}),
            next_generation());
    }
    return {session().bed().frame_pools[0], std::move(kinds), order};
}

VaryingBits of_connection(std::uint32_t at, std::uint32_t bits, FieldSource source, ConnectionPart part) {
    VaryingBits field;
    field.bit = 8 * at;
    field.bits = bits;
    field.source = source;
    field.part = part;
    return field;
}

// Frames of the Initiator or of the Responder, in the sizes of imix.
std::vector<DescribedFrame> of_connections(bool replies) {
    const FieldSource ports = replies ? FieldSource::learned : FieldSource::connection;
    std::vector<DescribedFrame> kinds = imix();
    for (DescribedFrame& kind : kinds) {
        kind.fields = {of_connection(34, 16, ports, ConnectionPart::source_port),
                       of_connection(36, 16, ports, ConnectionPart::destination_port)};
        if (replies)
            kind.fields.push_back(of_connection(30, 32, FieldSource::learned, ConnectionPart::destination_address));
    }
    return kinds;
}

void send(benchmark::State& state, const std::vector<DescribedFrame>& kinds, const KindOrder& order,
          const std::optional<ConnectionParts>& connections = std::nullopt) {
    const DescribedFrames frames = made_of(kinds, order);
    DescribedSource<false> source({.frames = &frames, .stamps = StampChoice::every(), .connections = connections});
    const std::uint16_t port = null_port().id();
    std::array<rte_mbuf*, kBurst> burst{};
    std::uint64_t number = 0;
    for (auto _ : state) {
        if (!source.make(number, kBurst, 0, burst.data())) return state.SkipWithError("no buffers");
        number += kBurst;
        benchmark::DoNotOptimize(transmit_burst({port}, burst.data(), kBurst));
    }
    state.counters["frames/s"] =
        benchmark::Counter(static_cast<double>(state.iterations()) * kBurst, benchmark::Counter::kIsRate);
}

void send_in_connections(benchmark::State& state, bool replies, const KindOrder& order) {
    const StateTable table(connection_space(), kConnections, false);
    const ConnectionChoice choice = ConnectionChoice::random(kConnections, 1);
    send(state, of_connections(replies), order,
         ConnectionParts{
             .choice = choice, .combinations = {connection_space(), choice, 1}, .table = replies ? &table : nullptr});
}

const KindOrder& imix_in_turn() {
    static const KindOrder order(std::vector<std::uint8_t>{0, 1, 0, 1, 0, 0, 2, 0, 1, 0, 1, 0});
    return order;
}

BENCHMARK_CAPTURE(send, vlan, vlan(), KindOrder())->Name("send: described, VLAN tag")->Apply(set_iterations);
BENCHMARK_CAPTURE(send, extension, extension(), KindOrder())
    ->Name("send: described, IPv6 extension header")
    ->Apply(set_iterations);
BENCHMARK_CAPTURE(send, imix, imix(), imix_in_turn())->Name("send: described, imix")->Apply(set_iterations);
BENCHMARK_CAPTURE(send, imix_at_random, imix(), KindOrder(std::vector<std::uint32_t>{7, 4, 1}, 1))
    ->Name("send: described, imix at random")
    ->Apply(set_iterations);
BENCHMARK_CAPTURE(send, flows, three_fields(true), KindOrder())
    ->Name("send: described, three fields of 1000 flows")
    ->Apply(set_iterations);
BENCHMARK_CAPTURE(send, fields, three_fields(false), KindOrder())
    ->Name("send: described, three fields by frame")
    ->Apply(set_iterations);
BENCHMARK_CAPTURE(send_in_connections, initiator, false, imix_in_turn())
    ->Name("send: described, imix with ports of random connections")
    ->Apply(set_iterations);
BENCHMARK_CAPTURE(send_in_connections, responder, true, imix_in_turn())
    ->Name("send: described, imix of replies in random connections")
    ->Apply(set_iterations);

}  // namespace
}  // namespace dutperf
