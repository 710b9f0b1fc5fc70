// SPDX-License-Identifier: Apache-2.0
// Time stamps by a card that the kernel's driver runs (SIOCSHWTSTAMP, ethtool -T): what it can stamp, and that it does.
#pragma once

#include <linux/ethtool.h>
#include <linux/net_tstamp.h>

#include <memory>
#include <string>

namespace dutperf {

// A driver's side of it. Each returns whether it was answered, into the argument; otherwise errno says why not.
class StampingDriver {
public:
    StampingDriver() = default;
    virtual ~StampingDriver() = default;
    StampingDriver(const StampingDriver&) = delete;
    StampingDriver& operator=(const StampingDriver&) = delete;

    [[nodiscard]] virtual std::string name() const = 0;
    virtual bool offers(ethtool_ts_info& info) = 0;
    virtual bool read(hwtstamp_config& config) = 0;
    // The driver may stamp other frames than it was asked for, and says so in the argument.
    virtual bool configure(hwtstamp_config& config) = 0;
};

std::unique_ptr<StampingDriver> stamping_driver_of(const std::string& interface);

// Has a card stamp every frame that it receives, and those that are sent with that wish; at the end as before.
class CardStamping {
public:
    // `whose`: "eth1, the left port". Throws Error "port_unavailable" for the field "params.stamps", with what the
    // driver offers.
    CardStamping(std::unique_ptr<StampingDriver> driver, const std::string& whose);
    ~CardStamping();
    CardStamping(const CardStamping&) = delete;
    CardStamping& operator=(const CardStamping&) = delete;

    // The number of the card's clock: /dev/ptpN.
    [[nodiscard]] unsigned clock() const { return clock_; }

private:
    std::unique_ptr<StampingDriver> driver_;
    hwtstamp_config before_{};
    unsigned clock_ = 0;
};

}  // namespace dutperf
