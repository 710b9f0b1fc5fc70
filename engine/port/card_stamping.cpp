// SPDX-License-Identifier: Apache-2.0
#include "port/card_stamping.hpp"

#include <linux/sockios.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "platform/error.hpp"
#include "port/ethtool.hpp"
#include "port/kernel_interface.hpp"

namespace dutperf {

namespace {

constexpr unsigned kNeeded =
    SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;

// As ethtool -T has them, by HWTSTAMP_FILTER_….
constexpr std::array kFilters{"none",           "all",           "some",
                              "ptpv1-l4-event", "ptpv1-l4-sync", "ptpv1-l4-delay-req",
                              "ptpv2-l4-event", "ptpv2-l4-sync", "ptpv2-l4-delay-req",
                              "ptpv2-l2-event", "ptpv2-l2-sync", "ptpv2-l2-delay-req",
                              "ptpv2-event",    "ptpv2-sync",    "ptpv2-delay-req",
                              "ntp-all"};

std::string filters_in(unsigned bits) {
    std::string text;
    for (std::size_t i = 0; i < kFilters.size(); ++i) {
        if ((bits >> i & 1U) != 0) text += (text.empty() ? "" : ", ") + std::string(kFilters[i]);
    }
    return text.empty() ? "none" : text;
}

// With which the frames are stamped, the most wanted one first.
std::vector<int> filters_for(StampedFrames needed) {
    switch (needed) {
        case StampedFrames::ptp_in_udp:
            return {HWTSTAMP_FILTER_ALL, HWTSTAMP_FILTER_PTP_V2_EVENT, HWTSTAMP_FILTER_PTP_V2_L4_EVENT,
                    HWTSTAMP_FILTER_PTP_V2_SYNC, HWTSTAMP_FILTER_PTP_V2_L4_SYNC};
        case StampedFrames::ptp_in_ethernet:
            return {HWTSTAMP_FILTER_ALL, HWTSTAMP_FILTER_PTP_V2_EVENT, HWTSTAMP_FILTER_PTP_V2_L2_EVENT,
                    HWTSTAMP_FILTER_PTP_V2_SYNC, HWTSTAMP_FILTER_PTP_V2_L2_SYNC};
        default: return {HWTSTAMP_FILTER_ALL};
    }
}

std::optional<int> first_of(StampedFrames needed, unsigned offered) {
    for (const int filter : filters_for(needed)) {
        if ((offered >> static_cast<unsigned>(filter) & 1U) != 0) return filter;
    }
    return std::nullopt;
}

std::string what_is_missing(StampedFrames needed, unsigned offered, const std::string& of_ptp) {
    const std::string offers = " (" + filters_in(offered) + ")";
    if (needed != StampedFrames::every)
        return std::string("stamps no messages of PTP in ") +
               (needed == StampedFrames::ptp_in_udp ? "UDP" : "Ethernet") + " that it receives" + offers;
    const bool stamps_ptp = first_of(StampedFrames::ptp_in_udp, offered).has_value();
    return "does not stamp every frame that it receives" + offers +
           (stamps_ptp ? ", but messages of PTP, " + of_ptp : "");
}

class InterfaceDriver : public StampingDriver {
public:
    explicit InterfaceDriver(std::string interface) : interface_(std::move(interface)) {}

    [[nodiscard]] std::string name() const override { return interface_driver(interface_); }
    bool offers(ethtool_ts_info& info) override {
        info.cmd = ETHTOOL_GET_TS_INFO;
        return ask_ethtool(interface_, &info);
    }
    bool read(hwtstamp_config& config) override { return ask_driver(interface_, SIOCGHWTSTAMP, &config); }
    bool configure(hwtstamp_config& config) override { return ask_driver(interface_, SIOCSHWTSTAMP, &config); }

private:
    std::string interface_;
};

}  // namespace

std::unique_ptr<StampingDriver> stamping_driver_of(const std::string& interface) {
    return std::make_unique<InterfaceDriver>(interface);
}

CardStamping::CardStamping(std::unique_ptr<StampingDriver> driver, const std::string& whose)
    : driver_(std::move(driver)), name_("the driver " + driver_->name() + " of " + whose + ", ") {
    if (!driver_->offers(info_)) info_ = {};
    if (!driver_->read(before_)) before_ = {};  // not every driver tells
}

void CardStamping::refuse(const std::string& why) const {
    throw Error("port_unavailable", name_ + why + ": leave stamps at kernel or loop", "params.stamps");
}

void CardStamping::require_offers() const {
    if ((info_.so_timestamping & kNeeded) != kNeeded || info_.phc_index < 0)
        refuse("lets no card stamp sent and received frames");
    if ((info_.tx_types >> HWTSTAMP_TX_ON & 1U) == 0) refuse("stamps no frames that are sent");
}

bool CardStamping::stamp(StampedFrames needed, const std::string& of_ptp) {
    require_offers();
    const auto chosen = first_of(needed, info_.rx_filters);
    if (!chosen) refuse(what_is_missing(needed, info_.rx_filters, of_ptp));
    hwtstamp_config config{.flags = 0, .tx_type = HWTSTAMP_TX_ON, .rx_filter = *chosen};
    if (!driver_->configure(config)) {
        refuse(errno == EPERM ? "lets only root switch time stamps on"
                              : std::string("does not stamp frames (") + std::strerror(errno) + ")");
    }
    const unsigned given = 1U << static_cast<unsigned>(config.rx_filter);
    if (config.tx_type == HWTSTAMP_TX_ON && first_of(needed, given)) return config.rx_filter == HWTSTAMP_FILTER_ALL;
    driver_->configure(before_);
    if (config.tx_type != HWTSTAMP_TX_ON) refuse("was asked for stamps of sent frames and makes none");
    refuse(what_is_missing(needed, given, of_ptp));
}

CardStamping::~CardStamping() { driver_->configure(before_); }

}  // namespace dutperf
