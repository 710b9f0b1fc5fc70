// SPDX-License-Identifier: Apache-2.0
// What the receiving hot loop alone costs: frames of a ring that was filled before are taken, checked and accounted; only the taking is timed.
#include <benchmark/benchmark.h>

#include <nlohmann/json.hpp>

#include "port/burst.hpp"
#include "server/session.hpp"
#include "trial/frame_source.hpp"

namespace dutperf {
namespace {

constexpr std::uint32_t kBurst = 32;
constexpr std::uint64_t kFill = 4096;                      // frames in the ring when the clock starts; the pool holds more
constexpr std::uint64_t kFrames = std::uint64_t{1} << 39;  // of the trial: numbers never run out

Session& session() {
    static Session one = [] {
        const auto side = [](const char* ipv4) { return nlohmann::json{{"port", "ring"}, {"receive_ring", kFill}, {"ipv4", ipv4}}; };
        const nlohmann::json open{{"left", side("198.18.0.2")}, {"right", side("198.19.0.2")}, {"cores", {allowed_cores().back()}}};
        return Session(read_open(Reader(open, "")));
    }();
    return one;
}

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

// Sends from the left port to the right one, on which the receiver under test is.
template <bool Stamps>
class Bench {
public:
    explicit Bench(const TestBed& bed)
        : bed_(bed),
          pool_(bed.frame_pools[0], frame(bed), generation()),
          source_({.foreground = &pool_,
                   .background = nullptr,
                   .ports = {{.mode = FieldMode::random, .min = 1024, .max = 65535}, {.mode = FieldMode::random, .min = 1, .max = 49151}, 1},
                   .addresses = {{}, {}, 1},
                   .n = 2,
                   .m = 2,
                   .stamps = StampChoice::every()}),
          receiver_(bed.ports[1]->id(), {}, expected<Stamps>(), bed.control_pool, bed.control_rings[1]) {}

    void fill() {
        std::array<rte_mbuf*, kBurst> frames{};
        for (std::uint64_t k = 0; k < kFill - kBurst; k += kBurst) {
            if (!source_.make(number_, kBurst, now_ticks(), frames.data())) return;
            const std::uint16_t taken = transmit_burst(bed_.ports[0]->id(), frames.data(), kBurst);
            if (taken < kBurst) rte_pktmbuf_free_bulk(&frames[taken], kBurst - taken);
            number_ += taken;
        }
    }

    // Seconds to take all that is there.
    double drain() {
        const Ticks began = now_ticks();
        while (received() < number_) receiver_.turn(0);
        return static_cast<double>(now_ticks() - began) / static_cast<double>(bed_.clock_hz);
    }

    [[nodiscard]] std::uint64_t received() const { return receiver_.counts().received.load(std::memory_order_relaxed); }

private:
    static std::uint32_t generation() {
        static std::uint32_t last = 1U << 30U;  // no trial's
        return ++last;
    }

    static FrameTemplate frame(const TestBed& bed) {
        const FrameSpec spec{.size = 64, .addresses = {*parse_ipv4("198.18.0.2"), *parse_ipv4("198.19.0.2")}};
        return {spec, bed.ports[0]->mac(), bed.ports[1]->mac(), {0, Stamps ? kStreamStamped : std::uint8_t{0}, 1024, 1}, {}};
    }

    TestBed bed_;
    FramePool pool_;
    FrameSource<Varies<true, false, Stamps, false>> source_;
    Receiver receiver_;
    std::uint64_t number_ = 0;
};

template <bool Stamps>
void receive(benchmark::State& state) {
    Bench<Stamps> bench(session().bed());
    for (auto _ : state) {
        bench.fill();
        state.SetIterationTime(bench.drain());
    }
    state.counters["frames/s"] = benchmark::Counter(static_cast<double>(bench.received()), benchmark::Counter::kIsRate);
}

BENCHMARK(receive<false>)->Name("receive, checksums and order")->UseManualTime();
BENCHMARK(receive<true>)->Name("receive, checksums, order and delays")->UseManualTime();

}  // namespace
}  // namespace dutperf

BENCHMARK_MAIN();
