// SPDX-License-Identifier: Apache-2.0
// The longest frame that a port passes, as an MTU: queried from the driver, set, and read back. A frame size includes
// the FCS; an MTU includes neither the FCS nor the Ethernet header.
#pragma once

#include <rte_ethdev.h>

#include <cstdint>

#include "port/kernel_interface.hpp"
#include "port/port_options.hpp"

namespace dutperf {

// The MTU for the longest frame of the options.
std::uint16_t needed_mtu(const PortOptions& options);

// The MTU to configure the device with. Virtual drivers report limits that they do not enforce: they are configured
// with their limit. A card would truncate or drop longer frames. Throws Error "port_unavailable".
std::uint32_t mtu_within(const PortOptions& options, const rte_eth_dev_info& info);

// Requires that a configured device uses an MTU for the longest frame. Some drivers take it from
// rte_eth_dev_configure(), some from rte_eth_dev_set_mtu(), some from neither. Throws Error "port_unavailable".
void require_mtu(const PortOptions& options, std::uint16_t port, const rte_eth_dev_info& info);

// The same for a kernel interface, whose MTU is only checked, never set. Throws Error "port_unavailable".
void require_mtu(const PortOptions& options, const KernelInterface& interface);

}  // namespace dutperf
