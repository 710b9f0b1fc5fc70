// SPDX-License-Identifier: Apache-2.0
// A port's link: up or down, as fast as it was negotiated, and whether Ethernet flow control (IEEE 802.3 annex 31B) may
// stop its sender.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace dutperf {

struct LinkStatus {
    bool up = false;
    std::uint32_t mbps = 0;  // 0: unknown, or a virtual link
};

// What the driver says of a link now. `physical`: its speed is one of a medium.
LinkStatus link_status(std::uint16_t port, bool physical);

// Counts the changes of a link that nobody else counts: by asking the driver now and then, as not every driver has an
// interrupt for it. A card that is unplugged has no link any more.
class LinkWatch {
public:
    LinkWatch(std::uint16_t port, std::string device_name);
    ~LinkWatch();
    LinkWatch(const LinkWatch&) = delete;
    LinkWatch& operator=(const LinkWatch&) = delete;

    // Asks the driver, unless it was asked less than kInterval ago.
    void poll();
    // Asks the driver.
    void poll_now();
    [[nodiscard]] std::uint64_t changes() const { return changes_; }
    [[nodiscard]] bool unplugged() const { return unplugged_; }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds kInterval{20};

    std::uint16_t port_;
    std::string device_name_;
    bool was_up_ = false;
    std::uint64_t changes_ = 0;
    Clock::time_point next_{};
    std::atomic<bool> unplugged_{false};  // set by DPDK's thread of interrupts
};

// Who may send pause frames, and whom they stop: with `receive` the port stops when it is asked to, with `transmit` it
// asks the other end.
enum class FlowControl : std::uint8_t { off, receive, transmit, full };
inline constexpr std::array kFlowControls{FlowControl::off, FlowControl::receive, FlowControl::transmit,
                                          FlowControl::full};

// As in the protocol.
std::string name_of(FlowControl mode);

// What the driver uses; nothing where it does not say.
std::optional<FlowControl> flow_control_of(std::uint16_t port);

// Whether the driver took it. Of a port that is started.
bool set_flow_control(std::uint16_t port, FlowControl mode);

}  // namespace dutperf
