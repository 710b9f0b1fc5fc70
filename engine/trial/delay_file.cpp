// SPDX-License-Identifier: Apache-2.0
#include "trial/delay_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <string_view>

#include "platform/cores.hpp"
#include "trial/npy.hpp"

namespace dutperf {

namespace {

constexpr std::uint64_t kBlockRecords = 65536;
constexpr std::chrono::milliseconds kPause{1};
constexpr std::string_view kMembers = "('sequence', '<u8'), ('delay_ns', '<f8')";

}  // namespace

DelayRing::DelayRing(std::uint64_t records) : ring_(std::bit_ceil(records)) {}

std::span<const DelayRing::Taken> DelayRing::waiting() const {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed), at = tail & (ring_.size() - 1);
    return {&ring_[at], std::min<std::uint64_t>(head_.load(std::memory_order_acquire) - tail, ring_.size() - at)};
}

DelayFile::DelayFile(const std::string& path, const std::string& field, std::uint64_t clock_hz, std::size_t receivers,
                     std::uint64_t ring_records, OtherCores cores)
    : block_(kBlockRecords), cores_(std::move(cores)), ns_per_tick_(1e9 / static_cast<double>(clock_hz)) {
    for (std::size_t i = 0; i < receivers; ++i) rings_.push_back(std::make_unique<DelayRing>(ring_records));
    file_ = create_file(path, field);
    write_header();
    writer_ = std::thread([this] { write_until_finished(); });
}

DelayFile::~DelayFile() { finish(); }

RecordsWritten DelayFile::finish() {
    if (!writer_.joinable()) return outcome_;
    finished_.store(true, std::memory_order_release);
    writer_.join();
    std::uint64_t offered = 0;
    for (const auto& ring : rings_) offered += ring->offered();
    outcome_.unwritten = offered - outcome_.written;
    write_header();
    if (close(file_) != 0) fail();
    return outcome_;
}

void DelayFile::write_until_finished() {
    yield_core_for_thread();
    run_on(0, cores_.during_trials);
    for (bool last = false; !last;) {
        last = finished_.load(std::memory_order_acquire);
        if (last) run_on(0, cores_.between_trials);
        while (write_a_block_of_each()) {
        }
        if (!last) std::this_thread::sleep_for(kPause);
    }
}

// Writes a block of each ring in turn, so that none fills up while another is emptied. Returns whether there was any.
bool DelayFile::write_a_block_of_each() {
    bool any = false;
    for (const auto& ring : rings_) {
        const auto waiting = ring->waiting();
        const auto block = waiting.first(std::min(waiting.size(), block_.size()));
        if (block.empty()) continue;
        if (outcome_.error.empty()) write_block(block);
        ring->take(block.size());
        any = true;
    }
    return any;
}

void DelayFile::write_block(std::span<const DelayRing::Taken> records) {
    const auto record = [this](const DelayRing::Taken& one) {
        return Record{one.sequence, static_cast<double>(one.delay) * ns_per_tick_};
    };
    std::ranges::transform(records, block_.begin(), record);
    std::size_t written = 0;
    if (!write_all(file_, reinterpret_cast<const char*>(block_.data()), records.size_bytes(), written)) fail();
    outcome_.written += written / sizeof(Record);
}

// Called before the first record and again after the last, when the count is known.
void DelayFile::write_header() {
    const std::string text = npy_header(kMembers, outcome_.written);
    std::size_t written = 0;
    const bool whole = ftruncate(file_, static_cast<off_t>(kNpyHeaderSize + outcome_.written * sizeof(Record))) == 0 &&
                       lseek(file_, 0, SEEK_SET) == 0 && write_all(file_, text.data(), text.size(), written);
    if (!whole) fail();
}

void DelayFile::fail() {
    if (outcome_.error.empty()) outcome_.error = system_message();
}

}  // namespace dutperf
