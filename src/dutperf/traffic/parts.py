# SPDX-License-Identifier: Apache-2.0
"""The frames of a trial that are not plain UDP over IP: with headers of the user's choice, of several
sizes, or of several flows.

What the user leaves open is as in plain traffic: the IP version is that of the sending side, UDP ports
vary as the conditions say, IPv4 frames are 20 bytes shorter where any side has IPv6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from dutperf.frames import Endpoints, FrameError, Stack, Template, build, is_template
from dutperf.frames.values import By, number_of
from dutperf.model import MOST_KINDS, DescribedFrame, Direction, VaryingField
from dutperf.setup.conditions import AllConditions, Foreground
from dutperf.setup.configuration import ConfigError, Setup, Side
from dutperf.setup.planned_stream import PlannedStream
from dutperf.setup.size_mix import SizeMix
from dutperf.traffic.kind_order import LONGEST, KindOrder

PLAIN = "ip/udp"
"""The headers of plain traffic; ``ip`` is the IP version of the sending side."""

WITHOUT_NAME = "without extension headers"
"""Name of the stream beside the frames with a modifier's headers, where the configuration has no streams."""
FOREGROUND, NATIVE = "foreground", "native IPv6"
"""Names of the streams with a background."""
Ports = tuple[VaryingField, VaryingField]
"""Source and destination port."""


class TooManyKindsError(ValueError):
    """Frames of a direction that no order tells apart."""


@dataclass(frozen=True)
class Part:
    """A stream of a direction: frames with the same headers, of one size or several."""

    name: str
    text: str | None
    """Headers; None: plain ones."""
    sizes: SizeMix
    flows: int | None = None
    """None: what varies does so by frame."""
    share: int = 1
    """Of the direction's frames, in relation to those of the other parts."""
    native: bool = False
    """Native IPv6 in the background, whatever the version of the foreground is."""
    tunnel: Stack | None = None
    """Headers around all of it."""
    extension: str = ""
    """IPv6 extension headers behind the first IPv6 header; empty: none."""
    keeps_tags: bool = True
    """Whether its frames may arrive with the VLAN tags with which they are sent..."""
    number: int | None = None
    """Of its stream in the configuration; None: it is no stream's."""
    back: tuple[str | None, ...] = ()
    """... and headers of frames of the other direction, with whose tags they may arrive too."""

    def version(self, sender: Side) -> Literal[4, 6]:
        """IP version of its frames, where its headers leave it open."""
        return 6 if self.native else sender.version


def is_described(conditions: AllConditions, setup: Setup) -> bool:
    """Whether trials need described frames."""
    own = setup.has_sharing or any(side.frame is not None for side in setup.sides().values())
    chosen = conditions.frame or conditions.size_mix
    modified = conditions.flows is not None or conditions.modified_by.extension_headers is not None
    return own or bool(chosen) or modified or setup.tunnel_overhead > 0


def parts_of(setup: Setup, conditions: AllConditions, direction: Direction, frame_size: int) -> tuple[Part, ...]:
    """The streams of one direction. Raises ConfigError: the configuration has streams, but none in this direction."""
    plain = SizeMix.single(frame_size) if conditions.size_mix is None else SizeMix.parse(conditions.size_mix)
    sender, receiver = setup.ends(direction)
    if not setup.has_sharing:
        text, back = (side.frame or conditions.frame for side in (sender, receiver))
        part = Part(
            "",
            text,
            plain,
            conditions.flows,
            tunnel=sender.tunnel_headers,
            keeps_tags=text == back,
            back=() if text == back else (back,),
        )
        return _extended(_with_native((part,), conditions), sender, conditions)
    planned = setup.sharing(direction)
    if not planned:
        raise ConfigError(f"has none in the {direction} direction", "streams")
    back_again = tuple(one.frame for one in setup.streams if one.rate is None and one.directions != direction.value)
    parts = tuple(
        Part(
            one.name,
            one.frame,
            sizes_of(one, plain),
            one.flows,
            one.share or 1,
            tunnel=sender.tunnel_headers,
            number=setup.streams.index(one),
            back=() if one.directions == "both" else back_again,
        )
        for one in planned
    )
    return _extended(_with_native(parts, conditions), sender, conditions)


