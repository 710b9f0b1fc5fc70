// SPDX-License-Identifier: Apache-2.0
#include "frame/checksum.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace dutperf {
namespace {

// RFC 1071 section 4.1: word by word, big-endian.
std::uint16_t reference_sum(const std::vector<std::uint8_t>& bytes) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 2)
        sum += static_cast<std::uint64_t>(bytes[i] << 8U) + (i + 1 < bytes.size() ? bytes[i + 1] : 0U);
    while (sum >> 16U) sum = (sum & 0xFFFFU) + (sum >> 16U);
    return static_cast<std::uint16_t>(sum);
}

TEST(Checksum, ExampleOfRfc1071) {
    const std::vector<std::uint8_t> bytes{0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7};
    EXPECT_EQ(swap16(checksum_fold(checksum_add(bytes.data(), bytes.size()))), 0xDDF2);
}

TEST(Checksum, AgreesWithTheReferenceForAnyLength) {
    std::mt19937 random(1);
    for (std::size_t size = 0; size < 300; ++size) {
        std::vector<std::uint8_t> bytes(size);
        for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
        const std::uint16_t folded = checksum_fold(checksum_add(bytes.data(), size));
        EXPECT_EQ(swap16(folded) % 0xFFFFU, reference_sum(bytes) % 0xFFFFU)
            << size;  // 0 and 0xFFFF are the same number
    }
}

TEST(Checksum, Adding64BitsEqualsAddingTheirBytes) {
    std::mt19937_64 random(2);
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t word = random(), sum = random() >> 16U;
        std::vector<std::uint8_t> bytes(8);
        store(bytes.data(), word);
        EXPECT_EQ(checksum_fold(checksum_add64(sum, word)) % 0xFFFFU,
                  checksum_fold(sum + checksum_add(bytes.data(), 8)) % 0xFFFFU);
    }
}

TEST(Checksum, WordAtAnOddOffset) {
    std::vector<std::uint8_t> bytes{0, 0x12, 0x34, 0};
    EXPECT_EQ(checksum_fold(checksum_add(bytes.data(), 4)), checksum_word(load<std::uint16_t>(&bytes[1]), true));
    bytes = {0x12, 0x34, 0, 0};
    EXPECT_EQ(checksum_fold(checksum_add(bytes.data(), 4)), checksum_word(load<std::uint16_t>(bytes.data()), false));
}

TEST(Checksum, UdpNeverSendsZero) {
    EXPECT_EQ(checksum_finish(0xFFFF), 0);
    EXPECT_EQ(checksum_finish_udp(0xFFFF), 0xFFFF);
}

}  // namespace
}  // namespace dutperf
