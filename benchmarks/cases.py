# SPDX-License-Identifier: Apache-2.0
"""What is timed: compositions of traffic on ports that cost nothing themselves (null), in memory
(ring), and on a cable of the kernel's (veth)."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from math import ceil
from typing import Any, Literal

from dutperf.frames import Endpoints, Stack, build
from dutperf.model import (
    Connections,
    ConnectionUse,
    DescribedField,
    DescribedFrame,
    Direction,
    FieldMode,
    FrameSpec,
    Stamping,
    Stream,
    Tagged,
    Trial,
    VaryingAddress,
    VaryingField,
)
from dutperf.model.described_frame import ConnectionPart
from dutperf.setup.conditions import RFC4814_DESTINATION_PORTS, RFC4814_SOURCE_PORTS
from dutperf.setup.size_mix import SizeMix
from dutperf.traffic.connections import MOST_SOURCES

UDP_SIZE, PORT_BITS = 8, 16
TRIAL_S = 0.3
"""Sending time of a trial."""
MOST_FPS = 1_000_000_000
"""More than any core can send: what counts is how many leave in the sending time."""
TAGS = 1_000
MOST_OPENED_FPS = 200_000_000
"""The same where connections are opened: each frame needs one of its own."""
OPENING_FPS = 2_000_000
"""Rate of a preliminary phase that is not timed."""

Ports = Literal["null", "ring", "af_packet", "af_xdp"]


@dataclass(frozen=True)
class Case:
    """One composition. ``counts`` says which frames are the result."""

    name: str
    ports: Ports = "null"
    version: Literal[4, 6] = 4
    mode: FieldMode = FieldMode.RANDOM
    stream: dict[str, Any] = field(default_factory=dict)
    stamping: Stamping = Stamping.NONE
    cores: int = 1
    queues: int = 1
    """Of each port; where there are several, each core sends and receives on a queue of its own."""
    rate_fps: int = MOST_FPS
    counts: Literal["sent", "received"] = "sent"
    headers: str | None = None
    """Of described frames, with their mix of sizes and number of flows; None: plain frames."""
    sizes: str | int = 64
    flows: int = 1
    by_flow: bool = False
    both_directions: bool = False
    """What counts is the sum of the two."""
    connections: int | None = None
    """Stateful traffic on so many connections."""
    use: Literal[ConnectionUse.OPEN, ConnectionUse.TRAFFIC] = ConnectionUse.TRAFFIC
    """Which phase is timed: the one that opens them, or the one after it."""
    goal: float | None = None
    """The ratio that is aimed at, to the reference."""
    streams: int = 1
    """With as many rates of their own, on the path and beside it."""
    beside: str | None = None
    """The case of the same traffic without connections, in one stream, or without the tag."""
    beside_goal: float | None = None
    """The ratio to it that is aimed at."""

    @property
    def between_cores(self) -> bool:
        """Whether one core sends what the other receives."""
        return self.cores > self.queues

    def trial(self, number: int, duration_s: float = TRIAL_S) -> Trial:
        """The trial that is timed."""
        rate_fps = self.rate_fps
        if self.connections is not None and self.use is ConnectionUse.OPEN:
            rate_fps, duration_s = MOST_OPENED_FPS, self.connections / MOST_OPENED_FPS
        return self._trial(number, duration_s, rate_fps, self.use)

    def opening(self, number: int) -> Trial | None:
        """The preliminary phase before that trial; None: there is none."""
        if self.connections is None or self.use is ConnectionUse.OPEN:
            return None
        return self._trial(number, self.connections / OPENING_FPS, OPENING_FPS, ConnectionUse.OPEN)

    def _trial(self, number: int, duration_s: float, rate_fps: int, use: ConnectionUse) -> Trial:
        both = self.both_directions and not (self.connections is not None and use is ConnectionUse.OPEN)
        tagged = Tagged(count=TAGS, after_ns=0) if self.stamping is Stamping.TAGGED else None
        return Trial(
            trial=number,
            duration_ns=round(duration_s * 1e9),
            drain_ns=0,
            stamping=self.stamping,
            tagged=tagged,
            by_flow=self.by_flow or None,
            connections=self._connections(use),
            forward=self._stream(rate_fps, Direction.FORWARD),
            reverse=self._stream(rate_fps, Direction.REVERSE) if both else None,
            other_streams={
                Direction.FORWARD.with_stream(str(number)): self._stream(rate_fps, Direction.FORWARD)
                for number in range(1, self.streams)
            }
            or None,
        )

    def _ports(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """First and last source and destination port."""
        if self.connections is None:
            return RFC4814_SOURCE_PORTS, RFC4814_DESTINATION_PORTS
        return (1024, 1023 + MOST_SOURCES), (1, ceil(self.connections / MOST_SOURCES))

    def _connections(self, use: ConnectionUse) -> Connections | None:
        if self.connections is None:
            return None
        return Connections(use=use, initiator=Direction.FORWARD, count=self.connections, version=self.version)

    def _stream(self, rate_fps: int, direction: Direction) -> Stream:
        if self.headers is not None:
            members = described(self.headers, self.sizes, self.flows)
            if self.connections is not None:
                members["frames"] = tuple(self._connected(frame) for frame in members["frames"])
            return Stream(rate_fps=rate_fps, **members)
        ends = {4: ("198.18.0.2", "198.19.0.2"), 6: ("2001:2::2", "2001:2:0:8000::2")}[self.version]
        size = 64 if self.version == 4 else 84
        source, destination = ends if direction is Direction.FORWARD else reversed(ends)
        frame = FrameSpec.model_validate(
            {"version": self.version, "size": size, "source": source, "destination": destination}
        )
        ports = [VaryingField(mode=self.mode, min=low, max=high) for low, high in self._ports()]
        return Stream(
            rate_fps=rate_fps, foreground=frame, source_port=ports[0], destination_port=ports[1], **self.stream
        )

    def _connected(self, frame: DescribedFrame) -> DescribedFrame:
        """With the ports of connections; UDP is the last header."""
        parts: tuple[ConnectionPart, ...] = ("source_port", "destination_port")
        fields = [
            DescribedField(
                bit=8 * (frame.tag_at - UDP_SIZE) + PORT_BITS * place,
                bits=PORT_BITS,
                mode="connection",
                part=part,
                first=str(low),
                count=str(high - low + 1),
            )
            for place, (part, (low, high)) in enumerate(zip(parts, self._ports(), strict=True))
        ]
        return frame.model_copy(update={"fields": (*(frame.fields or ()), *fields)})


def described(headers: str, sizes: str | int, flows: int) -> dict[str, Any]:
    """Members of a stream of described frames."""
    stack = Stack.parse(headers)
    mix = SizeMix.parse(sizes) if isinstance(sizes, str) else SizeMix.single(max(sizes, stack.min_size))
    ends = Endpoints(
        (IPv4Address("198.18.0.2"), IPv4Address("198.19.0.2")),
        (IPv6Address("2001:2::2"), IPv6Address("2001:2:0:8000::2")),
    )
    return {"frames": tuple(build(stack, size, ends, flows=flows) for size in mix.sizes), "order": mix.kinds()}


_THREE_FIELDS = (
    "ipv4(destination=increment(198.19.0.2,count=1000,by=flow))"
    "/udp(source=increment(1024,by=flow),destination=random(1,49151,by=flow))"
)
_BY_FRAME = "ipv4(destination=increment(198.19.0.2,count=1000))/udp(source=increment(1024),destination=random(1,49151))"
_RECEIVED: dict[str, Any] = {"ports": "ring", "counts": "received"}
_DESCRIBED = (
    Case("send IPv4 behind a VLAN tag", headers="vlan(id=5)/ipv4/udp"),
    Case("send IPv6 with an extension header", headers="ipv6/dest_options/udp"),
    Case("send three sizes (imix)", headers="ipv4/udp", sizes="imix"),
    Case("send 1,000 flows, three fields", headers=_THREE_FIELDS, flows=1000),
    Case("send three fields that vary by frame", headers=_BY_FRAME, goal=1.0),
    Case("send and receive 1,000 flows on one core", headers=_THREE_FIELDS, flows=1000, **_RECEIVED),
    Case("send and receive 1,000 flows, each counted", headers=_THREE_FIELDS, flows=1000, by_flow=True, **_RECEIVED),
    Case("send and receive three sizes (imix) on one core", headers="ipv4/udp", sizes="imix", goal=1.1, **_RECEIVED),
    Case("send and receive behind a VLAN tag on one core", headers="vlan(id=5)/ipv4/udp", goal=1.3, **_RECEIVED),
)
_PORTS = "send IPv4, random ports"
_ONE_WAY, _BOTH_WAYS = "send and receive on one core", "send and receive both ways on one core"
_OPEN = "open 20 million connections on one core"
_ADDRESS = VaryingAddress(mode=FieldMode.RANDOM, min=0, max=65535)
_ADDRESSES = {"source_address": _ADDRESS, "destination_address": _ADDRESS}


def _on_null(version: Literal[4, 6]) -> tuple[Case, ...]:
    def case(what: str, **members: Any) -> Case:
        return Case(name=f"send IPv{version}, {what}", version=version, **members)

    return (
        case("fixed ports", mode=FieldMode.FIXED, goal=1.6),
        case("increasing ports", mode=FieldMode.INCREASING),
        case("random ports", goal=1.35),
        case("random ports, 256 networks", stream={"networks": 256}, goal=1.4),
        case("random ports and addresses", stream=_ADDRESSES),
        case("random ports, tagged", stamping=Stamping.TAGGED),
        case("random ports, every frame stamped", stamping=Stamping.EVERY, goal=1.0),
    )


CASES: tuple[Case, ...] = (
    *_on_null(4),
    *(
        Case(f"send IPv4, random ports, {streams} streams", streams=streams, beside=_PORTS, beside_goal=goal)
        for streams, goal in ((2, 0.8), (16, 0.5))
    ),
    *_on_null(6),
    *_DESCRIBED,
    Case(_ONE_WAY, goal=0.75, **_RECEIVED),
    Case(
        _OPEN,
        connections=20_000_000,
        use=ConnectionUse.OPEN,
        beside=_ONE_WAY,
        beside_goal=0.7,
        **_RECEIVED,
    ),
    Case(
        f"{_OPEN} behind a VLAN tag",
        headers="vlan(id=5)/ipv4/udp",
        connections=20_000_000,
        use=ConnectionUse.OPEN,
        beside=_OPEN,
        beside_goal=0.8,
        **_RECEIVED,
    ),
    Case(_BOTH_WAYS, both_directions=True, **_RECEIVED),
    Case(
        "both ways in 1 million connections on one core",
        both_directions=True,
        connections=1_000_000,
        beside=_BOTH_WAYS,
        beside_goal=0.4,
        **_RECEIVED,
    ),
    Case(
        "send and receive on one core, every frame stamped",
        ports="ring",
        stamping=Stamping.EVERY,
        counts="received",
        goal=0.75,
    ),
    Case(
        "send and receive on two cores, every frame stamped",
        ports="ring",
        stamping=Stamping.EVERY,
        counts="received",
        cores=2,
        goal=0.95,
    ),
    Case("send on two cores, a queue each", cores=2, queues=2),
    Case("send and receive on two cores, a queue each", ports="ring", counts="received", cores=2, queues=2),
    Case("send and receive over veth, af_packet", ports="af_packet", counts="received"),
    Case("send and receive over veth, af_xdp", ports="af_xdp", counts="received"),
)
