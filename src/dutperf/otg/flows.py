# SPDX-License-Identifier: Apache-2.0
"""The streams of a configuration's flows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, pairwise, product
from math import ceil, lcm
from typing import Any

from dutperf.frames import FrameError, Stack, build
from dutperf.model import MAX_FRAME_SIZE, MOST_KINDS, PREAMBLE_AND_GAP, Bursts, DescribedFrame, Direction, Stream
from dutperf.model.described_frame import DescribedField
from dutperf.model.pattern import NS_PER_S, SteadyTimes
from dutperf.model.stream import MOST_IN_BURST
from dutperf.model.value import HIGHEST_FPS
from dutperf.otg import payload
from dutperf.otg.headers import OpenFields, stack_of
from dutperf.otg.links import DeviceEnd, Links
from dutperf.otg.model import Message, Rejected, chosen, exact, name_of, value_of
from dutperf.otg.tags import MetricTag, tags_of
from dutperf.setup.size_mix import SizeMix
from dutperf.spelling import count_of

LONGEST_NS = 86_400 * NS_PER_S
"""Of a trial: a flow without an end is sent so long."""
MOST_FLOWS = 8000
_MOST_NAMED = 8160
"""Flows, and pairs of ports between which they are sent: a frame names one of so many."""
_APART_NS, _MOST_APART = 10_000, 1000
"""The most between the beginnings of two flows, and so many begin apart. 1,000 frames cannot leave at one time: the
last would be late."""
MOST_DESCRIBED = 5_000_000
"""Bytes of the frames of all flows, as the engine gets them: a trial has eight MiB, of them a third for the rest."""
_GAP = 12
"""Ethernet's own, in bytes: the least that a flow may ask for."""
_MOST_NUMBERED = 1 << 34
"""Frames of a flow to several ports: each of these has a bit for each frame, to know duplicates of another's."""
MOST_TURNS = 4096
"""Values of a field over the pairs of devices that share it."""
PREDEFINED = {
    "imix": "64=7,570=4,1518=1",
    "ipsec_imix": "90=58.67,92=2,594=23.66,1418=15.67",
    "ipv6_imix": "60=58.67,496=2,594=23.66,1518=15.67",
    "standard_imix": "58=58.67,62=2,594=23.66,1518=15.67",
    "tcp_imix": "90=58.67,92=2,594=23.66,1518=15.67",
}
"""Sizes and weights of the model's mixes."""
_WEIGHTS = 1000
"""The sum of weights, about, to which those that are no whole numbers are rounded."""
_PER_S = {"bps": 1, "kbps": 10**3, "mbps": 10**6, "gbps": 10**9}
_MOST_OFF = Fraction(1, 1000)
"""By which the interval of bursts may differ from the one that was asked for."""


@dataclass(frozen=True)
class _Pair:
    """What the frames of two devices have, or of two ports."""

    name: str = ""
    host: int = 0
    """Number of the sender on its port."""
    open: OpenFields = field(default_factory=OpenFields)


@dataclass(frozen=True)
class _Route:
    """Where a flow is sent: from one port to another."""

    tx: str
    rx: str
    pairs: tuple[_Pair, ...] = (_Pair(),)
    """Whose frames take turns."""
    also_rx: tuple[str, ...] = ()


