// SPDX-License-Identifier: Apache-2.0
// The cost of the receiving hot loop alone: it takes, checks and counts the frames of a ring that was filled before.
// Only this part is timed.
#include "bench/described.hpp"
#include "port/burst.hpp"

namespace dutperf {
namespace {

constexpr std::uint32_t kBurst = 32;
constexpr std::uint64_t kFrames = std::uint64_t{1} << 39;  // of the trial: enough that numbers never run out

Expected expected(Stamping stamping) {
    return {.trial = 0,
            .direction = Direction::forward,
            .frames = kFrames,
            .bounds = {},
            .stamping = stamping,
            .frame_timeout = 0,
            .delays = nullptr};
}

std::optional<ConnectionLearner> learner(StateTable* table) {
    if (table == nullptr) return std::nullopt;
    return ConnectionLearner(*table, ConnectionChoice::random(table->connections(), 1),
                             {.trial = 0, .direction = Direction::forward, .frames = kFrames, .kinds = ~0U});
}

// Sends from the left port to the right one, where the receiver under test is.
template <class Source>
void receive_from(benchmark::State& state, Source& source, StateTable* table = nullptr) {
    const TestBed& bed = session().bed();
    Receiver receiver({.queue = {bed.ports[1]->id()},
                       .expected = {expected(Source::kStamps ? Stamping::every : Stamping::none)},
                       .control_pool = bed.control_pool,
                       .control = bed.control_rings[1],
                       .learner = learner(table)});
    const auto received = [&] { return receiver.counts().received.load(std::memory_order_relaxed); };
    std::uint64_t number = 0;
    for (auto _ : state) {
        std::array<rte_mbuf*, kBurst> frames{};
        for (std::uint64_t k = 0; k < kRing - kBurst; k += kBurst) {
            if (!source.make(number, kBurst, now_ticks(), frames.data())) return state.SkipWithError("no buffers");
            const std::uint16_t taken = transmit_burst({bed.ports[0]->id()}, frames.data(), kBurst);
            if (taken < kBurst) rte_pktmbuf_free_bulk(&frames[taken], kBurst - taken);
            number += taken;
        }
        const Ticks began = now_ticks();
        while (received() < number) receiver.turn(now_ticks());
        state.SetIterationTime(static_cast<double>(now_ticks() - began) / static_cast<double>(bed.clock_hz));
    }
    state.counters["frames/s"] = benchmark::Counter(static_cast<double>(received()), benchmark::Counter::kIsRate);
}

// Learned connections stay as they are.
FrameFields fields(const StateTable* table) {
    if (table == nullptr) return {random_ports(), {{}, {}, 1}};
    return FrameFields({table->space(), ConnectionChoice::random(table->connections(), 1), 1});
}

template <bool Stamps>
void receive_into(benchmark::State& state, StateTable* table) {
    const TestBed& bed = session().bed();
    FramePool pool(bed.frame_pools[0], frame_of(bed, {}), next_generation());
    FrameSource<Varies<true, false, Stamps, false>> source({.foreground = &pool,
                                                            .background = nullptr,
                                                            .fields = fields(table),
                                                            .n = 2,
                                                            .m = 2,
                                                            .stamps = StampChoice::every()});
    receive_from(state, source, table);
}

template <bool Stamps>
void receive(benchmark::State& state) {
    receive_into<Stamps>(state, nullptr);
}
BENCHMARK(receive<false>)->Name("receive, checksums and order")->Apply(set_iterations)->UseManualTime();
BENCHMARK(receive<true>)->Name("receive, checksums, order and delays")->Apply(set_iterations)->UseManualTime();

void learn(benchmark::State& state) {
    StateTable table(connection_space(), kConnections, false);
    receive_into<false>(state, &table);
}
BENCHMARK(learn)->Name("receive, checksums, order and connections")->Apply(set_iterations)->UseManualTime();

void receive_described(benchmark::State& state, const std::vector<DescribedFrame>& kinds, const KindOrder& order) {
    const DescribedFrames frames = made_of(kinds, order);
    DescribedSource<false> source({.frames = &frames, .stamps = StampChoice::every()});
    receive_from(state, source);
}
BENCHMARK_CAPTURE(receive_described, vlan, vlan(), KindOrder())
    ->Name("receive, behind a VLAN tag")
    ->Apply(set_iterations)
    ->UseManualTime();
BENCHMARK_CAPTURE(receive_described, imix, imix(), imix_in_turn())
    ->Name("receive, three sizes")
    ->Apply(set_iterations)
    ->UseManualTime();

}  // namespace
}  // namespace dutperf
