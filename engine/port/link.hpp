// SPDX-License-Identifier: Apache-2.0
// A port's link: its state, its negotiated speed, and its Ethernet flow control (IEEE 802.3 annex 31B), which may stop
// the sender.
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

// The current link status of the driver. `physical`: the speed is that of a medium.
LinkStatus link_status(std::uint16_t port, bool physical);

// Counts link changes where neither driver nor kernel does. It polls the driver, because not every driver has a link
// interrupt. An unplugged card has no link.
class LinkWatch {
public:
    LinkWatch(std::uint16_t port, std::string device_name);
    ~LinkWatch();
    LinkWatch(const LinkWatch&) = delete;
    LinkWatch& operator=(const LinkWatch&) = delete;

    // Polls the driver, unless it was polled less than kInterval ago.
    void poll();
    // Polls the driver now.
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
    std::atomic<bool> unplugged_{false};  // set by DPDK's interrupt thread
};

// The directions of pause frames: with `receive` the port obeys them, with `transmit` it sends them.
enum class FlowControl : std::uint8_t { off, receive, transmit, full };
inline constexpr std::array kFlowControls{FlowControl::off, FlowControl::receive, FlowControl::transmit,
                                          FlowControl::full};

// The name in the protocol.
std::string name_of(FlowControl mode);

// The mode that the driver uses; nothing where it does not report one.
std::optional<FlowControl> flow_control_of(std::uint16_t port);

// Sets the mode of a started port. Returns whether the driver accepted it.
bool set_flow_control(std::uint16_t port, FlowControl mode);

}  // namespace dutperf
