# SPDX-License-Identifier: Apache-2.0
"""NPTv6 (RFC 6296; RFC 8219 section 11) by nftables: the left's prefix 2001:2::/56 is 2001:2:0:9000::/56 on the right.

It is stateless and leaves the checksums of the packets alone: the difference of the prefixes, 0x9000, is compensated in
the next word of the address by 0xffff - 0x9000 (section 3.5: the first 16 bits behind a /64, as the prefixes are
longer than /48). So the left's 2001:2:0:R::2 is 2001:2:0:90RR:6fff::2. Only addresses in which these 16 bits are 0 are
translated, as nftables cannot add; packets of others are dropped. Packets in ICMP errors are not translated."""

from __future__ import annotations

from typing import Any

from dutperf.lab import kernel_router
from dutperf.lab.addresses import LEFT, RIGHT, tester
from dutperf.lab.definition import Lab, ResetOptions
from dutperf.lab.netns import DUT_PORTS
from dutperf.lab.site import Site

OUTSIDE_NET, OUTSIDE = "2001:2:0:9000::/56", "2001:2:0:9000:6fff::2"
OUTSIDE_BYTE, NEUTRAL = 0x90, 0xFFFF - 0x9000
SOURCE, DESTINATION = 64, 192
"""Places of the addresses in the header, in bits."""


def translation(outside: str) -> str:
    """nftables ruleset; ``outside`` is the port on the right."""

    def words(address: int) -> tuple[str, str]:
        return f"@nh,{address + 48},8", f"@nh,{address + 64},16"

    source, destination = words(SOURCE), words(DESTINATION)
    return f"""table ip6 translation {{
  chain inward {{
    type filter hook prerouting priority raw;
    iifname "{outside}" ip6 daddr {OUTSIDE_NET} {destination[1]} != {NEUTRAL:#x} drop
    iifname "{outside}" ip6 daddr {OUTSIDE_NET} {destination[0]} set 0 {destination[1]} set 0
  }}
  chain outward {{
    type filter hook postrouting priority srcnat;
    oifname "{outside}" ip6 saddr {LEFT.net6} {source[1]} != 0 drop
    oifname "{outside}" ip6 saddr {LEFT.net6} {source[0]} set {OUTSIDE_BYTE:#x} {source[1]} set {NEUTRAL:#x}
  }}
}}
"""


def build(site: Site, options: ResetOptions) -> dict[str, Any]:
    site.add_router(options.mtu)
    left, right = DUT_PORTS
    site.dut.ip(*LEFT.ip6(left), *RIGHT.ip6(right))
    site.dut.nft(translation(right))
    return {
        **tester([site.dut_core], ({"version": 6, **LEFT.ipv6, "seen_as": OUTSIDE}, {"version": 6, **RIGHT.ipv6})),
        "dut": {
            "name": "Linux NPTv6",
            **kernel_router.of_this_kernel([site.dut_core]),
            "commands": {"reset": kernel_router.reset(site.dut, options.reset_s)},
        },
    }


LAB = Lab(
    name="nptv6",
    summary="the Linux kernel as an NPTv6 gateway: it translates the left's IPv6 prefix without state",
    options=ResetOptions,
    programs={},
    build=build,
    needs_ipv6=True,
)
