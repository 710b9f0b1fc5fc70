// SPDX-License-Identifier: Apache-2.0
#include "port/card_stamping.hpp"

#include <linux/sockios.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "platform/error.hpp"
#include "port/ethtool.hpp"
#include "port/kernel_interface.hpp"

namespace dutperf {

namespace {

constexpr unsigned kNeeded =
    SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
constexpr hwtstamp_config kEveryFrame{.flags = 0, .tx_type = HWTSTAMP_TX_ON, .rx_filter = HWTSTAMP_FILTER_ALL};

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
    : driver_(std::move(driver)) {
    const std::string name = "the driver " + driver_->name() + " of " + whose + ", ";
    const auto refuse = [&](const std::string& why) {
        throw Error("port_unavailable", name + why + ": leave stamps at kernel or loop", "params.stamps");
    };
    ethtool_ts_info info{};
    if (!driver_->offers(info)) info = {};
    if ((info.so_timestamping & kNeeded) != kNeeded || info.phc_index < 0)
        refuse("lets no card stamp sent and received frames");
    if ((info.tx_types >> HWTSTAMP_TX_ON & 1U) == 0) refuse("stamps no frames that are sent");
    const auto require_all = [&](unsigned filters) {
        if ((filters >> HWTSTAMP_FILTER_ALL & 1U) == 0)
            refuse("does not stamp every frame that it receives (" + filters_in(filters) + ")");
    };
    require_all(info.rx_filters);
    clock_ = static_cast<unsigned>(info.phc_index);
    if (!driver_->read(before_)) before_ = {};  // not every driver tells
    hwtstamp_config config = kEveryFrame;
    if (!driver_->configure(config)) {
        refuse(errno == EPERM ? "lets only root switch time stamps on"
                              : std::string("does not stamp frames (") + std::strerror(errno) + ")");
    }
    if (config.tx_type == HWTSTAMP_TX_ON && config.rx_filter == HWTSTAMP_FILTER_ALL) return;
    driver_->configure(before_);
    if (config.tx_type != HWTSTAMP_TX_ON) refuse("was asked for stamps of sent frames and makes none");
    require_all(1U << static_cast<unsigned>(config.rx_filter));
}

CardStamping::~CardStamping() { driver_->configure(before_); }

}  // namespace dutperf