@dataclass(frozen=True)
class Flow:
    """A flow, ready to be sent; of one between several ports the part from one to another."""

    name: str
    of: str
    """The name of the whole."""
    direction: Direction
    """Its path and stream."""
    tx: str
    rx: str
    """Ports by their names in the configuration; ``rx`` empty: it has no receiver."""
    stream: Stream
    headers: Stack
    mix: SizeMix
    also_rx: tuple[str, ...] = ()
    """Further ports, at any of which its frames may arrive."""
    tags: tuple[MetricTag, ...] = ()
    """By whose values its arriving frames are counted."""
    frames: int | None = None
    """How many it sends; None: as long as ``sends_ns``..."""
    sends_ns: int | None = None
    """... or, None too, until it is stopped."""
    shift_ns: int = 0
    """How much later than the others it begins, which is less than the time between two of its frames."""
    is_reported: bool = False
    with_loss: bool = False
    by_port: bool = False
    """Whether what arrived at each port is reported."""
    with_times: bool = False
    with_latency: bool = False
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of each kind of its frames, in bytes."""
        return self.stream.sizes

    def part(self, sent: int, sent_ns: int, *, goes_on: bool) -> Stream | None:
        """What is left to be sent after ``sent`` frames in ``sent_ns``; None: nothing. A flow that ``goes_on`` does
        not wait for its beginning."""
        left_ns = None if self.sends_ns is None else self.sends_ns - sent_ns
        if self.frames is not None:
            left = self.frames - sent
            left_ns = _lasts_ns(self.stream, left) if left > 0 else 0
        if left_ns is not None and left_ns <= 0:
            return None
        begin_ns = 0 if goes_on else self.stream.begin_ns or 0
        begin_ns += min(self.shift_ns, LONGEST_NS - begin_ns - (left_ns or 0))
        grace_ns = None if self.frames is None else LONGEST_NS  # all of them are sent, at whatever rate the port can
        return self.stream.model_copy(update={"begin_ns": begin_ns or None, "sends_ns": left_ns, "grace_ns": grace_ns})


def as_sent(frame: DescribedFrame) -> DescribedFrame:
    """The frame without what is for a person, or for the verdict alone."""
    return frame.model_copy(update={"name": None, "stream": None, "arrives_with": None})


def _lasts_ns(stream: Stream, frames: int) -> int:
    """The shortest sending time with so many frames."""
    times = SteadyTimes(stream.rate_fps)  # bursts have as many frames as their mean rate has in that time
    due_ns = times.due_ns(frames - 1)  # rounded down
    return next(after for after in range(due_ns + 1, due_ns + 3) if times.frames_before(after) >= frames)


def planned(configuration: Message, links: Links) -> tuple[Flow, ...]:
    """The flows of a configuration. Raises Rejected: they are not possible; all errors at once."""
    flows: list[Flow] = []
    errors: list[str] = []
    names = links.stream_names([one.name for one in configuration.flows])
    if len(names) > MOST_FLOWS:
        raise Rejected(f"flows: {len(names):,} flows are not possible: at most {MOST_FLOWS:,} are")
    for number, one in enumerate(configuration.flows):
        try:
            for made in _flow(one, f"flows[{number}]", links, names[number]):
                apart_ns = min(_APART_NS, NS_PER_S // made.stream.rate_fps // _MOST_APART)
                flows.append(replace(made, shift_ns=apart_ns * (number % _MOST_APART)))
        except Rejected as error:
            errors += error.errors
    pairs = len({one.direction.path for one in flows})
    if len(flows) + pairs > _MOST_NAMED:
        errors.append(
            f"flows: {len(flows):,} flows between {pairs} pairs of ports are not possible: at most"
            f" {_MOST_NAMED - pairs:,} are"
        )
    if errors:
        raise Rejected(*errors)
    if (described := sum(_described_bytes(one) for one in flows)) > MOST_DESCRIBED:
        raise Rejected(
            f"flows: {described:,} bytes describe their frames; {MOST_DESCRIBED:,} are possible: give fewer values,"
            " increments instead of lists, shorter frames with payload, or fewer flows"
        )
    return tuple(flows)


def _described_bytes(flow: Flow) -> int:
    return sum(len(frame.model_dump_json()) for frame in flow.stream.frames)


def _flow(flow: Message, where: str, links: Links, name: str) -> Sequence[Flow]:
    if not flow.name:
        raise Rejected(f"{where}.name is missing")
    routes, warnings = _routes(flow, where, links)
    first = routes[0]
    headers = stack_of(flow.packet, f"{where}.packet", first.pairs[0].open)
    # a flow that says nothing of its size has the smallest frames with its headers
    sizes = _sizes(flow.size, f"{where}.size") if flow.HasField("size") else SizeMix.single(headers.min_size)
    _check_longest(flow, routes, max(sizes.sizes), where, links)
    media_mbps = links.speeds.get(first.tx)
    if len({one.tx for one in routes}) > 1:
        media_mbps = None  # a share of which of them
    rate_fps = _rate(flow.rate, sizes, media_mbps, where, flow.name)
    metrics, tags = flow.metrics, tags_of(flow, where)
    if tags and metrics.predefined_metric_tags.rx_name:
        raise Rejected(f"{where}.metrics.predefined_metric_tags: go without metric_tags", code=501)
    whole = Flow(
        name=flow.name,
        of=flow.name,
        direction=links.direction(first.tx, first.rx).with_stream(name),
        tx=first.tx,
        rx=first.rx,
        stream=Stream(rate_fps=rate_fps, tracked=tuple(one.bits for one in tags), **_kinds(flow, sizes, first, where)),
        headers=headers,
        mix=sizes,
        also_rx=first.also_rx,
        tags=tags,
        is_reported=metrics.enable,
        with_loss=metrics.loss,
        by_port=metrics.predefined_metric_tags.rx_name,
        with_times=metrics.timestamps,
        with_latency=metrics.latency.enable,
        warnings=warnings,
    )
    whole = _lasting(whole, flow.duration, f"{where}.duration", media_mbps)
    if first.also_rx:
        _check_numbered(whole, where)
    return [whole] if len(routes) == 1 else _parts(whole, flow, sizes, routes, where, links)


def _check_numbered(flow: Flow, where: str) -> None:
    """Raises Rejected where not every frame can be known at all of its ports."""
    frames = flow.frames or flow.stream.rate_fps * (flow.sends_ns or LONGEST_NS) // NS_PER_S
    if frames > _MOST_NUMBERED:
        raise Rejected(
            f"{where}.duration: {flow.name} would send {frames:,} frames to several ports; {_MOST_NUMBERED:,} are"
            " possible: give it an end, or a lower rate"
        )


def _parts(
    whole: Flow, flow: Message, sizes: SizeMix, routes: Sequence[_Route], where: str, links: Links
) -> Sequence[Flow]:
    """A flow between several ports: each pair of devices has the same share of its rate and frames."""
    if whole.stream.pattern is not None:
        raise Rejected(f"{where}.duration.burst: bursts between several ports are not covered: make a flow for each")
    weights = [len(one.pairs) for one in routes]
    rates = _split(whole.stream.rate_fps, weights)
    if min(rates) == 0:
        raise Rejected(f"{where}.rate: {whole.name} would send less than 1 frame/s between some of its ports")
    frames = [None] * len(routes) if whole.frames is None else _split(whole.frames, weights)
    return [
        replace(
            whole,
            name=f"{whole.name}: {route.tx} to {route.rx}",
            direction=links.direction(route.tx, route.rx).with_stream(whole.direction.stream),
            tx=route.tx,
            rx=route.rx,
            stream=whole.stream.model_copy(update={"rate_fps": rate_fps, **_kinds(flow, sizes, route, where)}),
            frames=count,
            warnings=() if number else whole.warnings,
        )
        for number, (route, rate_fps, count) in enumerate(zip(routes, rates, frames, strict=True))
        if count != 0
    ]


def _split(amount: int, weights: Sequence[int]) -> list[int]:
    ends = [amount * before // sum(weights) for before in accumulate(weights)]
    return [end - begin for begin, end in pairwise([0, *ends])]


def _kinds(flow: Message, sizes: SizeMix, route: _Route, where: str) -> dict[str, Any]:
    """The frames of a stream, and in which order: each pair has one of each size, and they take turns."""
    each: list[DescribedFrame] = []
    pairs = len(route.pairs)
    if pairs * len(sizes.sizes) > MOST_KINDS:
        raise Rejected(
            f"{where}.tx_rx.device: {pairs} pairs of devices with frames of {count_of(len(sizes.sizes), 'size')} are"
            f" not possible: {MOST_KINDS} kinds of frames are, from one port to another; make several flows"
        )
    for number, pair in enumerate(route.pairs):
        frames = _frames(stack_of(flow.packet, f"{where}.packet", pair.open), sizes, where, flow.name)
        if flow.HasField("payload"):
            pattern, repeats = payload.pattern_of(flow.payload, f"{where}.payload")
            frames = tuple(payload.filled(one, pattern, repeats=repeats) for one in frames)
        each += [_of_pair(one, pair, number, pairs, f"{where}.packet") for one in frames]
    made: dict[str, Any] = {"frames": tuple(each)}
    if len(each) > 1 and sizes.random:
        made["shares"] = sizes.shares() * pairs
    elif len(each) > 1:
        kinds, in_turn = len(sizes.sizes), sizes.kinds()
        turns = range(lcm(pairs, len(in_turn)))
        made["order"] = tuple(turn % pairs * kinds + in_turn[turn % len(in_turn)] for turn in turns)
    return made


def _of_pair(frame: DescribedFrame, pair: _Pair, number: int, pairs: int, where: str) -> DescribedFrame:
    """The frame of one of ``pairs`` that take turns: values that change from frame to frame do so over all pairs."""
    if pairs == 1:
        return frame.model_copy(update={"host": pair.host or None})
    if any(lcm(one.period, pairs) > MOST_TURNS for one in frame.fields if one.mode != "random"):
        raise Rejected(f"{where}: more than {MOST_TURNS:,} values of a field that {pairs} pairs of devices share")
    fields = tuple(one if one.mode == "random" else _in_turn(one, number, pairs) for one in frame.fields)
    return frame.model_copy(update={"name": f"{frame.name}, {pair.name}", "host": pair.host or None, "fields": fields})


def _in_turn(field: DescribedField, number: int, pairs: int) -> DescribedField:
    values = [field.at(turn) for turn in range(number, lcm(field.period, pairs), pairs)]
    return DescribedField(bit=field.bit, bits=field.bits, mode="list", values=tuple(map(str, values)))


def _check_longest(flow: Message, routes: Sequence[_Route], longest: int, where: str, links: Links) -> None:
    """Raises Rejected: the MTU of a port, or of a device's interface, from which they are sent is less."""
    tags = sum(chosen(one) == "vlan" for one in flow.packet)
    limits = [(links.longest.get(one.tx), f"{one.tx} (layer1)") for one in routes]
    limits += [
        (links.longest_of_hosts.get((route.tx, pair.host)), f"the interface that sends from {pair.name}")
        for route in routes
        for pair in route.pairs
        if pair.name
    ]
    for most, of in limits:
        if most is not None and longest > most + 4 * tags:
            raise Rejected(f"{where}.size: {longest:,} bytes are too many for the mtu of {of}")


