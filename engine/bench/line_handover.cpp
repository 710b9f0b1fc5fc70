// SPDX-License-Identifier: Apache-2.0
// Measures how many cache lines a second one core hands over to another: `line-handover FROM TO` prints the rate. A
// frame is at least one line, so frames cannot pass from a sending core to a receiving core faster. On a virtual
// machine the rate changes from second to second with the placement of the cores.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "platform/cores.hpp"

namespace dutperf {
namespace {

constexpr std::uint64_t kLines = 1024, kBurst = 64, kHandedOver = kBurst * 20'000;

struct alignas(64) Line {
    std::array<std::uint64_t, 8> words;
};

// Lines are written and read in order and reused, like the buffers of a pool. Each end prefetches a burst, as the hot
// loops do.
struct Ring {
    std::array<Line, kLines> lines{};
    alignas(128) std::atomic<std::uint64_t> written{0};
    alignas(128) std::atomic<std::uint64_t> read{0};

    [[nodiscard]] Line& at(std::uint64_t number) { return lines[number % kLines]; }
};

void write_all(Ring& ring) {
    for (std::uint64_t done = 0; done < kHandedOver; done += kBurst) {
        while (done + kBurst - ring.read.load(std::memory_order_acquire) > kLines) {
        }
        for (std::uint64_t i = done; i < done + kBurst; ++i) __builtin_prefetch(&ring.at(i), 1);
        for (std::uint64_t i = done; i < done + kBurst; ++i) ring.at(i).words.fill(i);
        ring.written.store(done + kBurst, std::memory_order_release);
    }
}

std::uint64_t read_all(Ring& ring) {
    std::uint64_t sum = 0;
    for (std::uint64_t done = 0; done < kHandedOver; done += kBurst) {
        while (ring.written.load(std::memory_order_acquire) == done) {
        }
        for (std::uint64_t i = done; i < done + kBurst; ++i) __builtin_prefetch(&ring.at(i));
        for (std::uint64_t i = done; i < done + kBurst; ++i) sum += ring.at(i).words.front();
        ring.read.store(done + kBurst, std::memory_order_release);
    }
    return sum;
}

int run(unsigned from, unsigned to) {
    const auto ring = std::make_unique<Ring>();
    std::atomic<bool> ready{false};
    std::uint64_t sum = 0;
    std::thread reader([&] {
        run_on(0, {to});
        ready = true;
        sum = read_all(*ring);
    });
    run_on(0, {from});
    while (!ready) std::this_thread::yield();
    const auto began = std::chrono::steady_clock::now();
    write_all(*ring);
    reader.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    if (sum != kHandedOver * (kHandedOver - 1) / 2) return EXIT_FAILURE;  // check that each line arrived as written
    std::printf("%.0f\n", static_cast<double>(kHandedOver) / took.count());
    return EXIT_SUCCESS;
}

}  // namespace
}  // namespace dutperf

int main(int count, char** words) {
    if (count != 3) {
        std::fputs("usage: line-handover FROM TO, two cores\n", stderr);
        return 2;
    }
    return dutperf::run(static_cast<unsigned>(std::atoi(words[1])), static_cast<unsigned>(std::atoi(words[2])));
}
