# SPDX-License-Identifier: Apache-2.0
"""Outer headers of the frames on one side of a DUT that encapsulates and decapsulates (the single DUT test setup of RFC
8219 section 4.2 for encapsulation): ``ipv6(destination=2001:2::1)``, ``ipv6(destination=2001:2::1)/udp/vxlan/eth``."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from ipaddress import IPv4Interface, IPv6Interface
from typing import Annotated, Literal

from pydantic import AfterValidator

from dutperf.frames import FrameError, Stack
from dutperf.frames.stack import Header


def _is_tunnel(text: str) -> str:
    try:
        stack = Stack.parse(text)
    except FrameError as error:
        raise ValueError(str(error)) from None
    outer = stack.headers[1] if len(stack.headers) > 1 else stack.headers[0]
    if outer.name not in ("ipv4", "ipv6") or stack.headers[0].fields:
        raise ValueError("should begin with ipv4 or ipv6: it is between Ethernet and the headers of the frames")
    if "destination" not in outer.given:
        raise ValueError(f"needs the address of the tunnel's end at the DUT: {outer.name}(destination=…)")
    if not {"ipv4", "ipv6"} & set(stack.headers[-1].kind.carries):
        raise ValueError(f"ends with {stack.headers[-1].name}, which carries no IP packet")
    return text


Tunnel = Annotated[str, AfterValidator(_is_tunnel)]


def version_of(tunnel: str) -> Literal[4, 6]:
    """IP version of the outermost header."""
    return 4 if _parsed(tunnel).ip_version == 4 else 6


@lru_cache(maxsize=16)
def stack_of(tunnel: str, own: IPv4Interface | IPv6Interface) -> Stack:
    """The headers, which come from the address ``own`` unless they say otherwise."""
    ethernet, outer, *others = _parsed(tunnel).headers
    return Stack((ethernet, _from(outer, own), *others))


def _from(outer: Header, own: IPv4Interface | IPv6Interface) -> Header:
    given = {"source": int(own.ip), **outer.given}
    return replace(outer, fields=tuple((name, given[name]) for name in outer.kind.known if name in given))


def overhead_of(tunnel: str) -> int:
    """Bytes by which the frames are longer."""
    return _parsed(tunnel).size_behind_ethernet


@lru_cache(maxsize=16)
def _parsed(tunnel: str) -> Stack:
    """Sides are asked for their tunnel in each trial."""
    return Stack.parse(tunnel)