def _routes(flow: Message, where: str, links: Links) -> tuple[Sequence[_Route], tuple[str, ...]]:
    if not flow.HasField("tx_rx"):
        raise Rejected(f"{where}.tx_rx is missing")
    kind = chosen(flow.tx_rx, "port")
    if kind == "device":
        return _between_devices(flow, f"{where}.tx_rx.device", links), ()
    given, place = flow.tx_rx.port, f"{where}.tx_rx.port"
    receivers = [*given.rx_names, *([given.rx_name] if given.rx_name else [])]
    tx = links.port(given.tx_name, f"{place}.tx_name")
    known = [links.port(one, f"{place}.rx_names") for one in dict.fromkeys(receivers)]
    rx, *further = known or [links.other(tx)]
    warnings = () if rx else (f"{flow.name}: it has no receiving port, so nothing of it counts as received",)
    for one in (rx, *further):
        _differ(tx, one, place)
    return [_Route(tx, rx, also_rx=tuple(further))], warnings


def _between_devices(flow: Message, where: str, links: Links) -> Sequence[_Route]:
    """The pairs of its devices, by their ports."""
    version = next((one for one in map(chosen, flow.packet) if one in ("ipv4", "ipv6")), "")
    by_ports: dict[tuple[str, str], list[_Pair]] = {}
    for tx_name, rx_name in _pairs_of_names(flow.tx_rx.device, where):
        senders = _with_address(links.ends_of(tx_name, f"{where}.tx_names"), version)
        receivers = _with_address(links.ends_of(rx_name, f"{where}.rx_names"), version)
        for sender, receiver in product(senders, receivers):
            _differ(sender.port, receiver.port, where)
            pair = _Pair(f"{tx_name} to {rx_name}", sender.host, _between(sender, receiver))
            by_ports.setdefault((sender.port, receiver.port), []).append(pair)
    return [_Route(tx, rx, tuple(pairs)) for (tx, rx), pairs in by_ports.items()]


