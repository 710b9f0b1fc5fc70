# SPDX-License-Identifier: Apache-2.0
"""Two TAYGAs in a row (464XLAT, RFC 6877; the dual DUT test setup of RFC 8219 section 4.2): the CLAT translates the
left's IPv4 to IPv6, the PLAT translates it back to IPv4 on the right. Both are stateless (RFC 7915). Or one of them
alone (the single DUT test setup).

Between them the left's 198.18.R.2 is 2001:2:0:3000::RR02, by a mapping of the whole network (RFC 7757), and the right's
198.19.R.2 is its address in the prefix of NAT64 (RFC 6052). The kernels of both route native IPv6 (background traffic)
without TAYGA.
"""

from __future__ import annotations

from typing import Any

from dutperf.lab import link_counters
from dutperf.lab.addresses import LEFT, LEFT_BEHIND_CLAT, NAT64_PREFIX, RIGHT, RIGHT_BEHIND_NAT64, routed_sides, tester
from dutperf.lab.definition import EndOptions, Lab, ResetOptions
from dutperf.lab.netns import DUT_PORTS
from dutperf.lab.site import Site
from dutperf.lab.tayga_siit import TUN, head, identity, reset, start_tayga
from dutperf.model import IPV6_HEADER_EXCESS

LEFT_BETWEEN = "2001:2:0:3000::2"
"""The tester's left side, 198.18.0.2, behind the CLAT."""
CLAT_ADDRESS, PLAT_ADDRESS = "2001:2:0:4000::1", "2001:2:0:4000::2"
"""Of the link between both."""
OWN_IPV4 = "198.19.255.254"
OWN_IPV6 = {"CLAT": "2001:2:0:2000::1", "PLAT": "2001:2:0:2000::2"}
"""The TAYGAs' own addresses, the sources of their ICMP errors; no test frame has them."""


def build(site: Site, options: EndOptions) -> dict[str, Any]:
    if options.end != "both":
        return build_one(site, options)
    clat, plat = site.add_routers(options.mtu, options.mtu + IPV6_HEADER_EXCESS)
    return {
        **tester({clat.dut_core, plat.dut_core}, routed_sides(4)),
        "dut": [start_clat(clat, options), start_plat(plat, options)],
        "between": {"overhead": IPV6_HEADER_EXCESS, "passed": link_counters.passed(clat.dut, plat.dut)},
    }


def build_one(site: Site, options: EndOptions) -> dict[str, Any]:
    """One DUT, and the tester in the place of the other one."""
    site.add_router(options.mtu + IPV6_HEADER_EXCESS)
    left, right = routed_sides(4)
    if options.end == "left":
        left |= {"seen_as": LEFT_BETWEEN}
        right = in_place_of(PLAT_ADDRESS, CLAT_ADDRESS, RIGHT_BEHIND_NAT64, RIGHT.tester4)
        return {**tester([site.dut_core], (left, right)), "dut": start_clat(site, options)}
    left = in_place_of(CLAT_ADDRESS, PLAT_ADDRESS, LEFT_BETWEEN, LEFT.tester4)
    right |= {"seen_as": RIGHT_BEHIND_NAT64}
    return {**tester([site.dut_core], (left, right)), "dut": start_plat(site, options)}


def in_place_of(other: str, dut: str, host: str, seen_as: str) -> dict[str, object]:
    """The tester's side beside one DUT, as a host behind the ``other`` one, for whose address it answers too.
    Translated addresses have the network's number where the tester does not vary it: there is one network."""
    here = {"ipv6": f"{host}/48", "gateway6": dut, "answers_for": [other], "networks": 1}
    return {"version": 6, **here, "seen_as": seen_as}


def start_clat(clat: Site, options: ResetOptions) -> dict[str, Any]:
    """Make a router the CLAT; returns what the configuration says of it."""
    near, far = DUT_PORTS
    clat.dut.ip(*LEFT.ip4(near), *LEFT.ip6(near), f"addr add {CLAT_ADDRESS}/64 dev {far} nodad")
    clat.dut.ip(*(f"route add {net} via {PLAT_ADDRESS} dev {far}" for net in (NAT64_PREFIX, RIGHT.net6)))
    return translator("CLAT", clat, options, (RIGHT.net4, LEFT_BEHIND_CLAT))


def start_plat(plat: Site, options: ResetOptions) -> dict[str, Any]:
    """Make a router the PLAT; returns what the configuration says of it."""
    near, far = DUT_PORTS
    plat.dut.ip(*RIGHT.ip4(far), *RIGHT.ip6(far), f"addr add {PLAT_ADDRESS}/64 dev {near} nodad")
    plat.dut.ip(*(f"route add {net} via {CLAT_ADDRESS} dev {near}" for net in (LEFT_BEHIND_CLAT, LEFT.net6)))
    return translator("PLAT", plat, options, (LEFT.net4, NAT64_PREFIX))


def translator(name: str, site: Site, options: ResetOptions, translated: tuple[str, str]) -> dict[str, Any]:
    """Start the TAYGA that translates what is sent to the networks ``translated``; returns what the configuration says
    of it."""
    own = OWN_IPV6[name]
    lines = [*head(site.directory, OWN_IPV4, own), f"prefix {NAT64_PREFIX}", f"map {LEFT.net4} {LEFT_BEHIND_CLAT}"]
    version = start_tayga(site, options.mtu + IPV6_HEADER_EXCESS, "\n".join([*lines, ""]))
    site.dut.ip(*(f"route add {net} dev {TUN}" for net in (*translated, f"{own}/128")))
    return {
        **identity(site, version),
        "name": name,
        "program": "TAYGA",
        "commands": {"reset": reset(site, options.reset_s)},
    }


LAB = Lab(
    name="tayga-464xlat",
    summary="two TAYGAs in a row (464XLAT): IPv4 on both sides, IPv6 between them",
    options=EndOptions,
    programs={"tayga": "tayga"},
    build=build,
    needs_ipv6=True,
)
