// SPDX-License-Identifier: Apache-2.0
#define ALLOW_EXPERIMENTAL_API  // rte_dev_event_callback_register()
#include "port/link.hpp"

#include <rte_dev.h>
#include <rte_ethdev.h>

#include <utility>

namespace dutperf {

namespace {

void note_removal(const char* /*device*/, rte_dev_event_type event, void* unplugged) {
    if (event == RTE_DEV_EVENT_REMOVE) static_cast<std::atomic<bool>*>(unplugged)->store(true);
}

rte_eth_fc_mode dpdk_mode(FlowControl mode) {
    switch (mode) {
        case FlowControl::off: return RTE_ETH_FC_NONE;
        case FlowControl::receive: return RTE_ETH_FC_RX_PAUSE;
        case FlowControl::transmit: return RTE_ETH_FC_TX_PAUSE;
        case FlowControl::full: return RTE_ETH_FC_FULL;
    }
    return RTE_ETH_FC_NONE;
}

std::optional<rte_eth_fc_conf> configured_flow_control(std::uint16_t port) {
    rte_eth_fc_conf conf{};
    return rte_eth_dev_flow_ctrl_get(port, &conf) == 0 ? std::optional(conf) : std::nullopt;
}

}  // namespace

LinkStatus link_status(std::uint16_t port, bool physical) {
    rte_eth_link link{};
    if (rte_eth_link_get_nowait(port, &link) < 0) return {};
    const bool has_speed = physical && link.link_status != 0 && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN;
    return {.up = link.link_status != 0, .mbps = has_speed ? link.link_speed : 0};
}

LinkWatch::LinkWatch(std::uint16_t port, std::string device_name) : port_(port), device_name_(std::move(device_name)) {
    if (!device_name_.empty()) rte_dev_event_callback_register(device_name_.c_str(), note_removal, &unplugged_);
    was_up_ = link_status(port_, false).up;
}

LinkWatch::~LinkWatch() {
    if (!device_name_.empty()) rte_dev_event_callback_unregister(device_name_.c_str(), note_removal, &unplugged_);
}

void LinkWatch::poll() {
    if (Clock::now() >= next_) poll_now();
}

void LinkWatch::poll_now() {
    next_ = Clock::now() + kInterval;
    const bool is_up = !unplugged_ && link_status(port_, false).up;
    changes_ += is_up != was_up_ ? 1 : 0;
    was_up_ = is_up;
}

std::string name_of(FlowControl mode) {
    switch (mode) {
        case FlowControl::off: return "off";
        case FlowControl::receive: return "receive";
        case FlowControl::transmit: return "transmit";
        case FlowControl::full: return "full";
    }
    return {};
}

std::optional<FlowControl> flow_control_of(std::uint16_t port) {
    const auto conf = configured_flow_control(port);
    if (!conf) return std::nullopt;
    for (const FlowControl mode : kFlowControls) {
        if (dpdk_mode(mode) == conf->mode) return mode;
    }
    return std::nullopt;
}

bool set_flow_control(std::uint16_t port, FlowControl mode) {
    auto conf = configured_flow_control(port);
    if (!conf) return false;
    if (conf->mode == dpdk_mode(mode)) return true;
    conf->mode = dpdk_mode(mode);
    return rte_eth_dev_flow_ctrl_set(port, &*conf) == 0;
}

}  // namespace dutperf
