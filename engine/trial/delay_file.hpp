// SPDX-License-Identifier: Apache-2.0
// Every delay of a direction in a file, in NumPy's form (.npy, version 1.0): records of the frame's sequence number and
// its delay in ns, in the order of arrival at each receiver. The receiving loop puts a record into a ring of fixed size
// and goes on; a thread of the lowest priority, off the hot cores, writes. A record that finds no room is counted,
// never waited for: the measurement does not suffer, and the file says what it lacks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "platform/clock.hpp"
#include "trial/role_cores.hpp"
#include "trial/trial.hpp"

namespace dutperf {

// From one receiving loop to the thread that writes.
class DelayRing {
public:
    struct Taken {
        std::uint64_t sequence;
        Ticks delay;
    };

    explicit DelayRing(std::uint64_t records);  // rounded up to a power of two

    // By one thread.
    void record(std::uint64_t sequence, Ticks delay) {
        const std::uint64_t head = head_.load(std::memory_order_relaxed);
        if (head - tail_seen_ == ring_.size()) [[unlikely]] {
            tail_seen_ = tail_.load(std::memory_order_acquire);
            if (head - tail_seen_ == ring_.size()) {
                ++without_room_;
                return;
            }
        }
        ring_[head & (ring_.size() - 1)] = {sequence, delay};
        head_.store(head + 1, std::memory_order_release);
    }

    // By another: what waits and lies in one piece, and that so much of it has been taken.
    [[nodiscard]] std::span<const Taken> waiting() const;
    void take(std::size_t count) {
        tail_.store(tail_.load(std::memory_order_relaxed) + count, std::memory_order_release);
    }

    // Records that were offered. After the last.
    [[nodiscard]] std::uint64_t offered() const { return head_.load() + without_room_; }

private:
    std::vector<Taken> ring_;
    std::uint64_t without_room_ = 0, tail_seen_ = 0;  // of the thread that records
    alignas(64) std::atomic<std::uint64_t> head_{0};
    alignas(64) std::atomic<std::uint64_t> tail_{0};
};

class DelayFile {
public:
    static constexpr std::uint64_t kRingRecords =
        std::uint64_t{1} << 22U;  // 64 MiB: the writer may fall back by most of a second at 5 million frames/s

    // With a ring for each of `receivers`; the thread that writes keeps to `cores`, where there are some. Throws Error
    // "file", which names `field`, where the file cannot be made. Its directory is made if need be.
    DelayFile(const std::string& path, const std::string& field, std::uint64_t clock_hz, std::size_t receivers = 1,
              std::uint64_t ring_records = kRingRecords, OtherCores cores = {});
    ~DelayFile();
    DelayFile(const DelayFile&) = delete;
    DelayFile& operator=(const DelayFile&) = delete;

    [[nodiscard]] DelayRing& ring(std::size_t receiver) { return *rings_[receiver]; }

    // After the last record: the file is whole and closed when this returns. May be called again.
    DelaysWritten finish();

private:
    struct Record {
        std::uint64_t sequence;
        double delay_ns;
    };

    void write_until_finished();
    bool write_a_block_of_each();
    void write_block(std::span<const DelayRing::Taken> records);
    void write_header();
    void fail();

    std::vector<std::unique_ptr<DelayRing>> rings_;
    std::vector<Record> block_;
    OtherCores cores_;
    double ns_per_tick_;
    int file_ = -1;
    DelaysWritten outcome_;
    std::atomic<bool> finished_{false};
    std::thread writer_;
};

}  // namespace dutperf
