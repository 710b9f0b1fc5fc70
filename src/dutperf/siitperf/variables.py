# SPDX-License-Identifier: Apache-2.0
"""The environment variables ``DUTPERF_…``: settings that siitperf gets from DPDK or does not have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from pydantic import TypeAdapter, ValidationError

from dutperf.setup.configuration import PortSpec
from dutperf.siitperf.configuration import InputError, integer

Ports = tuple[str, str]
Gateways = tuple[IPv4Address | IPv6Address, ...]
START_DELAY_S = 2.0
"""siitperf's wait before its first frame (RFC 2544 section 23 (b))."""
_SEED = integer(0, 2**53 - 1)
_REPEATS = integer(0, 100)


@dataclass(frozen=True)
class Variables:
    ports: Ports | None = None
    """``DUTPERF_PORTS=left,right``; None: DPDK's ports 0 and 1."""
    netns: str | None = None
    """``DUTPERF_NETNS``: network namespace of the ports."""
    automatic_cores: bool = False
    """``DUTPERF_CORES=auto``: the engine chooses, not the file."""
    gateways: Gateways = ()
    """``DUTPERF_GATEWAYS``: the DUT's addresses, to resolve its MAC addresses if the file has none."""
    seed: int | None = None
    """``DUTPERF_SEED``: the same seed sends the same frames; None: a new one each time."""
    learning_rest_s: float = START_DELAY_S
    """``DUTPERF_LEARNING_REST``: seconds between ARP or NDP and the first frame."""
    repeats: int = 0
    """``DUTPERF_REPEAT``: maximum number of repeats of a trial that is not valid."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Variables:
        """From the environment; an empty variable counts as not set. Raises InputError: an invalid variable."""
        text = {
            name: environment.get(f"DUTPERF_{name}") or None
            for name in ("PORTS", "NETNS", "CORES", "GATEWAYS", "SEED", "LEARNING_REST", "REPEAT")
        }
        return cls(
            ports=_ports(text["PORTS"]),
            netns=_netns(text["NETNS"]),
            automatic_cores=_automatic(text["CORES"]),
            gateways=_gateways(text["GATEWAYS"]),
            seed=_number("SEED", _SEED, text["SEED"]),
            learning_rest_s=_seconds(text["LEARNING_REST"]),
            repeats=_number("REPEAT", _REPEATS, text["REPEAT"]) or 0,
        )


def _ports(text: str | None) -> Ports | None:
    """Both ports. A ``vdev:`` spec has commas too: the separator is the comma with a valid port on both
    sides."""
    if text is None:
        return None
    commas = [match.start() for match in re.finditer(",", text)]
    halves = [(text[:at].strip(), text[at + 1 :].strip()) for at in commas]
    pairs = [pair for pair in halves if all(map(_is_port, pair))]
    if len(pairs) != 1:
        raise InputError(
            "DUTPERF_PORTS",
            f"'{text}' is not LEFT,RIGHT, each a PCI address, an interface's name, af_packet:INTERFACE,"
            " af_xdp:INTERFACE, virtio_user:/SOCKET, vhost_user:/SOCKET, memif:/SOCKET, ring, null or vdev:DEVARGS",
        )
    return pairs[0]


def _is_port(text: str) -> bool:
    try:
        TypeAdapter(PortSpec).validate_python(text)
    except ValidationError:
        return False
    return True


def _netns(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(r"[^\s/]+", text):
        raise InputError("DUTPERF_NETNS", f"'{text}' is not the name of a network namespace")
    return text


def _automatic(text: str | None) -> bool:
    if text not in (None, "auto"):
        raise InputError("DUTPERF_CORES", f"may only be auto, not '{text}'; core numbers are in siitperf.conf")
    return text is not None


def _gateways(text: str | None) -> Gateways:
    try:
        return tuple(ip_address(word.strip()) for word in (text or "").split(",") if word.strip())
    except ValueError as error:
        raise InputError("DUTPERF_GATEWAYS", str(error)) from None


def _number(name: str, read: Callable[[str], int], text: str | None) -> int | None:
    try:
        return None if text is None else read(text)
    except ValueError as error:
        raise InputError(f"DUTPERF_{name}", str(error)) from None


def _seconds(text: str | None) -> float:
    if text is None:
        return START_DELAY_S
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) or float(text) > 60:
        raise InputError("DUTPERF_LEARNING_REST", f"should be 0 to 60 seconds, not '{text}'")
    return float(text)