def _with_native(parts: tuple[Part, ...], conditions: AllConditions) -> tuple[Part, ...]:
    """The parts, and beside each the native IPv6 with the same headers (RFC 8219 5.3)."""
    chosen = conditions.foreground
    if chosen.native_percent == 0:
        return parts
    foreground = (replace(part, name=part.name or FOREGROUND, share=part.share * chosen.m) for part in parts)
    native = (
        replace(one, name=f"{one.name} {NATIVE}".strip(), share=one.share * (chosen.n - chosen.m), native=True)
        for one in (replace(part, tunnel=None) for part in parts)
    )
    return tuple(part for part in (*foreground, *native) if part.share)


def _ip_version(part: Part, sender: Side) -> int:
    """Of its outermost IP header; where it has none, or wrong headers, which are refused later, its sender's."""
    with suppress(FrameError):
        return headers_of(part.text, part.version(sender)).ip_version or part.version(sender)
    return part.version(sender)


def _extended(parts: tuple[Part, ...], sender: Side, conditions: AllConditions) -> tuple[Part, ...]:
    """The parts with the extension headers of the modifier, in as many of their frames as it says. Frames of IPv4
    have none."""
    chosen = conditions.modified_by.extension_headers
    if chosen is None:
        return parts
    of_ipv6 = [part for part in parts if _ip_version(part, sender) == 6]
    others = [replace(part, share=100 * part.share) for part in parts if _ip_version(part, sender) == 4]
    headed = [
        replace(
            part,
            extension=chosen.headers,
            share=part.share * chosen.percent,
            name=part.name if chosen.percent == 100 else f"{part.name} with {'+'.join(chosen.names)}".strip(),
        )
        for part in of_ipv6
    ]
    bare = [
        replace(part, share=part.share * (100 - chosen.percent), name=part.name or WITHOUT_NAME) for part in of_ipv6
    ]
    return (*others, *(part for part in bare if part.share), *headed)


def sizes_of(stream: PlannedStream, measured: SizeMix) -> SizeMix:
    """A frame in bytes has its own size."""
    if stream.sizes is not None:
        return stream.size_mix()
    if stream.frame is not None and is_template(stream.frame):
        return SizeMix.single(Template.parse(stream.frame).min_size)
    return measured


def fitted(parts: Sequence[Part], stacks: Sequence[Stack | Template], shorter: Mapping[int, int]) -> tuple[Part, ...]:
    """The parts with sizes that have room for their headers. ``shorter``: bytes by which frames of an IP
    version are shorter than their sizes say."""
    smallest = (stack.own.min_size + shorter.get(stack.own.ip_version or 0, 0) for stack in stacks)
    return tuple(replace(part, sizes=part.sizes.at_least(size)) for part, size in zip(parts, smallest, strict=True))


def stack_of(part: Part, version: Literal[4, 6], ports: Ports) -> Stack | Template:
    """The headers of a part's frames from a side of this IP version, with its tunnel, or its frame in bytes; see
    :func:`_own_stack_of`."""
    own = _own_stack_of(part, version, ports)
    if part.tunnel is None:
        return own
    if isinstance(own, Template):
        raise FrameError("a frame in bytes does not go into a tunnel; give it as headers")
    if own.headers[1:2] and own.headers[1].name == "vlan":
        raise FrameError("VLAN tags do not go into a tunnel: they are those of a cable")
    return own.within(part.tunnel)


def _own_stack_of(part: Part, version: Literal[4, 6], ports: Ports) -> Stack | Template:
    """The headers of a part's frames from a side of this IP version, or its
    frame in bytes. UDP ports that the text leaves open
    vary; of flows each has ports of its own."""
    if part.native and not _leaves_version_open(part.text):
        raise FrameError(
            "native IPv6 in the background has the headers of the foreground: they need ip, not ipv4 or ipv6, and no"
            f" addresses (they are {part.text})"
        )
    headers = headers_of(part.text, version)
    if isinstance(headers, Template):
        if part.extension:
            raise FrameError("extension headers do not go with a frame in bytes, which has its own")
        return headers
    stack = _with_extension(headers, part.extension)
    if not stack.ends_in_udp:
        return stack
    by, udp = varies_by(part, headers), stack.headers[-1]
    source, destination = (number_of(port, by) for port in ports)
    fields = {"source": source, "destination": destination, **udp.given}
    return Stack((*stack.headers[:-1], replace(udp, fields=tuple(fields.items()))))


def headed(part: Part, version: Literal[4, 6]) -> Stack | Template:
    """The headers of a part's frames from a side of this IP version, with those of the modifier, without a tunnel."""
    headers = headers_of(part.text, version)
    return headers if isinstance(headers, Template) else _with_extension(headers, part.extension)