def _pairs_of_names(given: Message, where: str) -> Sequence[tuple[str, str]]:
    if not given.tx_names or not given.rx_names:
        raise Rejected(f"{where}: tx_names and rx_names each need a device")
    if not given.HasField("mode") or name_of(given, "mode") == "mesh":
        return list(product(given.tx_names, given.rx_names))
    if len(given.tx_names) != len(given.rx_names):
        raise Rejected(f"{where}: one_to_one needs as many tx_names as rx_names")
    return list(zip(given.tx_names, given.rx_names, strict=True))


def _with_address(ends: Sequence[DeviceEnd], version: str) -> Sequence[DeviceEnd]:
    """Those with an address of the frames' IP version; if there are none, the first."""
    return [one for one in ends if version in one.addresses] or ends[:1]


def _between(sender: DeviceEnd, receiver: DeviceEnd) -> OpenFields:
    addresses: dict[str, Mapping[str, str]] = {"ethernet": {"src": "", "dst": ""}}
    for version in ("ipv4", "ipv6"):
        own, other = sender.addresses.get(version), receiver.addresses.get(version)
        addresses[version] = {name: text for name, text in (("src", own), ("dst", other)) if text}
    return OpenFields(addresses)


def _differ(tx: str, rx: str, where: str) -> None:
    if tx == rx:
        raise Rejected(f"{where}: {tx} would send to itself")


