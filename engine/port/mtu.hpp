// SPDX-License-Identifier: Apache-2.0
// The longest frame that a port passes, as an MTU: asked of the driver, told to it, and read back. A frame size counts
// the FCS, an MTU neither that nor the Ethernet header.
#pragma once

#include <rte_ethdev.h>

#include <cstdint>

#include "port/kernel_interface.hpp"
#include "port/port_options.hpp"

namespace dutperf {

// What the device is to be configured with. Virtual drivers name limits that they do not enforce: they get the most
// that they admit. A card would cut or drop what is longer. Throws Error "port_unavailable".
std::uint32_t mtu_within(const PortOptions& options, const rte_eth_dev_info& info);

// That a device that is configured keeps an MTU for the longest frame: some drivers take what rte_eth_dev_configure()
// is told, some what they are told by a call of its own, some neither. Throws Error "port_unavailable".
void require_mtu(const PortOptions& options, std::uint16_t port, const rte_eth_dev_info& info);

// The same of an interface of the kernel, whose MTU is its owner's. Throws Error "port_unavailable".
void require_mtu(const PortOptions& options, const KernelInterface& interface);

}  // namespace dutperf