def varies_by(part: Part, headers: Stack | Template) -> By:
    """What has values of its own in the fields that its ``headers`` leave open: a frame, or a flow that nothing in them
    tells from the others."""
    return "flow" if part.flows is not None and isinstance(headers, Stack) and not headers.varies_by_flow else "frame"


def open_ends(stack: Stack | Template) -> frozenset[str]:
    """Which of the addresses, ``source`` and ``destination``, the text leaves open."""
    stack = stack.own
    if isinstance(stack, Template) or stack.ip_version is None:
        return frozenset()
    outermost = next(header for header in stack.headers if header.name in ("ipv4", "ipv6"))
    return frozenset(("source", "destination")) - outermost.given.keys()


def _leaves_version_open(text: str | None) -> bool:
    """Whether headers are possible in both IP versions, without addresses of their own. True of a text that is none."""
    stacks: list[Stack | Template] = []
    for version in (4, 6):
        with suppress(FrameError):
            stacks.append(headers_of(text, version))
    differ = len({stack.ip_version for stack in stacks}) == 2
    return not stacks or (differ and all(len(open_ends(stack)) == 2 for stack in stacks))


def headers_of(text: str | None, version: Literal[4, 6]) -> Stack | Template:
    """What the text alone says."""
    if text is not None and is_template(text):
        return Template.parse(text)
    return _parsed(text or PLAIN, version)


def _with_extension(stack: Stack, extension: str) -> Stack:
    """``stack`` with extension headers behind its first IP header, which is IPv6. Where nothing can follow them, what
    followed is bytes to every reader, and left out."""
    if not extension:
        return stack
    if stack.ip_version != 6:
        raise FrameError(
            f"the modifier extension-header needs IPv6 as the first IP header, which {stack} does not have"
        )
    texts = [str(header) for header in stack.headers]
    first = next(number for number, header in enumerate(stack.headers) if header.name == "ipv6") + 1
    headed = Stack.parse("/".join((*texts[:first], extension)))
    if not headed.headers[-1].kind.carries:
        return headed
    try:
        return Stack.parse("/".join((str(headed), *texts[first:])))
    except FrameError as error:
        why = f"{error.name} {error.message.partition(';')[0]}"
        raise FrameError(f"the modifier extension-header does not go with {stack}: {why}") from None


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


def frames_of(
    part: Part,
    stack: Stack | Template,
    ends: Endpoints,
    direction: Direction,
    shorter: Mapping[int, int],
    *,
    alone: bool,
) -> tuple[DescribedFrame, ...]:
    """A :func:`fitted` part's frames of each size, to its ends. ``alone``: it is the only part. Raises FrameError: see
    :func:`dutperf.frames.build`."""
    excess = stack.overhead - shorter.get(stack.own.ip_version or 0, 0)
    return tuple(
        _named(build(stack, size + excess, ends, direction=direction, flows=part.flows or 1), part, alone=alone)
        for size in part.sizes.sizes
    )


def order_of(parts: Sequence[Part], foreground: Foreground) -> dict[str, Any]:
    """Members of a stream: the order of the kinds of frames that the parts have. Raises TooManyKindsError: more kinds
    of frames than can be told apart, or no order that repeats soon enough."""
    if len(parts) == 1 and not parts[0].sizes.random:
        return {"order": parts[0].sizes.kinds()} if len(parts[0].sizes.sizes) > 1 else {}
    kinds = [(part, size) for part in parts for size in part.sizes.sizes]
    shares = [Fraction(part.share * part.sizes.order.count(size), len(part.sizes.order)) for part, size in kinds]
    order = KindOrder(shares, [part.native for part, _ in kinds], foreground)
    if len(kinds) > MOST_KINDS or order.length > LONGEST:
        raise TooManyKindsError(
            f"too many kinds of frames at once: {len(kinds)}, whose shares are whole in {order.length:,} frames; at"
            f" most {MOST_KINDS} kinds and {LONGEST:,} frames are possible"
        )
    random = any(part.sizes.random for part in parts)
    return {"shares": order.weights} if random else {"order": order.kinds()}


def _named(frame: DescribedFrame, part: Part, *, alone: bool) -> DescribedFrame:
    """The frame with a name for a person, and with that of its stream unless it is ``alone``."""
    name = f"{part.name}, {frame.size} bytes" if part.name else f"{frame.size} bytes"
    return frame.model_copy(
        update={"name": name, "stream": None if alone else part.name, "native": part.native or None}
    )
