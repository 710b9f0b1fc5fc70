# SPDX-License-Identifier: Apache-2.0
"""Addresses of frames that vary must leave out those to and from which no router forwards: its own, the tester's at
another port, and those of the link that no host has (RFC 1122 3.2.1.3, RFC 4291 2.6.1). Else it would lose these
frames in every trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from dutperf.model import Trial, address_range
from dutperf.model.address_range import Address, AddressRange
from dutperf.model.described_frame import DescribedFrame
from dutperf.setup.configuration import Setup, Side
from dutperf.traffic.combinations import Where, headers_of

_ENDS = ("source", "destination")


def check(setup: Setup, trial: Trial, networks: Callable[[Side], int]) -> None:
    """Check the addresses that vary. ``networks``: behind a side. Raises ConfigError: some of them are for nobody
    behind the DUT. It names them, and others to choose."""
    for direction, stream in trial.streams().items():
        exact = stream.model_copy(update={"frames": tuple(filter(_is_range, stream.frames))})
        for name, end, ranges in zip(
            direction.ports, _ENDS, (address_range.sources(exact), address_range.destinations(exact)), strict=True
        ):
            side = setup.sides()[name]
            changed = _behind_translator(side, networks(side)) if end == "destination" else ()
            for one in (*ranges, *changed):
                if side.has_gateway and one.first != one.last:
                    of_headers = bool(stream.frames) and side.varying_address is None and networks(side) == 1
                    where = headers_of(setup, direction.ports[0]) if of_headers else varied_by(setup, name)
                    _check_range(setup, name, one, where)


def _is_range(frame: DescribedFrame) -> bool:
    """Whether a frame's fields certainly have all values between the first and the last one: not those of a list, of
    flows that are fewer, or drawn for each flow."""
    return all(
        field.values is None
        and int(field.step or 1) == 1
        and (field.by == "frame" or (field.mode != "random" and frame.flows >= int(field.count or 0)))
        for field in frame.fields
    )


def _behind_translator(side: Side, networks: int) -> Iterator[AddressRange]:
    for own in (side.ipv4, side.ipv6):
        if own is not None:
            yield address_range.varying(own.ip, side.varying_address)
            yield address_range.in_networks(own.ip, networks)


def _check_range(setup: Setup, name: str, one: AddressRange, where: Where) -> None:
    nobodys = {address: why for address, why in _nobodys(setup, name, one.version) if one.has(address)}
    if not nobodys:
        return
    said = ", ".join(f"{address} ({why})" for address, why in sorted(nobodys.items(), key=lambda item: int(item[0])))
    edges = sorted({one.number(address) for address in nobodys} | {one.lowest - 1, one.highest + 1})
    low, high = max(((a + 1, b - 1) for a, b in pairwise(edges)), key=lambda gap: gap[1] - gap[0])
    range_ = f"min {low}, max {high}" if where.key.endswith("varying_address") else f"{one.at(low)} to {one.at(high)}"
    choose = f": choose a range without them, for example {range_}" if low <= high else ""
    text = f"the addresses {one.first} to {one.last} include some to which no router forwards frames: {said}{choose}"
    raise where.refused(text)


def _nobodys(setup: Setup, name: str, version: int) -> Iterator[tuple[Address, str]]:
    """Addresses that no host behind ``name`` has, and why."""
    for other, side in setup.sides().items():
        if (gateway := side.gateway(version)) is not None:
            yield gateway, "the DUT's own"
        own = side.address(version)
        if own is not None and other != name and side.has_gateway:
            yield own.ip, f"the tester's own at the {other} port"
    own = setup.sides()[name].address(version)
    if own is None or own.network.max_prefixlen - own.network.prefixlen < 2:
        return
    yield own.network.network_address, f"of the network {own.network} itself"
    if version == 4:
        yield own.network.broadcast_address, f"the broadcast address of {own.network}"


def varied_by(setup: Setup, name: str) -> Where:
    """What says how the addresses of a side vary."""
    side = setup.sides()[name]
    if side.varying_address is not None:
        return Where(f"{setup.key_of(name)}.varying_address", is_condition=False)
    return Where("networks") if side.networks is None else Where(f"{setup.key_of(name)}.networks", is_condition=False)
