// SPDX-License-Identifier: Apache-2.0
// Shared parts of the hot-loop benchmarks: ports connected in memory, a port without cost, and a frame.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "server/session.hpp"
#include "trial/frame_source.hpp"

namespace dutperf {

inline constexpr std::uint64_t kRing = 4096;  // frames

// Takes the number of iterations from the environment, if set: counting instructions uses two runs with different
// numbers and takes the difference.
inline void set_iterations(benchmark::internal::Benchmark* one) {
    if (const char* wanted = std::getenv("BENCH_ITERATIONS")) one->Iterations(std::atoll(wanted));
}

// DPDK starts once in a process, so all benchmarks use one session.
inline Session& session() {
    static Session one = [] {
        const auto side = [](const char* ipv4) {
            return nlohmann::json{{"port", "ring"}, {"receive_ring", kRing}, {"ipv4", ipv4}};
        };
        const nlohmann::json open{
            {"left", side("198.18.0.2")}, {"right", side("198.19.0.2")}, {"cores", {allowed_cores().back()}}};
        return Session(read_open(Reader(open, "")));
    }();
    return one;
}

// The cheapest port: it takes every frame and gives none.
inline Port& null_port() {
    session();
    static Port one(
        {.side = "bench", .spec = {.kind = PortSpec::Kind::null, .argument = "", .devargs = ""}, .mac = std::nullopt});
    return one;
}

inline FrameTemplate frame_of(const TestBed& bed, const AddressVariations& vary) {
    const FrameSpec spec{.size = 64, .addresses = {*parse_ipv4("198.18.0.2"), *parse_ipv4("198.19.0.2")}};
    return {spec, bed.ports[0]->mac(), bed.ports[1]->mac(), {0, 0, 1024, 1}, vary};
}

// Generations that no trial uses, each used once.
inline std::uint32_t next_generation() {
    static std::uint32_t last = 1U << 30U;
    return ++last;
}

inline FieldPair random_ports() {
    return {
        {.mode = FieldMode::random, .min = 1024, .max = 65535}, {.mode = FieldMode::random, .min = 1, .max = 49151}, 1};
}

inline constexpr std::uint32_t kConnections = 1'000'000;

inline ConnectionSpace connection_space() {
    return {.source_port = {.mode = FieldMode::random, .min = 1024, .max = 41023},
            .destination_port = {.mode = FieldMode::random, .min = 1, .max = 25},
            .source_address = {},
            .destination_address = {}};
}

}  // namespace dutperf
