// SPDX-License-Identifier: Apache-2.0
#include "trial/transmit_count.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace dutperf {
namespace {

constexpr std::uint64_t k32 = std::uint64_t{1} << 32U;

TEST(MonotonicCounter, ExtendsCountersThatWrapOrRestart) {
    struct Row {
        const char* name;
        std::vector<std::uint64_t> reading, expected;
    };
    for (const Row& row : {Row{"64 bits", {5, 2 * k32, 3 * k32 + 1}, {5, 2 * k32, 3 * k32 + 1}},
                           Row{"32 bits", {k32 - 10, 20, k32 - 1, 5}, {k32 - 10, k32 + 20, 2 * k32 - 1, 2 * k32 + 5}},
                           Row{"started again", {1000, 10, 30}, {1000, 1010, 1030}},
                           Row{"started again after many", {3 * k32, 7}, {3 * k32, 3 * k32 + 7}},
                           Row{"a torn reading", {1000, 990, 1001}, {1000, 1000, 1001}}}) {
        MonotonicCounter counter;
        for (std::size_t i = 0; i < row.reading.size(); ++i)
            EXPECT_EQ(counter(row.reading[i]), row.expected[i]) << row.name;
    }
}

// The counters are read one after the other while frames are dropped.
TEST(RestOfCounter, NeverDecreases) {
    RestOfCounter rest;
    const std::uint64_t before = rest(12, 10);
    EXPECT_EQ(before, 2U);
    EXPECT_EQ(rest(20, 20) - before, 0U);
    EXPECT_EQ(rest(20, 21) - before, 0U);
    EXPECT_EQ(rest(25, 21) - before, 2U);
}

// A trial that handed 100 frames over.
struct Row {
    const char* name;
    std::uint64_t came, driver_sent, errors;
    bool may_keep, tx_was_full;
    CountedBy by;
    std::uint64_t expected_errors, expected_unaccounted;
};

TEST(TransmitCount, AFrameThatWasNotCountedIsTheTestersLoss) {
    const auto driver = CountedBy::driver, nobody = CountedBy::nobody;
    const std::vector<Row> rows{
        {"all came", 100, 100, 0, false, false, driver, 0, 0},
        {"the DUT lost some", 90, 100, 0, false, false, driver, 0, 0},
        {"the driver kept some", 90, 90, 0, false, false, driver, 0, 10},
        {"both lost some", 80, 90, 0, false, false, driver, 0, 10},
        {"nothing was counted or received", 0, 0, 0, false, false, driver, 0, 100},
        {"the driver counts nothing", 90, 0, 0, false, false, nobody, 0, 0},
        {"the driver counts too few", 90, 50, 0, false, false, nobody, 0, 0},
        {"the driver counts others' frames as well", 90, 120, 0, false, false, driver, 0, 0},
        {"the driver could not send some", 90, 90, 10, false, false, driver, 10, 0},
        {"... and counted them as sent", 90, 100, 10, false, false, driver, 10, 0},
        {"errors are frames that were offered again", 90, 100, 10, false, true, driver, 0, 0},
        {"the NIC keeps some", 90, 90, 0, true, false, driver, 0, 10},
        {"the NIC may keep any that nobody counts", 90, 0, 0, true, false, nobody, 0, 10},
    };
    for (const Row& row : rows) {
        TransmitLedger ledger;
        PortCounters before, after;
        before.driver_sent = 1000;
        after.driver_sent = 1000 + row.driver_sent;
        after.driver_send_errors = row.errors;
        const TransmitCount count = count_transmitted({.before = before,
                                                       .after = after,
                                                       .handed_over = 100,
                                                       .came = row.came,
                                                       .lost = 100 - row.came,
                                                       .may_keep = row.may_keep,
                                                       .tx_was_full = row.tx_was_full},
                                                      ledger);
        EXPECT_EQ(count.by, row.by) << row.name;
        EXPECT_EQ(count.errors, row.expected_errors) << row.name;
        EXPECT_EQ(count.unaccounted, row.expected_unaccounted) << row.name;
        EXPECT_EQ(count.counted, row.driver_sent) << row.name;
    }
}

TEST(TransmitCount, ACountThatWasOnceTooLowIsNotUsedAgain) {
    TransmitLedger ledger;
    PortCounters before, after;
    after.driver_sent = 99;
    EXPECT_EQ(count_transmitted({.before = before, .after = after, .handed_over = 100, .came = 100}, ledger).by,
              CountedBy::nobody);
    const TransmitCount later =
        count_transmitted({.before = before, .after = after, .handed_over = 100, .came = 50, .lost = 50}, ledger);
    EXPECT_EQ(later.by, CountedBy::nobody);
    EXPECT_EQ(later.unaccounted, 0U);
}

TEST(TransmitCount, FramesOfAnEarlierTrialHideNoneOfThisOne) {
    TransmitLedger ledger;
    PortCounters before, between, after;
    between.driver_sent = 60;
    after.driver_sent = 160;  // 40 of the first trial and 60 of the second
    EXPECT_EQ(
        count_transmitted({.before = before, .after = between, .handed_over = 100, .came = 60, .lost = 40}, ledger)
            .unaccounted,
        40U);
    EXPECT_EQ(count_transmitted({.before = between, .after = after, .handed_over = 100, .came = 60, .lost = 40}, ledger)
                  .unaccounted,
              40U);
}

TEST(TransmitCount, FramesBetweenTrialsThatTheDriverCountsLateHideNoneOfATrial) {
    TransmitLedger ledger;
    ledger.add_uncounted(256, 100, 156);  // 200 of them wait
    EXPECT_EQ(ledger.still_waiting(156), 200U);
    ledger.add_uncounted(10, 306, 316);  // 50 of the earlier ones wait, and as many altogether later
    EXPECT_EQ(ledger.still_waiting(316), 50U);
    PortCounters before, after;
    before.driver_sent = 316;
    after.driver_sent = 426;  // those and 60 of the trial
    EXPECT_EQ(count_transmitted({.before = before, .after = after, .handed_over = 100, .came = 60, .lost = 40}, ledger)
                  .unaccounted,
              40U);
}

TEST(TransmitCount, TheKernelsCountIncludesWhatItDropped) {
    TransmitLedger ledger;
    PortCounters before, after;
    after.counts_transmitted = true;
    after.interface_sent = 80;
    after.link_input_drops = 15;
    const TransmitCount count =
        count_transmitted({.before = before, .after = after, .handed_over = 100, .came = 80, .lost = 20}, ledger);
    EXPECT_EQ(count.by, CountedBy::kernel);
    EXPECT_EQ(count.counted, 95U);
    EXPECT_EQ(count.unaccounted, 5U);
}

}  // namespace
}  // namespace dutperf
