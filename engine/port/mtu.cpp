// SPDX-License-Identifier: Apache-2.0
#include "port/mtu.hpp"

#include <rte_errno.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "frame/layout.hpp"

namespace dutperf {

namespace {

std::uint32_t frame_size_of(std::size_t mtu) { return static_cast<std::uint32_t>(kIpv4Layout.frame_size_of(mtu)); }

std::string driver_of(const rte_eth_dev_info& info) {
    return info.driver_name != nullptr ? info.driver_name : "unknown";
}

[[noreturn]] void mtu_too_small(const PortOptions& options, const std::string& whose_mtu, std::uint32_t mtu,
                                const std::string& remedy) {
    frames_too_long(options,
                    whose_mtu + std::to_string(mtu) + ", frames of " + std::to_string(options.max_frame_size) +
                        " bytes need " + std::to_string(needed_mtu(options)) + ": " + remedy + "use frames of up to " +
                        std::to_string(frame_size_of(mtu)) + " bytes",
                    frame_size_of(mtu));
}

}  // namespace

std::uint16_t needed_mtu(const PortOptions& options) {
    return static_cast<std::uint16_t>(kIpv4Layout.mtu_of(options.max_frame_size));
}

std::uint32_t mtu_within(const PortOptions& options, const rte_eth_dev_info& info) {
    const std::uint32_t largest = std::min<std::uint32_t>(
                            info.max_mtu, static_cast<std::uint32_t>(kIpv4Layout.mtu_of(info.max_rx_pktlen))),
                        needed = needed_mtu(options);
    if (options.spec.does_dma() && needed > largest) {
        const std::uint32_t longest = frame_size_of(largest);
        frames_too_long(options,
                        "the driver " + driver_of(info) + " takes frames of " + std::to_string(longest) +
                            " bytes at most, not of " + std::to_string(options.max_frame_size),
                        longest);
    }
    return std::clamp<std::uint32_t>(needed, std::min<std::uint32_t>(RTE_ETHER_MIN_MTU, largest), largest);
}

void require_mtu(const PortOptions& options, std::uint16_t port, const rte_eth_dev_info& info) {
    if (!options.spec.does_dma()) return;
    const int status = rte_eth_dev_set_mtu(port, needed_mtu(options));
    std::uint16_t mtu = 0;
    rte_eth_dev_get_mtu(port, &mtu);
    if (status < 0 && status != -ENOTSUP)
        unavailable(options, std::string("setting the MTU failed: ") + rte_strerror(-status));
    if (mtu < needed_mtu(options))
        mtu_too_small(options, "the driver " + driver_of(info) + " keeps an MTU of ", mtu, "");
}

void require_mtu(const PortOptions& options, const KernelInterface& interface) {
    if (interface.mtu < needed_mtu(options)) {
        mtu_too_small(options, "the MTU of " + options.spec.argument + " is ", interface.mtu,
                      "raise it (ip link set " + options.spec.argument + " mtu " + std::to_string(needed_mtu(options)) +
                          "), or ");
    }
}

}  // namespace dutperf
