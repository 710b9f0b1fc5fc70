// SPDX-License-Identifier: Apache-2.0
// The cost of sending described frames, on the cheapest port (null): the compositions of benchmarks/cases.py.
#include "bench/described.hpp"
#include "port/burst.hpp"

namespace dutperf {
namespace {

constexpr std::uint32_t kBurst = 32;

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
