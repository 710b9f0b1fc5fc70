// SPDX-License-Identifier: Apache-2.0
// What is said of drivers that do not stamp every frame, and that a card stamps as before afterwards.
#include "port/card_stamping.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>

#include "platform/error.hpp"

namespace dutperf {
namespace {

constexpr unsigned kHardware =
    SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
constexpr unsigned bit(unsigned number) { return 1U << number; }

struct Card {
    unsigned stamps = kHardware, tx_types = bit(HWTSTAMP_TX_OFF) | bit(HWTSTAMP_TX_ON),
             filters = bit(HWTSTAMP_FILTER_NONE) | bit(HWTSTAMP_FILTER_ALL);
    int clock = 3;
    std::optional<int> narrows_to = std::nullopt;  // whatever it was asked for
    int sends = HWTSTAMP_TX_ON;
    int error = 0;
    hwtstamp_config config{};
};

class FakeDriver : public StampingDriver {
public:
    explicit FakeDriver(Card& card) : card_(card) {}
    [[nodiscard]] std::string name() const override { return "fake"; }
    bool offers(ethtool_ts_info& info) override {
        info.so_timestamping = card_.stamps;
        info.phc_index = card_.clock;
        info.tx_types = card_.tx_types;
        info.rx_filters = card_.filters;
        return true;
    }
    bool read(hwtstamp_config& config) override {
        config = card_.config;
        return true;
    }
    bool configure(hwtstamp_config& config) override {
        errno = card_.error;
        if (card_.error != 0) return false;
        if (config.tx_type == HWTSTAMP_TX_ON) config = {0, card_.sends, card_.narrows_to.value_or(config.rx_filter)};
        card_.config = config;
        return true;
    }

private:
    Card& card_;
};

std::string refusal_of(Card card, StampedFrames needed = StampedFrames::every) {
    const hwtstamp_config before = card.config;
    try {
        CardStamping stamping(std::make_unique<FakeDriver>(card), "eth1, the left port");
        stamping.stamp(needed, "which some cannot be");
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), "port_unavailable");
        EXPECT_EQ(error.field(), "params.stamps");
        EXPECT_EQ(card.config.rx_filter, before.rx_filter);
        return error.what();
    }
    return "";
}

TEST(CardStamping, IsOnWhileItIsUsedAndAsBeforeAfterwards) {
    Card card{.config = {0, HWTSTAMP_TX_OFF, HWTSTAMP_FILTER_PTP_V2_EVENT}};
    {
        CardStamping stamping(std::make_unique<FakeDriver>(card), "eth1, the left port");
        EXPECT_TRUE(stamping.stamp(StampedFrames::every));
        EXPECT_EQ(stamping.clock(), 3U);
        EXPECT_EQ(card.config.tx_type, HWTSTAMP_TX_ON);
        EXPECT_EQ(card.config.rx_filter, HWTSTAMP_FILTER_ALL);
    }
    EXPECT_EQ(card.config.tx_type, HWTSTAMP_TX_OFF);
    EXPECT_EQ(card.config.rx_filter, HWTSTAMP_FILTER_PTP_V2_EVENT);
}

TEST(CardStamping, WhatADriverDoesNotOfferIsOneSentence) {
    const std::string of = "the driver fake of eth1, the left port, ", remedy = ": leave stamps at kernel or loop";
    const unsigned ptp = bit(HWTSTAMP_FILTER_NONE) | bit(HWTSTAMP_FILTER_PTP_V2_EVENT);
    const std::pair<Card, std::string> rows[] = {
        {{.stamps = SOF_TIMESTAMPING_TX_SOFTWARE}, "lets no card stamp sent and received frames"},
        {{.clock = -1}, "lets no card stamp sent and received frames"},
        {{.tx_types = bit(HWTSTAMP_TX_OFF)}, "stamps no frames that are sent"},
        {{.filters = ptp},
         "does not stamp every frame that it receives (none, ptpv2-event), but messages of PTP, which some cannot be"},
        {{.narrows_to = HWTSTAMP_FILTER_PTP_V1_L4_SYNC}, "does not stamp every frame that it receives (ptpv1-l4-sync)"},
        {{.sends = HWTSTAMP_TX_OFF}, "was asked for stamps of sent frames and makes none"},
        {{.error = EPERM}, "lets only root switch time stamps on"},
        {{.error = EBUSY}, "does not stamp frames (Device or resource busy)"},
    };
    for (const auto& [card, why] : rows) EXPECT_EQ(refusal_of(card), of + why + remedy);
}

TEST(CardStamping, MessagesOfPtpSufficeWhereNoOtherFramesAreStamped) {
    using enum StampedFrames;
    const std::tuple<unsigned, StampedFrames, int> rows[] = {
        {bit(HWTSTAMP_FILTER_PTP_V2_EVENT), ptp_in_udp, HWTSTAMP_FILTER_PTP_V2_EVENT},
        {bit(HWTSTAMP_FILTER_PTP_V2_L4_EVENT) | bit(HWTSTAMP_FILTER_PTP_V2_L2_EVENT), ptp_in_udp,
         HWTSTAMP_FILTER_PTP_V2_L4_EVENT},
        {bit(HWTSTAMP_FILTER_PTP_V2_L4_EVENT) | bit(HWTSTAMP_FILTER_PTP_V2_L2_EVENT), ptp_in_ethernet,
         HWTSTAMP_FILTER_PTP_V2_L2_EVENT},
        {bit(HWTSTAMP_FILTER_PTP_V2_L4_SYNC), ptp_in_udp, HWTSTAMP_FILTER_PTP_V2_L4_SYNC},
    };
    for (const auto& [filters, needed, chosen] : rows) {
        Card card{.filters = filters};
        CardStamping stamping(std::make_unique<FakeDriver>(card), "eth1, the left port");
        EXPECT_FALSE(stamping.stamp(needed));
        EXPECT_EQ(card.config.rx_filter, chosen);
    }
    Card card{.filters = bit(HWTSTAMP_FILTER_ALL) | bit(HWTSTAMP_FILTER_PTP_V2_EVENT)};
    CardStamping stamping(std::make_unique<FakeDriver>(card), "eth1, the left port");
    EXPECT_TRUE(stamping.stamp(ptp_in_udp));
}

TEST(CardStamping, MessagesOfPtpThatACardDoesNotStampAreRefused) {
    const std::string of = "the driver fake of eth1, the left port, stamps no messages of PTP in ",
                      end = "): leave stamps at kernel or loop";
    const Card ethernet{.filters = bit(HWTSTAMP_FILTER_PTP_V2_L2_EVENT)},
        old{.filters = bit(HWTSTAMP_FILTER_PTP_V1_L4_EVENT)};
    EXPECT_EQ(refusal_of(ethernet, StampedFrames::ptp_in_udp), of + "UDP that it receives (ptpv2-l2-event" + end);
    EXPECT_EQ(refusal_of(old, StampedFrames::ptp_in_ethernet), of + "Ethernet that it receives (ptpv1-l4-event" + end);
}

TEST(CardStamping, AnInterfaceWithoutACardIsRefused) {
    CardStamping stamping(stamping_driver_of("lo"), "lo, the left port");
    EXPECT_THROW(stamping.stamp(StampedFrames::every), Error);
}

}  // namespace
}  // namespace dutperf
