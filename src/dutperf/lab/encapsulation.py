# SPDX-License-Identifier: Apache-2.0
"""Two Linux kernels in a row with a tunnel between them (the dual DUT test setup of RFC 8219 section 4.2): each
encapsulates what comes from the tester, the other one decapsulates it. Or the left one alone, and the tester is the
tunnel's other end (the single DUT test setup). :mod:`dutperf.lab.tunnels` has the kinds of tunnels."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from dutperf.lab import kernel_router
from dutperf.lab.addresses import routed_sides
from dutperf.lab.definition import Lab, ResetOptions
from dutperf.lab.netns import DUT_PORTS
from dutperf.lab.site import Site
from dutperf.lab.tunnels import ENDS, INSIDE, KINDS, Encapsulation, End

COUNTERS = """
table netdev forwarded {{
  counter forward_in {{ }}
  counter forward_out {{ }}
  counter reverse_in {{ }}
  counter reverse_out {{ }}
  chain from_left {{
    type filter hook ingress device "{left}" priority 0;
    {forward_in}
  }}
  chain to_right {{
    type filter hook egress device "{right}" priority 0;
    {forward_out}
  }}
  chain from_right {{
    type filter hook ingress device "{right}" priority 0;
    {reverse_in}
  }}
  chain to_left {{
    type filter hook egress device "{left}" priority 0;
    {reverse_out}
  }}
}}
"""
"""Test packets at both ports of a DUT, in their inner form on one side and in their outer one on the other."""


class TunnelOptions(ResetOptions):
    """One DUT or two."""

    single: Annotated[bool, Field(description="the left end alone, the tester's right port is the other end")] = False


def build(kind: Encapsulation, site: Site, options: TunnelOptions) -> dict[str, Any]:
    """Build the DUTs; returns the tester's configuration."""
    return build_one(kind, site, options) if options.single else build_two(kind, site, options)


def build_one(kind: Encapsulation, site: Site, options: TunnelOptions) -> dict[str, Any]:
    """The left end alone."""
    near, far = ENDS
    site.add_router(options.mtu + kind.overhead)
    dut = set_up(kind, site, near, options)
    left, right = routed_sides(4)
    link = {"ipv6": f"{far.address}/64", "gateway6": near.address, "tunnel": kind.headers}
    return {
        "engine": {"dut_cores": [site.dut_core]},
        "left": {"port": "tl", **left},
        "right": {"port": "tr", "version": 4, "ipv4": right["ipv4"], **link},
        "dut": dut,
    }


def build_two(kind: Encapsulation, site: Site, options: TunnelOptions) -> dict[str, Any]:
    """Both ends, with frames of their own between them."""
    both = site.add_routers(options.mtu, options.mtu + kind.overhead)
    left, right = routed_sides(4)
    return {
        "engine": {"dut_cores": sorted({one.dut_core for one in both})},
        "left": {"port": "tl", **left},
        "right": {"port": "tr", **right},
        "dut": [set_up(kind, one, end, options) for one, end in zip(both, ENDS, strict=True)],
        "between": {"overhead": kind.overhead},
    }


def _counters(kind: Encapsulation, end: End) -> str:
    matches = {end.inside: INSIDE, end.outside: kind.outside}
    left, right = DUT_PORTS
    ports = {"forward_in": left, "forward_out": right, "reverse_in": right, "reverse_out": left}
    rules = {
        counter: "\n    ".join(f"{match} counter name {counter}" for match in matches[port])
        for counter, port in ports.items()
    }
    return COUNTERS.format(left=left, right=right, **rules)


def set_up(kind: Encapsulation, site: Site, end: End, options: TunnelOptions) -> dict[str, Any]:
    """Make a router an end of the tunnel; returns what the configuration says of it."""
    site.dut.ip(
        *end.own.ip4(end.inside), *end.own.ip6(end.inside), f"addr add {end.address}/64 dev {end.outside} nodad"
    )
    more = kind.set_up(site.dut, end, options)
    site.dut.nft(_counters(kind, end))
    release = platform.release()
    commands: Mapping[str, list[str]] = {
        "reset": kernel_router.reset(site.dut, options.reset_s),
        "losses": kernel_router.in_without_out(site.dut, "not_forwarded"),
    }
    return {
        "name": kind.names[end.number - 1],
        "version": release,
        "kernel": release,
        "program": kind.program,
        "cores": [site.dut_core],
        "commands": commands,
        **more,
    }


LABS = tuple(
    Lab(
        name=name,
        summary=f"two Linux routers in a row with {kind.program} between them: IPv4 on both sides",
        options=TunnelOptions,
        programs={},
        build=partial(build, kind),
        needs_ipv6=True,
    )
    for name, kind in KINDS.items()
)