def _sizes(size: Message, where: str) -> SizeMix:
    """Raises Rejected: sizes that are not possible."""
    kind = chosen(size, "fixed")
    try:
        if kind == "fixed":
            return SizeMix.single(value_of(size, "fixed"))
        if kind == "weight_pairs":
            return _mix(size.weight_pairs)
        if kind == "random":
            first, last, step = size.random.min or 64, size.random.max or 1518, 1
        else:
            first, last, step = size.increment.start or 64, size.increment.end or 1518, size.increment.step or 1
        each = range(first, last + 1, step)
        if not 1 <= len(each) <= MOST_KINDS:
            raise ValueError(
                f"{len(each):,} sizes are not possible: a flow has 1 to {MOST_KINDS}, each counted by itself; give a"
                " larger step, weight_pairs, or several flows"
            )
        mix = ",".join(f"{one}=1" for one in each)
        return (
            SizeMix.parse(f"imix{'-random' if kind == 'random' else ''}:{mix}")
            if len(each) > 1
            else SizeMix.single(first)
        )
    except ValueError as error:
        raise Rejected(f"{where}.{kind}: {error}") from None


def _mix(pairs: Message) -> SizeMix:
    if chosen(pairs, "predefined") == "predefined":
        text = PREDEFINED[name_of(pairs, "predefined") if pairs.HasField("predefined") else "imix"]
        each = [(int(size), Fraction(weight)) for size, weight in (pair.split("=") for pair in text.split(","))]
    else:
        each = [(one.size or 64, exact(one, "weight")) for one in pairs.custom]
    if not each or any(weight <= 0 for _, weight in each):
        raise ValueError("each weight has to be above 0, and one pair at least is needed")
    whole = all(weight.denominator == 1 for _, weight in each)
    scale = 1 if whole else Fraction(_WEIGHTS) / sum(weight for _, weight in each)
    weights = [(size, max(1, round(weight * scale))) for size, weight in each]
    return SizeMix.parse("imix-random:" + ",".join(f"{size}={weight}" for size, weight in weights))


@contextmanager
def _refusing(where: str) -> Iterator[None]:
    try:
        yield
    except FrameError as error:
        raise Rejected(f"{where}: {error.message}") from None


def _frames(stack: Stack, sizes: SizeMix, where: str, name: str) -> tuple[DescribedFrame, ...]:
    if sizes.sizes[0] < stack.min_size:
        raise Rejected(
            f"{where}.size: {sizes.sizes[0]} bytes are too few for {name}: its headers and the tester's tag of 18"
            f" bytes need {stack.min_size}"
        )
    if sizes.sizes[-1] > MAX_FRAME_SIZE:
        raise Rejected(f"{where}.size: {sizes.sizes[-1]:,} bytes are too many; {MAX_FRAME_SIZE:,} are possible")
    with _refusing(f"{where}.packet"):
        return tuple(build(stack, size).model_copy(update={"name": f"{size} bytes"}) for size in sizes.sizes)


