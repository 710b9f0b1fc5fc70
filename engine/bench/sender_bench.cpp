// SPDX-License-Identifier: Apache-2.0
// The cost of each step of sending, on the cheapest port (null): each benchmark adds one step to the one before.
#include "bench/bed.hpp"
#include "port/burst.hpp"
#include "trial/responder_source.hpp"
#include "trial/transmitter.hpp"

namespace dutperf {
namespace {

constexpr std::uint32_t kBurst = 32;
constexpr std::uint64_t kClockHz = 1'000'000'000, kFrames = std::uint64_t{1} << 39;

using Frames = std::array<rte_mbuf*, kBurst>;

void send_all(std::uint16_t port, Frames& frames) {
    benchmark::DoNotOptimize(transmit_burst({port}, frames.data(), kBurst));
}

void report(benchmark::State& state) {
    state.counters["frames/s"] =
        benchmark::Counter(static_cast<double>(state.iterations()) * kBurst, benchmark::Counter::kIsRate);
}

// Only takes buffers and gives them back.
void pool_alone(benchmark::State& state) {
    rte_mempool* pool = session().bed().frame_pools[0];
    Frames frames{};
    for (auto _ : state) {
        if (rte_mempool_get_bulk(pool, reinterpret_cast<void**>(frames.data()), kBurst) != 0)
            return state.SkipWithError("no buffers");
        rte_mempool_put_bulk(pool, reinterpret_cast<void**>(frames.data()), kBurst);
    }
    report(state);
}
BENCHMARK(pool_alone)->Name("send: take buffers and give them back")->Apply(set_iterations);

// The driver frees the buffers one by one: no tester that takes its buffers from a pool can be faster on this port.
void driver_alone(benchmark::State& state) {
    rte_mempool* pool = session().bed().frame_pools[0];
    const std::uint16_t port = null_port().id();
    Frames frames{};
    for (auto _ : state) {
        if (rte_mempool_get_bulk(pool, reinterpret_cast<void**>(frames.data()), kBurst) != 0)
            return state.SkipWithError("no buffers");
        send_all(port, frames);
    }
    report(state);
}
BENCHMARK(driver_alone)->Name("send: the driver")->Apply(set_iterations);

void with_template(benchmark::State& state) {
    const TestBed bed = session().bed();
    FramePool pool(bed.frame_pools[0], frame_of(bed, {}), next_generation());
    const std::uint16_t port = null_port().id();
    Frames frames{};
    for (auto _ : state) {
        if (!pool.take(frames.data(), kBurst)) return state.SkipWithError("no buffers");
        send_all(port, frames);
    }
    report(state);
}
BENCHMARK(with_template)->Name("send: and lengths, and whose template it is")->Apply(set_iterations);

enum class Connected : std::uint8_t { no, opened, used };

struct Composition {
    bool ports = false, networks = false, stamps = false;
    Connected connected = Connected::no;
};

template <Composition C>
FrameFields fields_of() {
    if constexpr (C.connected == Connected::no)
        return {random_ports(), {{}, {.mode = FieldMode::random, .min = 0, .max = 255}, 2}};
    else
        return FrameFields({connection_space(),
                            C.connected == Connected::opened ? ConnectionChoice::in_order(kConnections)
                                                             : ConnectionChoice::random(kConnections, 1),
                            1});
}

template <Composition C>
struct Parts {
    explicit Parts(const TestBed& bed)
        : pool(bed.frame_pools[0],
               frame_of(bed, {.destination = C.networks ? AddressVariation::network : AddressVariation::none}),
               next_generation()),
          parts{.foreground = &pool,
                .background = nullptr,
                .fields = fields_of<C>(),
                .n = 2,
                .m = 2,
                .stamps = StampChoice::every()} {}

    using Varying = Varies<C.ports, C.networks, C.stamps, false>;
    FramePool pool;
    FrameSourceParts parts;
};

template <Composition C>
void with_content(benchmark::State& state) {
    Parts<C> made(session().bed());
    FrameSource<typename Parts<C>::Varying> source(made.parts);
    const std::uint16_t port = null_port().id();
    Frames frames{};
    std::uint64_t number = 0;
    for (auto _ : state) {
        if (!source.make(number, kBurst, C.stamps ? now_ticks() : 0, frames.data()))
            return state.SkipWithError("no buffers");
        number += kBurst;
        send_all(port, frames);
    }
    report(state);
}
BENCHMARK(with_content<Composition{}>)->Name("send: and numbers and checksums")->Apply(set_iterations);
BENCHMARK(with_content<Composition{.ports = true}>)->Name("send: and random ports")->Apply(set_iterations);
BENCHMARK(with_content<Composition{.ports = true, .networks = true}>)
    ->Name("send: and random ports and networks")
    ->Apply(set_iterations);
BENCHMARK(with_content<Composition{.ports = true, .stamps = true}>)
    ->Name("send: and random ports and stamps")
    ->Apply(set_iterations);
BENCHMARK(with_content<Composition{.ports = true, .connected = Connected::opened}>)
    ->Name("send: and ports of connections that are opened")
    ->Apply(set_iterations);
BENCHMARK(with_content<Composition{.ports = true, .connected = Connected::used}>)
    ->Name("send: and ports of random connections")
    ->Apply(set_iterations);

void replies(benchmark::State& state) {
    const TestBed bed = session().bed();
    FramePool pool(bed.frame_pools[0], frame_of(bed, {}), next_generation());
    const StateTable table(connection_space(), kConnections, false);
    ResponderSource<false, false> source({.pool = &pool,
                                          .table = &table,
                                          .choice = ConnectionChoice::random(kConnections, 1),
                                          .addresses = std::nullopt,
                                          .stamps = StampChoice::every()});
    const std::uint16_t port = null_port().id();
    Frames frames{};
    std::uint64_t number = 0;
    for (auto _ : state) {
        if (!source.make(number, kBurst, 0, frames.data())) return state.SkipWithError("no buffers");
        number += kBurst;
        send_all(port, frames);
    }
    report(state);
}
BENCHMARK(replies)->Name("send: replies in random connections")->Apply(set_iterations);

template <Composition C>
void with_schedule(benchmark::State& state) {
    const TestBed bed = session().bed();
    Parts<C> made(bed);
    Transmitter<ConstantRate, FrameSource<typename Parts<C>::Varying>> transmitter(
        {.queue = {null_port().id()}, .control = bed.control_rings[0]}, {kClockHz, kClockHz, kFrames, kBurst},
        made.parts);
    const Ticks start = now_ticks() - kFrames;
    transmitter.start({.start = start,
                       .begin = start,
                       .end = ~Ticks{0},
                       .deadline = ~Ticks{0},
                       .burst_threshold = ~Ticks{0},  // always late
                       .late = ~Ticks{0}});
    Ticks now = now_ticks();
    for (auto _ : state) now = transmitter.turn(now);
    report(state);
}
BENCHMARK(with_schedule<Composition{}>)->Name("send: numbers, schedule and evidence")->Apply(set_iterations);
BENCHMARK(with_schedule<Composition{.ports = true}>)
    ->Name("send: random ports, schedule and evidence")
    ->Apply(set_iterations);
BENCHMARK(with_schedule<Composition{.ports = true, .stamps = true}>)
    ->Name("send: random ports, stamps, schedule and evidence")
    ->Apply(set_iterations);

}  // namespace
}  // namespace dutperf
