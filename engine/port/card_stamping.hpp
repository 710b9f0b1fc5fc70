// SPDX-License-Identifier: Apache-2.0
// Time stamps by a card that the kernel's driver runs (SIOCSHWTSTAMP, ethtool -T): what it can stamp, and that it does.
#pragma once

#include <linux/ethtool.h>
#include <linux/net_tstamp.h>

#include <cstdint>
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

// Which received frames need a stamp: all, or event messages of PTP (IEEE 1588-2008 13.3.2.2) in UDP or in Ethernet.
enum class StampedFrames : std::uint8_t { every, ptp_in_udp, ptp_in_ethernet };

// Has a card stamp frames that it receives, and those that are sent with that wish; at the end as before.
class CardStamping {
public:
    // `whose`: "eth1, the left port".
    CardStamping(std::unique_ptr<StampingDriver> driver, const std::string& whose);
    ~CardStamping();
    CardStamping(const CardStamping&) = delete;
    CardStamping& operator=(const CardStamping&) = delete;

    // Returns whether every frame is stamped, which a card is asked for before anything else. Throws Error
    // "port_unavailable" for the field "params.stamps", with what the driver offers. `of_ptp`: what is to be said of
    // messages of PTP where they are stamped but do not suffice.
    bool stamp(StampedFrames needed, const std::string& of_ptp = "");
    // The number of the card's clock: /dev/ptpN. Valid when it stamps.
    [[nodiscard]] unsigned clock() const { return static_cast<unsigned>(info_.phc_index); }

private:
    [[noreturn]] void refuse(const std::string& why) const;
    void require_offers() const;

    std::unique_ptr<StampingDriver> driver_;
    std::string name_;
    hwtstamp_config before_{};
    ethtool_ts_info info_{};
};

}  // namespace dutperf
