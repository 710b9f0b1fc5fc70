# SPDX-License-Identifier: Apache-2.0
"""The frames of a trial that are not plain UDP over IP: with headers of the user's choice, of several
sizes, or of several flows.

What the user leaves open is as in plain traffic: the IP version is that of the sending side, UDP ports
vary as the conditions say, IPv4 frames are 20 bytes shorter where any side has IPv6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm
from typing import Any, Literal

from dutperf.frames import Endpoints, FrameError, Stack, build
from dutperf.model import Direction, FieldMode, VaryingField
from dutperf.setup.conditions import Conditions
from dutperf.setup.configuration import ConfigError, ParameterError, Setup
from dutperf.setup.size_mix import LONGEST_ORDER, MOST_SIZES, SizeMix, spread

PLAIN = "ip/udp"
"""The headers of plain traffic; ``ip`` is the IP version of the sending side."""
Ports = tuple[VaryingField, VaryingField]
"""Source and destination port."""


@dataclass(frozen=True)
class Part:
    """A stream of a direction: frames with the same headers, of one size or several."""

    name: str
    text: str | None
    """Headers; None: plain ones."""
    sizes: SizeMix
    flows: int = 1
    share: int = 1
    """Of the direction's frames, in relation to those of the other parts."""


def is_described(conditions: Conditions, setup: Setup) -> bool:
    """Whether trials need described frames."""
    own = bool(setup.streams) or any(side.frame is not None for side in setup.sides().values())
    return own or bool(conditions.frame or conditions.size_mix or conditions.flows > 1)


def parts_of(setup: Setup, conditions: Conditions, direction: Direction, frame_size: int) -> tuple[Part, ...]:
    """The streams of one direction.

    Raises:
        ConfigError: the configuration has streams, but none in this direction.
    """
    plain = SizeMix.single(frame_size) if conditions.size_mix is None else SizeMix.parse(conditions.size_mix)
    if not setup.streams:
        sender = setup.left if direction is Direction.FORWARD else setup.right
        return (Part("", sender.frame or conditions.frame, plain, conditions.flows),)
    planned = [one for one in setup.streams if one.directions in ("both", direction.value)]
    if not planned:
        raise ConfigError(f"has none in the {direction} direction", "streams")
    return tuple(
        Part(one.name, one.frame, plain if one.sizes is None else one.size_mix(), one.flows, one.share)
        for one in planned
    )


def fitted(parts: Sequence[Part], stacks: Sequence[Stack], shorter: Mapping[int, int]) -> tuple[Part, ...]:
    """The parts with sizes that have room for their headers. ``shorter``: bytes by which frames of an IP
    version are shorter than their sizes say."""
    smallest = (stack.min_size + shorter.get(stack.ip_version or 0, 0) for stack in stacks)
    return tuple(replace(part, sizes=part.sizes.at_least(size)) for part, size in zip(parts, smallest, strict=True))


def stack_of(text: str | None, version: Literal[4, 6], ports: Ports, flows: int) -> Stack:
    """The headers of frames from a side of this IP version. UDP ports that the text leaves open vary;
    with several flows each has ports of its own.

    Raises:
        FrameError: see :meth:`dutperf.frames.Stack.parse`.
    """
    stack = _parsed(text or PLAIN, version)
    by_flow = flows > 1 and not stack.varies_by_flow
    first_udp = next((i for i, header in enumerate(stack.headers) if header.name == "udp"), None)
    if first_udp is None or len(stack.headers) > first_udp + 1:
        return stack
    udp = stack.headers[-1]
    [plain] = Stack.parse("/".join(("ipv4", _udp(ports, by_flow=by_flow)))).headers[-1:]
    return Stack((*stack.headers[:-1], replace(udp, fields=tuple({**plain.given, **udp.given}.items()))))


_IP = re.compile(r"\bip\b(?=\s*(?:[(/]|$))")


def _parsed(text: str, version: int) -> Stack:
    """The stack of a text in which ``ip`` is the header of this IP version."""
    try:
        return Stack.parse(_IP.sub(f"ipv{version}", text))
    except FrameError as error:
        if error.position is None:
            raise
        longer = len("v4")
        places = (match.end() + longer * number for number, match in enumerate(_IP.finditer(text), 1))
        before = sum(1 for end in places if end < error.position)
        raise FrameError(
            error.message,
            header=error.header,
            name=error.name,
            field=error.field,
            position=error.position - longer * before,
        ) from None


def members(
    parts: Sequence[Part],
    stacks: Sequence[Stack],
    endpoints: Endpoints,
    direction: Direction,
    shorter: Mapping[int, int],
) -> dict[str, Any]:
    """Members of a stream: each :func:`fitted` part's frames of each size, and their order.

    Raises:
        FrameError: see :func:`dutperf.frames.build`.
        ConfigError: more kinds of frames than can be told apart.
    """
    frames = tuple(
        build(stack, size - shorter.get(stack.ip_version or 0, 0), endpoints, direction=direction, flows=part.flows)
        for part, stack in zip(parts, stacks, strict=True)
        for size in part.sizes.sizes
    )
    if len(parts) == 1 and not parts[0].sizes.random:
        return {"frames": frames} | ({"order": parts[0].sizes.kinds()} if len(frames) > 1 else {})
    weights = _whole(
        [
            Fraction(part.share * part.sizes.order.count(size), len(part.sizes.order))
            for part in parts
            for size in part.sizes.sizes
        ]
    )
    if len(frames) > MOST_SIZES or sum(weights) > LONGEST_ORDER:
        raise ConfigError(
            f"are too many: {len(frames)} kinds of frames, whose shares are whole in {sum(weights)} frames; at most"
            f" {MOST_SIZES} kinds and {LONGEST_ORDER} frames are possible",
            "streams",
        )
    random = any(part.sizes.random for part in parts)
    return {"frames": frames} | ({"shares": weights} if random else {"order": spread(weights)})


def names(parts: Sequence[Part], sizes: Sequence[int]) -> tuple[str, ...]:
    """A name for each kind of frame of :func:`fitted` parts, with its size in bytes."""
    of_parts = [part.name for part in parts for _ in part.sizes.sizes]
    return tuple(
        f"{name}, {size} bytes" if name else f"{size} bytes" for name, size in zip(of_parts, sizes, strict=True)
    )


def _whole(weights: Sequence[Fraction]) -> tuple[int, ...]:
    """The same relations in the smallest whole numbers."""
    by = lcm(*(weight.denominator for weight in weights))
    whole = [int(weight * by) for weight in weights]
    return tuple(number // gcd(*whole) for number in whole)


def refused(error: FrameError, side: str | None) -> ParameterError | ConfigError:
    """An error in the headers as one of the option, or of a side's configuration."""
    return ParameterError(str(error), "frame") if side is None else ConfigError(str(error), f"{side}.frame")


def _udp(ports: Ports, *, by_flow: bool) -> str:
    source, destination = (_number(port, by_flow=by_flow) for port in ports)
    return f"udp(source={source},destination={destination})"


def _number(port: VaryingField, *, by_flow: bool) -> str:
    """Ports of flows are different as far as the range goes; a fixed port stays."""
    if port.min == port.max or port.mode is FieldMode.FIXED:
        return str(port.min)
    names = {FieldMode.INCREASING: "increment", FieldMode.DECREASING: "decrement", FieldMode.RANDOM: "random"}
    first, last = (port.max, port.min) if port.mode is FieldMode.DECREASING else (port.min, port.max)
    return f"{names[port.mode]}({first},{last}{',by=flow' if by_flow else ''})"
