// SPDX-License-Identifier: Apache-2.0
#include "trial/delay_file.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "platform/error.hpp"

namespace dutperf {
namespace {

constexpr std::size_t kHeader = 192, kRecord = 16;

std::string path_for(const char* name) { return ::testing::TempDir() + "dutperf-delays/" + name; }

std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
T value_at(const std::string& bytes, std::size_t at) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

TEST(DelayFile, HoldsEveryRecordInOrder) {
    const std::string path = path_for("whole.npy");
    DelayFile file(path, "field", 2'000'000'000);
    constexpr std::uint64_t kCount = 200'000;  // several blocks of the writer's
    for (std::uint64_t i = 0; i < kCount; ++i) file.ring(0).record(kCount - i, 2 * i + 1);
    const RecordsWritten outcome = file.finish();
    EXPECT_EQ(outcome.written, kCount);
    EXPECT_EQ(outcome.unwritten, 0U);
    EXPECT_EQ(outcome.error, "");
    const std::string bytes = content(path);
    ASSERT_EQ(bytes.size(), kHeader + kCount * kRecord);
    EXPECT_EQ(bytes[kHeader - 1], '\n');
    EXPECT_NE(bytes.find("'shape': (200000,)"), std::string::npos);
    for (std::uint64_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(value_at<std::uint64_t>(bytes, kHeader + i * kRecord), kCount - i);
        ASSERT_DOUBLE_EQ(value_at<double>(bytes, kHeader + i * kRecord + 8), static_cast<double>(i) + 0.5);
    }
    std::filesystem::remove(path);
}

TEST(DelayFile, HoldsWhatSeveralReceiversRecordEachInItsOrder) {
    const std::string path = path_for("several.npy");
    constexpr std::uint64_t kReceivers = 3, kCount = 100'000;
    DelayFile file(path, "field", 1'000'000'000, kReceivers);
    std::vector<std::thread> threads;
    for (std::uint64_t receiver = 0; receiver < kReceivers; ++receiver) {
        threads.emplace_back([&file, receiver] {
            for (std::uint64_t i = 0; i < kCount; ++i) file.ring(receiver).record(kReceivers * i + receiver, i);
        });
    }
    for (std::thread& thread : threads) thread.join();
    const RecordsWritten outcome = file.finish();
    EXPECT_EQ(outcome.written, kReceivers * kCount);
    EXPECT_EQ(outcome.unwritten, 0U);
    const std::string bytes = content(path);
    std::array<std::uint64_t, kReceivers> next{};
    for (std::uint64_t i = 0; i < outcome.written; ++i) {
        const auto sequence = value_at<std::uint64_t>(bytes, kHeader + i * kRecord);
        ASSERT_EQ(sequence / kReceivers, next[sequence % kReceivers]++);
        ASSERT_DOUBLE_EQ(value_at<double>(bytes, kHeader + i * kRecord + 8),
                         static_cast<double>(sequence / kReceivers));
    }
    std::filesystem::remove(path);
}

TEST(DelayFile, CountsDroppedRecordsAndNeverWaits) {
    const std::string path = path_for("small.npy");
    DelayFile file(path, "field", 1'000'000'000, 1, 8);
    constexpr std::uint64_t kCount = 300'000;  // within less than the writer's pause
    for (std::uint64_t i = 0; i < kCount; ++i) file.ring(0).record(i, i);
    const RecordsWritten outcome = file.finish();
    EXPECT_GT(outcome.unwritten, 0U);
    EXPECT_EQ(outcome.written + outcome.unwritten, kCount);
    const std::string bytes = content(path);
    ASSERT_EQ(bytes.size(), kHeader + outcome.written * kRecord);
    for (std::uint64_t i = 0; i < outcome.written; ++i) {
        const auto sequence = value_at<std::uint64_t>(bytes, kHeader + i * kRecord);
        ASSERT_EQ(static_cast<double>(sequence), value_at<double>(bytes, kHeader + i * kRecord + 8));
        if (i > 0) {
            ASSERT_GT(sequence, value_at<std::uint64_t>(bytes, kHeader + (i - 1) * kRecord));
        }
    }
    std::filesystem::remove(path);
}

TEST(DelayFile, AFullDiskIsReportedAndNeverWaitedFor) {
    DelayFile file("/dev/full", "field", 1'000'000'000);
    for (std::uint64_t i = 0; i < 1000; ++i) file.ring(0).record(i, i);
    const RecordsWritten outcome = file.finish();
    EXPECT_NE(outcome.error, "");
    EXPECT_EQ(outcome.written, 0U);
    EXPECT_EQ(outcome.unwritten, 1000U);
}

TEST(DelayFile, AFileThatCannotBeMadeNamesTheField) {
    try {
        const DelayFile file("/proc/nowhere/a.npy", "params.delays_files.forward", 1'000'000'000);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), "file");
        EXPECT_EQ(error.field(), "params.delays_files.forward");
    }
}

}  // namespace
}  // namespace dutperf
