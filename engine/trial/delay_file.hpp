// SPDX-License-Identifier: Apache-2.0
// Writes every delay of a direction to a NumPy file (.npy, version 1.0): records of sequence number and delay in ns, in
// the order of arrival at each receiver. The receiving loop puts records into a ring of fixed size; a thread of the
// lowest priority writes them, on other cores. If the ring is full, the record is dropped and counted: the loop never
// waits, and the result says how many records are missing.
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

// The ring from one receiving loop to the writer thread.
class DelayRing {
public:
    struct Taken {
        std::uint64_t sequence;
        Ticks delay;
    };

    explicit DelayRing(std::uint64_t records);  // rounded up to a power of two

    // Called by the receiving loop.
    void record(std::uint64_t sequence, Ticks delay) {
        const std::uint64_t head = head_.load(std::memory_order_relaxed);
        if (head - tail_seen_ == ring_.size()) [[unlikely]] {
            tail_seen_ = tail_.load(std::memory_order_acquire);
            if (head - tail_seen_ == ring_.size()) {
                ++dropped_;
                return;
            }
        }
        ring_[head & (ring_.size() - 1)] = {sequence, delay};
        head_.store(head + 1, std::memory_order_release);
    }

    // Called by the writer thread: the first contiguous records that wait; then how many of them were taken.
    [[nodiscard]] std::span<const Taken> waiting() const;
    void take(std::size_t count) {
        tail_.store(tail_.load(std::memory_order_relaxed) + count, std::memory_order_release);
    }

    // All records, including dropped ones. Valid after the last one.
    [[nodiscard]] std::uint64_t offered() const { return head_.load() + dropped_; }

private:
    std::vector<Taken> ring_;
    std::uint64_t dropped_ = 0, tail_seen_ = 0;  // of the receiving loop
    alignas(64) std::atomic<std::uint64_t> head_{0};
    alignas(64) std::atomic<std::uint64_t> tail_{0};
};

class DelayFile {
public:
    static constexpr std::uint64_t kRingRecords = std::uint64_t{1}
                                                  << 22U;  // 64 MiB: most of a second at 5 million frames/s

    // Makes a ring for each receiver; the writer thread runs on `cores`, if there are any. Creates the directory if
    // needed. Throws Error "file" for `field` if the file cannot be created.
    DelayFile(const std::string& path, const std::string& field, std::uint64_t clock_hz, std::size_t receivers = 1,
              std::uint64_t ring_records = kRingRecords, OtherCores cores = {});
    ~DelayFile();
    DelayFile(const DelayFile&) = delete;
    DelayFile& operator=(const DelayFile&) = delete;

    [[nodiscard]] DelayRing& ring(std::size_t receiver) { return *rings_[receiver]; }

    // To be called after the last record: completes and closes the file. May be called again.
    RecordsWritten finish();

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
    RecordsWritten outcome_;
    std::atomic<bool> finished_{false};
    std::thread writer_;
};

}  // namespace dutperf
