// SPDX-License-Identifier: Apache-2.0
// The cost of the receiving hot loop alone: it takes, checks and counts the frames of a ring that was filled before.
// Only this part is timed.
#include "bench/bed.hpp"
#include "port/burst.hpp"

namespace dutperf {
namespace {

constexpr std::uint32_t kBurst = 32;
constexpr std::uint64_t kFrames = std::uint64_t{1} << 39;  // of the trial: enough that numbers never run out

template <bool Stamps>
Expected expected() {
    return {.trial = 0,
            .direction = Direction::forward,
            .frames = kFrames,
            .bounds = {},
            .stamping = Stamps ? Stamping::every : Stamping::none,
            .frame_timeout = 0,
            .delays = nullptr};
}

// Sends from the left port to the right one, where the receiver under test is.
template <bool Stamps>
class Bench {
public:
    explicit Bench(const TestBed& bed, StateTable* table)
        : bed_(bed),
          pool_(bed.frame_pools[0], frame_of(bed, {}), next_generation()),
          source_({.foreground = &pool_,
                   .background = nullptr,
                   .fields = fields(table),
                   .n = 2,
                   .m = 2,
                   .stamps = StampChoice::every()}),
          receiver_({.queue = {bed.ports[1]->id()},
                     .expected = {expected<Stamps>()},
                     .control_pool = bed.control_pool,
                     .control = bed.control_rings[1],
                     .learner = learner(table)}) {}

    static std::optional<ConnectionLearner> learner(StateTable* table) {
        if (table == nullptr) return std::nullopt;
        return ConnectionLearner(*table, ConnectionChoice::random(table->connections(), 1),
                                 {.trial = 0, .direction = Direction::forward, .frames = kFrames, .kinds = ~0U});
    }

    // Learned connections stay as they are.
    static FrameFields fields(const StateTable* table) {
        if (table == nullptr) return {random_ports(), {{}, {}, 1}};
        return FrameFields({table->space(), ConnectionChoice::random(table->connections(), 1), 1});
    }

    void fill() {
        std::array<rte_mbuf*, kBurst> frames{};
        for (std::uint64_t k = 0; k < kRing - kBurst; k += kBurst) {
            if (!source_.make(number_, kBurst, now_ticks(), frames.data())) return;
            const std::uint16_t taken = transmit_burst({bed_.ports[0]->id()}, frames.data(), kBurst);
            if (taken < kBurst) rte_pktmbuf_free_bulk(&frames[taken], kBurst - taken);
            number_ += taken;
        }
    }

    // Seconds to take all waiting frames.
    double drain() {
        const Ticks began = now_ticks();
        while (received() < number_) receiver_.turn(now_ticks());
        return static_cast<double>(now_ticks() - began) / static_cast<double>(bed_.clock_hz);
    }

    [[nodiscard]] std::uint64_t received() const { return receiver_.counts().received.load(std::memory_order_relaxed); }

private:
    TestBed bed_;
    FramePool pool_;
    FrameSource<Varies<true, false, Stamps, false>> source_;
    Receiver receiver_;
    std::uint64_t number_ = 0;
};

template <bool Stamps>
void receive_into(benchmark::State& state, StateTable* table) {
    Bench<Stamps> bench(session().bed(), table);
    for (auto _ : state) {
        bench.fill();
        state.SetIterationTime(bench.drain());
    }
    state.counters["frames/s"] = benchmark::Counter(static_cast<double>(bench.received()), benchmark::Counter::kIsRate);
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

}  // namespace
}  // namespace dutperf
