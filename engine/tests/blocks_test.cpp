// SPDX-License-Identifier: Apache-2.0
#include "platform/blocks.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <thread>
#include <utility>

namespace dutperf {
namespace {

constexpr std::size_t kPlaces = 1'000'000, kOfBlock = kBlockBytes / sizeof(std::uint64_t);

TEST(Blocks, KeepWhatIsWrittenAndAreZerosElsewhere) {
    Blocks<std::uint64_t> blocks(kPlaces);
    blocks[0] = 1;
    blocks[500'000] = 2;
    blocks[kPlaces - 1] = 3;
    const Blocks<std::uint64_t>& read = blocks;
    EXPECT_EQ((std::array{read[0], read[1], read[250'000], read[500'000], read[kPlaces - 1]}),
              (std::array<std::uint64_t, 5>{1, 0, 0, 2, 3}));
    EXPECT_EQ(read.written_from(0, kPlaces), 0U);
    const std::size_t next = read.written_from(kOfBlock, kPlaces);
    EXPECT_LE(next, 500'000U);
    EXPECT_GT(next + kOfBlock, 500'000U);
    EXPECT_GE(read.written_from(next + kOfBlock, 900'000), 900'000U);
}

TEST(Blocks, AreZerosAgainForTheNext) {
    for (int round = 0; round < 3; ++round) {
        Blocks<std::uint64_t> blocks(kPlaces);
        for (std::size_t i = 0; i < kPlaces; ++i) {
            ASSERT_EQ(blocks[i], 0U) << i << " in round " << round;
            blocks[i] = i + 1;
        }
    }
}

class BlocksBeforeATrial : public testing::TestWithParam<bool> {};

TEST_P(BlocksBeforeATrial, AreWrittenWithoutPageFaults) {
    constexpr std::size_t kBlocks = 20'000;
    long faults = -1;
    std::thread([&] {
        Blocks<std::uint64_t> blocks(kBlocks * kOfBlock);
        if (GetParam()) {
            blocks.take_whole();
        } else {
            stock_blocks(kBlocks);
        }
        rusage before{}, after{};
        getrusage(RUSAGE_THREAD, &before);
        for (std::size_t block = 0; block < kBlocks; ++block) blocks[block * kOfBlock + block % kOfBlock] = 1;
        getrusage(RUSAGE_THREAD, &after);
        faults = after.ru_minflt - before.ru_minflt;
    }).join();
    EXPECT_LE(faults, 5);
}

INSTANTIATE_TEST_SUITE_P(WholeOrInStock, BlocksBeforeATrial, testing::Bool());

TEST(Blocks, OfWholeMemoryAreReadAsOthers) {
    Blocks<std::uint64_t> blocks(kPlaces);
    blocks.take_whole();
    blocks[kPlaces - 1] = 3;
    Blocks<std::uint64_t> moved = std::move(blocks);
    const Blocks<std::uint64_t>& read = moved;
    EXPECT_EQ(read[kPlaces - 1], 3U);
    EXPECT_EQ(read[kPlaces / 2], 0U);
    EXPECT_EQ(read.written_from(0, kPlaces), 0U);
}

}  // namespace
}  // namespace dutperf