def _rate(rate: Message, sizes: SizeMix, media_mbps: int | None, where: str, name: str) -> int:
    """In frames/s, rounded to whole ones. Bits per second are those of the media, with preamble and gap."""
    kind = chosen(rate, "pps")
    wire_bits = 8 * (Fraction(sum(sizes.order), len(sizes.order)) + PREAMBLE_AND_GAP)
    if kind == "pps":
        fps = exact(rate, "pps")
    elif kind == "percentage":
        if media_mbps is None:
            raise Rejected(f"{where}.rate.percentage: the speed of its port is unknown: give layer1 with a speed")
        share = exact(rate, "percentage") / 100
        if share > 1:
            raise Rejected(f"{where}.rate.percentage: more than 100 %")
        fps = share * media_mbps * 10**6 / wire_bits
    else:
        fps = exact(rate, kind) * _PER_S[kind] / wire_bits
    whole = round(fps)
    if fps < 1 or whole > HIGHEST_FPS:
        raise Rejected(f"{where}.rate: {name} would send {float(fps):g} frames/s; 1 to {HIGHEST_FPS:,} are possible")
    return whole


def _lasting(flow: Flow, duration: Message, where: str, media_mbps: int | None) -> Flow:
    kind = chosen(duration, "continuous")
    given = getattr(duration, kind)
    if (given.gap if given.HasField("gap") else _GAP) > _GAP:
        raise Rejected(f"{where}.{kind}.gap: a least gap of more than {_GAP} bytes is not covered: give a lower rate")
    if kind == "burst":
        return _bursts(flow, given, f"{where}.burst", media_mbps)
    begin_ns = _delay_ns(given.delay, f"{where}.{kind}.delay", media_mbps)
    frames = sends_ns = None
    if kind == "fixed_packets":
        frames = value_of(given, "packets")
        if frames == 0:
            raise Rejected(f"{where}.fixed_packets.packets: none would be sent")
    elif kind == "fixed_seconds":
        sends_ns = round(exact(given, "seconds") * NS_PER_S)
        if not 1 <= sends_ns <= LONGEST_NS - begin_ns:
            raise Rejected(f"{where}.fixed_seconds: {given.seconds:g} s are not possible")
    stream = flow.stream.model_copy(update={"begin_ns": begin_ns or None})
    _check_lasts(stream, frames, begin_ns, f"{where}.{kind}", flow.name)
    return replace(flow, stream=stream, frames=frames, sends_ns=sends_ns)


def _check_lasts(stream: Stream, frames: int | None, begin_ns: int, where: str, name: str) -> None:
    """A flow is sent within a day, the longest trial."""
    if frames is not None and frames > stream.rate_fps * ((LONGEST_NS - begin_ns) // NS_PER_S):
        raise Rejected(f"{where}: {name} would send for more than a day")


def _delay_ns(delay: Message, where: str, media_mbps: int | None) -> int:
    kind = chosen(delay, "bytes")
    amount = exact(delay, kind) if delay.HasField(kind) else 0
    if not amount:
        return 0
    if kind == "bytes":
        if media_mbps is None:
            raise Rejected(f"{where}.bytes: the speed of its port is unknown: give layer1 with a speed, or nanoseconds")
        return ceil(amount * 8000 / media_mbps)
    return ceil(amount * (1000 if kind == "microseconds" else 1))


def _bursts(flow: Flow, burst: Message, where: str, media_mbps: int | None) -> Flow:
    """Bursts at the flow's rate, with gaps between them."""
    packets, rate_fps = value_of(burst, "packets"), flow.stream.rate_fps
    if packets == 0:
        raise Rejected(f"{where}.packets: none would be sent")
    if packets > MOST_IN_BURST:
        raise Rejected(f"{where}.packets: a burst has at most {MOST_IN_BURST:,} frames")
    gap_ns = _delay_ns(burst.inter_burst_gap, f"{where}.inter_burst_gap", media_mbps)
    mean = Fraction(packets) / (Fraction(packets, rate_fps) + Fraction(gap_ns, NS_PER_S))
    whole = round(mean)
    if whole < 1 or abs(whole - mean) > _MOST_OFF * mean:
        raise Rejected(
            f"{where}: bursts of {packets:,} frames at {rate_fps:,} frames/s and gaps of {gap_ns:,} ns make"
            f" {float(mean):g} frames/s; whole frames/s are sent, and those are more than {float(_MOST_OFF):.1%} off"
        )
    pattern = Bursts(frames=packets, within_fps=rate_fps) if packets > 1 else None
    stream = flow.stream.model_copy(update={"rate_fps": whole, "pattern": pattern})
    frames = packets * burst.bursts if burst.bursts else None
    _check_lasts(stream, frames, 0, where, flow.name)
    return replace(flow, stream=stream, frames=frames)
