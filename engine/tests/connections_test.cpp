// SPDX-License-Identifier: Apache-2.0
#include "flow/connections.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "flow/state_table.hpp"

namespace dutperf {
namespace {

constexpr std::uint32_t kSizes[]{1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 63, 64, 65, 100, 255, 1000, 65'536, 256'000, 262'147};

TEST(Divisor, IsExact) {
    for (const std::uint32_t by : {1U, 2U, 3U, 5U, 7U, 100U, 49'151U, 64'512U, 65'536U, 46'341U, 0x7FFFFFFFU}) {
        const Divisor divisor(by);
        for (const std::uint64_t near : {std::uint64_t{0}, std::uint64_t{by}, std::uint64_t{by} * 77,
                                         std::uint64_t{0x7FFFFFFF} / by * by, std::uint64_t{0x7FFFFFFF}}) {
            for (std::uint64_t dividend = near < 2 ? 0 : near - 2; dividend <= near + 2; ++dividend) {
                if (dividend > 0x7FFFFFFF) break;
                const std::uint64_t quotient = divisor.quotient(dividend);
                EXPECT_EQ(quotient, dividend / by) << dividend << " / " << by;
                EXPECT_EQ(divisor.remainder(dividend, quotient), dividend % by);
            }
        }
    }
}

TEST(Permutation, HasEachNumberOnce) {
    for (const std::uint32_t size : kSizes) {
        const Permutation permutation(size, 42);
        std::vector<bool> seen(size);
        for (std::uint32_t number = 0; number < size; ++number) {
            const std::uint32_t image = permutation.of(number);
            ASSERT_LT(image, size);
            ASSERT_FALSE(seen[image]) << image << " twice, of " << size;
            seen[image] = true;
        }
    }
}

TEST(Permutation, OfTheLargestSizeStaysWithin) {
    const Permutation permutation(kLargestPermutation, 1);
    std::set<std::uint32_t> images;
    for (std::uint32_t number = 0; number < 10'000; ++number) {
        images.insert(permutation.of(number));
        images.insert(permutation.of(kLargestPermutation - 1 - number));
    }
    EXPECT_EQ(images.size(), 20'000U);
    EXPECT_LT(*images.rbegin(), kLargestPermutation);
}

TEST(Permutation, LanesHaveTheSameImages) {
    for (const std::uint32_t size : kSizes) {
        const Permutation permutation(size, 7);
        ConnectionNumbers numbers{};
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint32_t>(i * 31 % size);
        const ConnectionNumbers before = numbers;
        permutation.map(numbers.data(), numbers.size());
        for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], permutation.of(before[i]));
    }
}

// Neighbours must not stay neighbours, and no place may keep its number more often than by chance.
TEST(Permutation, LooksRandom) {
    constexpr std::uint32_t kSize = 100'000;
    const Permutation permutation(kSize, 3), other(kSize, 4);
    std::uint32_t kept = 0, neighbours = 0, alike = 0, upward = 0;
    std::array<std::uint32_t, 10> tenths{};
    for (std::uint32_t number = 0; number + 1 < kSize; ++number) {
        const std::uint32_t image = permutation.of(number), next = permutation.of(number + 1);
        kept += image == number ? 1U : 0U;
        neighbours += image + 1 == next || next + 1 == image ? 1U : 0U;
        alike += image == other.of(number) ? 1U : 0U;
        upward += next > image ? 1U : 0U;
        if (number < kSize / 10) ++tenths[image / (kSize / 10)];
    }
    EXPECT_LT(kept, 12U);
    EXPECT_LT(alike, 12U);
    EXPECT_LT(neighbours, 20U);
    EXPECT_NEAR(upward, kSize / 2, 1000);
    for (const std::uint32_t in_tenth : tenths) EXPECT_NEAR(in_tenth, kSize / 100, 200);
}

TEST(ConnectionChoice, FillsWhatItSaysOneByOne) {
    for (const ConnectionChoice& choice :
         {ConnectionChoice::in_order(10), ConnectionChoice::decreasing(10), ConnectionChoice::first(),
          ConnectionChoice::random(1000, 5), ConnectionChoice::each(333, 5), ConnectionChoice::listed({7, 3, 9}),
          ConnectionChoice::random(3, 5).among({7, 3, 9}), ConnectionChoice::decreasing(3).among({7, 3, 9})}) {
        for (const std::uint64_t distance : {1, 3}) {
            ConnectionNumbers numbers{};
            choice.fill(12'345, Stride(distance), 100, numbers.data());
            for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(numbers[i], choice.of(12'345 + i * distance));
        }
    }
}

TEST(ConnectionChoice, ChoosesAmongNumbers) {
    const ConnectionChoice down = ConnectionChoice::decreasing(3).among({7, 3, 9});
    EXPECT_EQ((std::vector{down.of(0), down.of(1), down.of(2), down.of(3)}), (std::vector<std::uint32_t>{9, 3, 7, 9}));
    EXPECT_EQ(ConnectionChoice::first().among({7, 3, 9}).of(5), 7U);
}

TEST(ConnectionChoice, EachIsEachOnce) {
    const ConnectionChoice choice = ConnectionChoice::each(1000, 9);
    std::set<std::uint32_t> numbers;
    for (std::uint64_t k = 0; k < 1000; ++k) numbers.insert(choice.of(k));
    EXPECT_EQ(numbers.size(), 1000U);
}

ConnectionSpace space_of(ConnectionOrder order) {
    return {.source_port = {FieldMode::random, 1024, 1033},
            .destination_port = {FieldMode::random, 1, 7},
            .source_address = {FieldMode::random, 2, 4},
            .destination_address = {FieldMode::random, 0x100, 0x101},
            .order = order,
            .seed = 11};
}

std::set<std::array<std::uint32_t, 3>> combinations(const ConnectionSpace& space) {
    const auto size = static_cast<std::uint32_t>(space.size());
    const ConnectionFields fields(space, ConnectionChoice::in_order(size), 1);
    std::set<std::array<std::uint32_t, 3>> all;
    for (std::uint64_t k = 0; k < size; k += 100) {
        alignas(kLanesAlignment) DoubleColumn ports{};
        alignas(kLanesAlignment) Column source{}, destination{};
        fields.fill_ports(k, 100, ports);
        fields.fill_addresses(k, 100, source, destination);
        for (std::size_t i = 0; i < 100 && k + i < size; ++i) all.insert({ports[i], source[i], destination[i]});
    }
    return all;
}

TEST(Connections, EachCombinationIsThereOnce) {
    for (const ConnectionOrder order :
         {ConnectionOrder::random, ConnectionOrder::increasing, ConnectionOrder::decreasing}) {
        const ConnectionSpace space = space_of(order);
        EXPECT_EQ(space.size(), 10U * 7 * 3 * 2);
        const auto all = combinations(space);
        EXPECT_EQ(all.size(), space.size());
        for (const auto& [ports, source, destination] : all) {
            const std::uint32_t source_port = swap16(static_cast<std::uint16_t>(ports)),
                                destination_port = swap16(static_cast<std::uint16_t>(ports >> 16U));
            EXPECT_TRUE(source_port >= 1024 && source_port <= 1033);
            EXPECT_TRUE(destination_port >= 1 && destination_port <= 7);
            EXPECT_TRUE(source >= 2 && source <= 4);
            EXPECT_TRUE(destination >= 0x100 && destination <= 0x101);
        }
    }
}

TEST(Connections, CountingOrdersCountTheSourcePortFirst) {
    alignas(kLanesAlignment) DoubleColumn up{}, down{};
    ConnectionFields(space_of(ConnectionOrder::increasing), ConnectionChoice::in_order(420), 1).fill_ports(0, 12, up);
    ConnectionFields(space_of(ConnectionOrder::decreasing), ConnectionChoice::in_order(420), 1).fill_ports(0, 12, down);
    const auto source = [](std::uint32_t ports) { return swap16(static_cast<std::uint16_t>(ports)); };
    EXPECT_EQ(source(up[0]), 1024);
    EXPECT_EQ(source(up[9]), 1033);
    EXPECT_EQ(source(up[10]), 1024);
    EXPECT_EQ(source(down[0]), 1033);
    EXPECT_EQ(source(down[1]), 1032);
}

void learn(StateTable& table, std::uint32_t connection, const std::uint8_t* source, std::uint32_t ports) {
    table.ipv6() ? table.learn<true>(connection, source, ports) : table.learn<false>(connection, source, ports);
}

TEST(StateTable, LearnsAConnectionOnceAndFindsAnotherTranslation) {
    const std::uint8_t one[16]{198, 19, 0, 1, 5, 6, 7, 8}, other[16]{198, 19, 0, 2, 5, 6, 7, 8};
    for (const bool ipv6 : {false, true}) {
        StateTable table(space_of(ConnectionOrder::random), 10, ipv6);
        EXPECT_EQ(table.learned(), 0U);
        learn(table, 3, one, 0x2211'4433);
        learn(table, 3, one, 0x2211'4433);
        EXPECT_EQ(table.learned(), 1U);
        EXPECT_EQ(table.remapped(), 0U);
        learn(table, 3, other, 0x2211'4433);
        EXPECT_EQ(table.remapped(), 1U);
        learn(table, 3, other, 0x2211'4434);
        learn(table, 9, one, 0x2211'4433);
        learn(table, 9, one, 0x2211'4435);
        EXPECT_EQ(table.learned(), 2U);
        EXPECT_EQ(table.remapped(), 2U);
        const std::uint64_t* entry = table.entry(3);
        EXPECT_EQ(std::memcmp(entry, other, ipv6 ? 16 : 4), 0);
        EXPECT_EQ(entry[ipv6 ? 2 : 0] >> 32U, 0x4434'2211U);  // ports change places
    }
}

TEST(StateTable, LearnsPortsThatAre0) {
    const std::uint8_t one[16]{198, 19, 0, 1, 5, 6, 7, 8};
    for (const bool ipv6 : {false, true}) {
        StateTable table(space_of(ConnectionOrder::random), 10, ipv6);
        learn(table, 3, one, 0);
        learn(table, 3, one, 0);
        EXPECT_EQ(table.learned(), 1U);
        EXPECT_EQ(table.remapped(), 0U);
        learn(table, 3, one, 0x2211'4433);
        EXPECT_EQ(table.remapped(), 1U);
    }
}

TEST(StateTable, TellsTheLastConnectionsThatWereLearned) {
    const std::uint8_t source[16]{198, 19, 0, 1};
    StateTable table(space_of(ConnectionOrder::random), 10, false);
    EXPECT_TRUE(table.last_learned(3).empty());
    for (const std::uint32_t connection : {8U, 2U, 5U}) learn(table, connection, source, 0x2211'4433);
    EXPECT_EQ(table.last_learned(2), (std::vector<std::uint32_t>{5, 8}));
    EXPECT_EQ(table.last_learned(9), (std::vector<std::uint32_t>{2, 5, 8}));
}

TEST(StateTable, LostFramesAreTakenOnce) {
    StateTable table(space_of(ConnectionOrder::random), 10, false);
    for (const std::uint32_t connection : {8U, 2U, 8U}) table.lose(connection);
    EXPECT_EQ(table.lost(), 2U);
    EXPECT_EQ(table.take_lost(), (std::vector<std::uint32_t>{2, 8}));
    EXPECT_EQ(table.lost(), 0U);
    EXPECT_TRUE(table.take_lost().empty());
}

}  // namespace
}  // namespace dutperf
