# SPDX-License-Identifier: Apache-2.0
"""Makes a trial from the test setup and the conditions: which side sends which frames (RFC 8219 4.1
and 5, RFC 4814 4.5, RFC 2544 C.2.6.4).

Sizes are bytes including the FCS. With any IPv6 traffic on either side the frame size is that of IPv6
frames. IPv4 frames are then 20 bytes shorter, so that both sides of a translator carry the same
payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from dutperf.frames import Endpoints, FrameError, Stack, Template
from dutperf.model import (
    ANY_LOSS,
    FRAME_SIZE,
    FRAME_SIZE_IPV4,
    IPV6_HEADER_EXCESS,
    LEFT_AND_RIGHT,
    MAX_FRAME_SIZE,
    MIN_FRAME_SIZE,
    MIN_FRAME_SIZE_IPV6,
    PREAMBLE_AND_GAP,
    SIZE_MIX,
    TRIAL_NUMBERS,
    Bursts,
    Case,
    ConnectionUse,
    Direction,
    FieldMode,
    FrameSpec,
    Pattern,
    Phase,
    Poisson,
    Profile,
    Question,
    Stamping,
    Stream,
    Trial,
    VaryingField,
    address_range,
    of_test_frames,
    ports_of,
)
from dutperf.setup import additional_traffic, arriving_tags, described_traffic, frame_addresses, stateful_traffic
from dutperf.setup.changing_rate import ChangingRate, is_changing
from dutperf.setup.conditions import (
    FRAME_SIZE_SERIES,
    RFC2544_DESTINATION_PORT,
    RFC2544_SOURCE_PORT,
    RFC4814_DESTINATION_PORTS,
    RFC4814_SOURCE_PORTS,
    AllConditions,
    Conditions,
    WithDuration,
    burst_of,
)
from dutperf.setup.configuration import LINK_TIMEOUT_S, ConfigError, ParameterError, Setup, Side, missing_seen_as
from dutperf.setup.pacing import fill_of
from dutperf.setup.size_mix import SizeMix

MAX_FRAMES = 2**40
"""Per direction of a trial: sequence numbers have 40 bits."""


def make_trial(setup: Setup, conditions: Conditions, frame_size: int, rate_fps: int, number: int) -> Trial:
    """The trial with ``rate_fps`` frames/s in each active direction. Its phases have the numbers from
    ``number`` (0-65535) on.

    Raises:
        ConfigError: a frame size that is impossible for this traffic, or addresses that the
            conditions need and the configuration does not have.
    """
    checks_timeout = isinstance(conditions, WithDuration)  # others make their phases themselves
    conditions = conditions.every
    _check_size(setup, conditions, frame_size)
    _check_translated(setup, conditions)
    _check_ports(setup, conditions)
    _check_networks(setup, conditions)
    _check_background(setup, conditions)
    _check_described(setup, conditions)
    _check_modifiers(setup, conditions)
    _check_pacing(setup, conditions)
    _check_numbers(conditions, rate_fps)
    _check_directions(setup, conditions)
    stateful_traffic.check(setup, conditions)
    streams = {
        direction: _stream(setup, conditions, direction, frame_size, rate_fps)
        for direction in setup.active(conditions.active())
    }
    by_path = {"paths": streams} if setup.ports is not None else {one.value: each for one, each in streams.items()}
    pacing = fill_of(conditions.pacing)
    traffic: dict[str, Any] = {"seed": conditions.seed, "burst": conditions.tx_burst, "pacing": pacing, **by_path}
    rest_ns = round(conditions.learning_rest_s * 1e9) or None
    if conditions.connections is None:
        preliminary = _warm_up(conditions, traffic, number, rest_ns)
        traffic["rest_ns"] = None if preliminary else rest_ns
    else:
        preliminary = (opening(setup, conditions, frame_size, _preliminary_fps(setup, conditions, frame_size), number),)
        traffic["rest_ns"] = round(conditions.phase_gap_s * 1e9) or None
        traffic["connections"] = stateful_traffic.of_phase(setup, conditions, ConnectionUse.TRAFFIC)
    trial = Trial(
        trial=(number + len(preliminary)) % TRIAL_NUMBERS,
        duration_ns=round(conditions.duration_s * 1e9),
        drain_ns=round(conditions.drain_s * 1e9),
        preliminary=preliminary,
        **stamps(conditions),
        **traffic,
    )
    if conditions.connections is not None and checks_timeout:
        stateful_traffic.check_timeout(setup, (*preliminary, trial.alone()))
    return trial


def opening(setup: Setup, conditions: Conditions, frame_size: int, rate_fps: int, number: int) -> Phase:
    """The phase with the given number that opens the connections of ``conditions``, ``rate_fps`` in a
    second (RFC 9693 section 4.2).

    Raises:
        ConfigError: see :func:`make_trial`.
    """
    conditions = conditions.every
    stateful_traffic.check(setup, conditions)
    stream = _stream(setup, conditions, setup.stateful.direction, frame_size, rate_fps)
    rest_ns = round(conditions.learning_rest_s * 1e9) or None
    return stateful_traffic.opening(setup, conditions, stream, rate_fps, number, rest_ns)


def replies(setup: Setup, conditions: Conditions, frame_size: int, rate_fps: int, number: int) -> Phase:
    """A phase in which the Responder sends one frame in each connection, ``rate_fps`` in a second (RFC 9693 section
    4.6)."""
    conditions = conditions.every
    assert conditions.connections is not None
    direction = next(one for one in LEFT_AND_RIGHT if stateful_traffic.replies(one, setup))
    sending: dict[str, Any] = {str(direction): _stream(setup, conditions, direction, frame_size, rate_fps)}
    return Phase(
        trial=number % TRIAL_NUMBERS,
        seed=conditions.seed,
        rest_ns=round(conditions.phase_gap_s * 1e9) or None,
        duration_ns=stateful_traffic.duration_ns(conditions.connections, rate_fps),
        drain_ns=round(conditions.drain_s * 1e9),
        burst=conditions.tx_burst,
        connections=stateful_traffic.of_phase(setup, conditions, ConnectionUse.EACH),
        **sending,
    )


def _preliminary_fps(setup: Setup, conditions: AllConditions, frame_size: int) -> int:
    try:
        return conditions.preliminary_rate.offered_fps(maximum_fps(setup, conditions, frame_size))
    except ValueError as error:
        raise ParameterError(str(error), "preliminary_rate") from None


def _warm_up(conditions: AllConditions, traffic: dict[str, Any], number: int, rest_ns: int | None) -> tuple[Phase, ...]:
    """The preliminary phase: the trial's own traffic. It has no drain, so that the traffic hardly
    pauses, and any loss is tolerated."""
    if not conditions.warm_up_s:
        return ()
    question = Question(tolerated_loss=ANY_LOSS)
    duration_ns = round(conditions.warm_up_s * 1e9)
    return (Phase(trial=number, rest_ns=rest_ns, duration_ns=duration_ns, drain_ns=0, question=question, **traffic),)


def sized(setup: Setup, conditions: Conditions) -> Conditions:
    """``conditions`` with frame sizes. If none are given: those of the series, else the smallest that
    the traffic of this test setup can have. Sizes of a series that this traffic cannot have are one: the smallest."""
    if conditions.sizes_are_given:
        return conditions
    smallest = smallest_frame_size(setup, conditions)
    if conditions.size_mix is not None:
        mean = SizeMix.parse(conditions.size_mix).at_least(smallest).mean
        return conditions.model_copy(update={"frame_sizes": (mean,)})
    sizes = (
        (smallest,)
        if conditions.series is None
        else tuple(dict.fromkeys(max(size, smallest) for size in FRAME_SIZE_SERIES[conditions.series]))
    )
    return conditions.model_copy(update={"frame_sizes": sizes})


def cases(setup: Setup, conditions: Conditions) -> tuple[Case, ...]:
    """Each frame size of ``conditions``, which are :func:`sized`."""
    mix = {} if conditions.size_mix is None else {SIZE_MIX: conditions.size_mix}
    return tuple(
        Case({FRAME_SIZE: size, FRAME_SIZE_IPV4: frame_size_ipv4(setup, conditions, size), **mix})
        for size in conditions.frame_sizes
    )


def longest_frame(conditions: Conditions) -> int:
    """The largest frame size in bytes that :func:`sized` gives for any test setup."""
    return max(longest_of(conditions, size) for size in _sizes(conditions))


def shortest_case(conditions: Conditions) -> int:
    """The longest frame, in bytes, of the case that has the shortest ones."""
    return min(longest_of(conditions, size) for size in _sizes(conditions))


def longest_of(conditions: Conditions, frame_size: int) -> int:
    """The longest frame, in bytes, of the case with this frame size."""
    if conditions.size_mix is None:
        return frame_size
    return max(SizeMix.parse(conditions.size_mix).at_least(MIN_FRAME_SIZE_IPV6).sizes)


def _sizes(conditions: Conditions) -> Sequence[int]:
    named = () if conditions.sizes_are_given or conditions.series is None else FRAME_SIZE_SERIES[conditions.series]
    return named or conditions.frame_sizes


def stamps(conditions: Conditions) -> dict[str, Any]:
    """Members of a trial with a frame timeout: every frame has a time stamp."""
    conditions = conditions.every
    if conditions.frame_timeout_ms is None:
        return {}
    return {"stamping": Stamping.EVERY, "frame_timeout_ns": round(conditions.frame_timeout_ms * 1e6)}


def check(setup: Setup, conditions: Conditions) -> None:
    """Check that every frame size of ``conditions`` gives a trial. Rates within the pattern are not
    checked: they may be shares of a link speed that is not known yet.

    Raises:
        ConfigError: see :func:`make_trial`.
    """
    for frame_size in conditions.frame_sizes:
        steady = {"burst_rate": None} | ({"pattern": "constant"} if is_changing(conditions.every.pattern) else {})
        plain = {name: value for name, value in steady.items() if name in type(conditions).model_fields}
        trial = make_trial(setup, conditions.model_copy(update=plain), frame_size, rate_fps=1, number=0)
        frame_addresses.check(setup, trial)


def has_ipv6(setup: Setup, conditions: Conditions) -> bool:
    """Whether either side of the DUT has IPv6 frames, so that frame sizes are those of IPv6 frames."""
    conditions = conditions.every
    return conditions.foreground.native_percent > 0 or any(side.version == 6 for side in setup.sides().values())


def frame_size_ipv4(setup: Setup, conditions: Conditions, frame_size: int) -> int:
    """The size in bytes of the IPv4 frames in a trial of ``frame_size``."""
    return frame_size - IPV6_HEADER_EXCESS if has_ipv6(setup, conditions) else frame_size


def smallest_frame_size(setup: Setup, conditions: Conditions) -> int:
    """The smallest size in bytes that this traffic can have (RFC 8219 5.1.1).

    Raises:
        ConfigError: headers that are not possible.
    """
    conditions = conditions.every
    excess = IPV6_HEADER_EXCESS if has_ipv6(setup, conditions) else 0
    sizes = [MIN_FRAME_SIZE + excess]
    if described_traffic.is_described(conditions, setup):
        for direction in setup.active(conditions.active()):
            parts = described_traffic.parts_of(setup, conditions, direction, MAX_FRAME_SIZE)
            stacks = zip(parts, _stacks(setup, conditions, direction, parts), strict=True)
            sizes += [
                stack.min_size + (excess if stack.ip_version == 4 else 0)
                for part, stack in stacks
                if part.sizes.order == (MAX_FRAME_SIZE,)
            ]
    return max(sizes)


def maximum_fps(setup: Setup, conditions: Conditions, frame_size: int) -> int | None:
    """The media's maximum frame rate in frames/s per direction, for the larger frame (RFC 8219
    appendix A), of a mix for its exact mean; None where its speed is not known."""
    if setup.media_mbps is None:
        return None
    order: tuple[int, ...] = (frame_size,)
    if conditions.size_mix is not None:
        order = SizeMix.parse(conditions.size_mix).at_least(smallest_frame_size(setup, conditions)).order
    bytes_on_wire = sum(order) + len(order) * PREAMBLE_AND_GAP
    return setup.media_mbps * 1_000_000 * len(order) // (8 * bytes_on_wire)


def with_media(setup: Setup, environment: dict[str, Any]) -> Setup:
    """``setup`` with the speed of the slower link as the tester reports it, if the configuration has
    none and both links have one."""
    speeds = [port.get("link_mbps", 0) for port in ports_of(environment).values()]
    return (
        setup
        if setup.media_mbps is not None or not speeds or not all(speeds)
        else setup.model_copy(update={"media_mbps": min(speeds)})
    )


def open_request(setup: Setup, max_frame_size: int, dut_cores: Sequence[int] = ()) -> dict[str, Any]:
    """Parameters of the engine's ``open`` (protocol/request.schema.json); ``max_frame_size`` in bytes.
    The engine does not use ``dut_cores``."""
    request: dict[str, Any] = {name: _port(side) for name, side in setup.sides().items()}
    if setup.ports is not None:
        ends = setup.path_ends().values()
        request = {
            "ports": [{"name": name, **port} for name, port in request.items()],
            "paths": [{"from": sender, "to": receiver} for sender, receiver in ends],
        }
    request |= {"memory": setup.engine.memory, "max_frame_size": max_frame_size}
    if setup.engine.cores is not None:
        request["cores"] = list(setup.engine.cores)
    if dut_cores or setup.engine.dut_cores:
        request["dut_cores"] = list(dut_cores or setup.engine.dut_cores)
    if setup.engine.queues > 1:
        request["queues"] = setup.engine.queues
    if setup.engine.flow_control != "off":
        request["flow_control"] = setup.engine.flow_control
    if setup.engine.link_timeout_s != LINK_TIMEOUT_S:
        request["link_timeout_ms"] = round(setup.engine.link_timeout_s * 1000)
    if setup.engine.offloads:
        request["offloads"] = list(setup.engine.offloads)
    return request


def _port(side: Side) -> dict[str, Any]:
    members = {
        "port": side.port,
        "mac": side.mac,
        "ipv4": side.ipv4 and str(side.ipv4.ip),
        "ipv6": side.ipv6 and str(side.ipv6.ip),
        "gateway4": side.gateway4 and str(side.gateway4),
        "gateway6": side.gateway6 and str(side.gateway6),
        "gateway_mac": side.gateway_mac,
        "answers_for": _answers_for(side),
        "vlans": side.vlans and list(side.vlans),
        "receive_ring": side.receive_ring,
    }
    return {name: value for name, value in members.items() if value is not None}


def _answers_for(side: Side) -> dict[str, Any] | None:
    """Addresses that do not follow from the frames that are sent: a translator changes them, and the DUT may have
    next hops of its own."""
    own = [address.ip for address in (side.ipv4, side.ipv6) if address is not None]
    moving = [address_range.varying(address, side.varying_address) for address in own if side.varying_address]
    ranges = [*map(address_range.of_network, side.answers_for), *moving]
    by_version = {f"ipv{version}": [one.request() for one in ranges if one.version == version] for version in (4, 6)}
    return {version: each for version, each in by_version.items() if each} or None


def _stacks(
    setup: Setup, conditions: AllConditions, direction: Direction, parts: Sequence[described_traffic.Part]
) -> tuple[Stack | Template, ...]:
    """The headers of each part's frames."""
    sender, _ = setup.ends(direction)
    ports = (
        sender.source_port or source_ports(conditions.ports),
        sender.destination_port or destination_ports(conditions.ports),
    )
    try:
        return tuple(described_traffic.stack_of(part, sender.version, ports) for part in parts)
    except FrameError as error:
        raise _refused(setup, sender, error) from None


def _parts(
    setup: Setup, conditions: AllConditions, direction: Direction, frame_size: int
) -> tuple[tuple[described_traffic.Part, ...], tuple[Stack | Template, ...]]:
    """The streams of one direction, whose sizes have room for their headers, and these."""
    parts = described_traffic.parts_of(setup, conditions, direction, frame_size)
    stacks = _stacks(setup, conditions, direction, parts)
    return described_traffic.fitted(parts, stacks, _shorter(setup, conditions, frame_size)), stacks


def _shorter(setup: Setup, conditions: AllConditions, frame_size: int) -> dict[int, int]:
    """Bytes by which IPv4 frames are shorter than the frame size."""
    return {4: frame_size - frame_size_ipv4(setup, conditions, frame_size)}


def _described_stream(
    setup: Setup, conditions: AllConditions, direction: Direction, frame_size: int, rate_fps: int
) -> Stream:
    parts, stacks = _parts(setup, conditions, direction, frame_size)
    sender, receiver = setup.ends(direction)
    endpoints = Endpoints(ipv4=_endpoints(sender, receiver, 4), ipv6=_endpoints(sender, receiver, 6))
    try:
        members = described_traffic.members(
            parts, stacks, endpoints, direction, _shorter(setup, conditions, frame_size)
        )
    except FrameError as error:
        raise _refused(setup, sender, error) from None
    back = [tags for part in parts for tags in [_back(setup, part, receiver)] * len(part.sizes.sizes)]
    members["frames"] = tuple(
        frame.model_copy(update={"arrives_with": arriving_tags.of_described(frame, tags, receiver)})
        for frame, tags in zip(members["frames"], back, strict=True)
    )
    return Stream(**_rhythm(setup, conditions, direction, frame_size, rate_fps), **members)


def _back(setup: Setup, part: described_traffic.Part, receiver: Side) -> arriving_tags.OfBack:
    try:
        return arriving_tags.of_back(part, receiver)
    except FrameError as error:
        raise _refused(setup, receiver, error) from None


def _rhythm(
    setup: Setup, conditions: AllConditions, direction: Direction, frame_size: int, rate_fps: int
) -> dict[str, Any]:
    """Members of a stream: the rate of its test frames, their pattern, and the frames that come between
    them, which belong to the rate."""
    size_ipv4 = frame_size_ipv4(setup, conditions, frame_size)
    additional = additional_traffic.frames_of(setup, conditions, direction, size_ipv4)
    test_fps = of_test_frames(additional, rate_fps)
    return {
        "rate_fps": test_fps,
        "pattern": _pattern(setup, conditions, frame_size, test_fps),
        "additional": additional,
    }


def _refused(setup: Setup, sender: Side, error: FrameError) -> ParameterError | ConfigError:
    """An error in the headers, of the option or of the configuration."""
    if setup.streams:
        return ConfigError(str(error), "streams")
    return described_traffic.refused(error, None if sender.frame is None else _key_of(setup, sender))


def _destination(receiver: Side, version: int) -> IPv4Address | IPv6Address | None:
    """Where frames of an IP version are sent to reach a side: its own address, through a DUT that translates
    it its ``seen_as`` address. None: it has none of that version."""
    if receiver.seen_as is not None and receiver.seen_as.version == version:
        return receiver.seen_as
    own = receiver.address(version)
    return None if own is None else own.ip


def _endpoints(sender: Side, receiver: Side, version: int) -> tuple[Any, Any] | None:
    """Source and destination of frames of an IP version. None if a side has no such address."""
    source, destination = sender.address(version), _destination(receiver, version)
    return None if source is None or destination is None else (source.ip, destination)


def _stream(setup: Setup, conditions: AllConditions, direction: Direction, frame_size: int, rate_fps: int) -> Stream:
    if described_traffic.is_described(conditions, setup):
        return _described_stream(setup, conditions, direction, frame_size, rate_fps)
    sender, receiver = setup.ends(direction)
    if conditions.connections is not None:
        return _stateful_stream(setup, conditions, direction, frame_size, rate_fps)
    return Stream(
        **_rhythm(setup, conditions, direction, frame_size, rate_fps),
        foreground=_foreground(sender, receiver, frame_size, frame_size_ipv4(setup, conditions, frame_size)),
        background=_background(sender, receiver, frame_size) if conditions.foreground.native_percent > 0 else None,
        n=conditions.foreground.n,
        m=conditions.foreground.m,
        source_port=sender.source_port or source_ports(conditions.ports),
        destination_port=sender.destination_port or destination_ports(conditions.ports),
        networks=_networks(receiver, conditions),
        source_address=sender.varying_address,
        destination_address=receiver.varying_address,
        arrives_with=arriving_tags.of_plain(receiver),
    )


def _stateful_stream(
    setup: Setup, conditions: AllConditions, direction: Direction, frame_size: int, rate_fps: int
) -> Stream:
    """The Initiator's frames, or the Responder's, whose destinations the tester learns."""
    assert conditions.connections is not None
    sender, receiver = setup.ends(direction)
    size_ipv4 = frame_size_ipv4(setup, conditions, frame_size)
    if stateful_traffic.replies(direction, setup):
        own = _own(sender, sender.version)
        size = frame_size if sender.version == 6 else size_ipv4
        foreground = FrameSpec(version=sender.version, size=size, source=own, destination=own)
        destination_address = None
    else:
        foreground = _foreground(sender, receiver, frame_size, size_ipv4)
        destination_address = receiver.varying_address
    return Stream(
        **_rhythm(setup, conditions, direction, frame_size, rate_fps),
        foreground=foreground,
        source_address=sender.varying_address,
        destination_address=destination_address,
        arrives_with=arriving_tags.of_plain(receiver),
        **stateful_traffic.fields(setup, conditions.connections),
    )


def profile(setup: Setup, conditions: Conditions, frame_size: int) -> Profile | None:
    """The rates of a traffic pattern that has rates of its own; None for any other.

    Raises:
        ParameterError: rates that are not possible.
    """
    conditions = conditions.every
    if not is_changing(conditions.pattern):
        return None
    changing, duration_ns = ChangingRate.parse(conditions.pattern), round(conditions.duration_s * 1e9)
    try:
        return changing.profile(duration_ns, maximum_fps(setup, conditions, frame_size))
    except ValueError as error:
        raise ParameterError(str(error), "pattern") from None


def _pattern(setup: Setup, conditions: AllConditions, frame_size: int, rate_fps: int) -> Pattern | None:
    if (own_rates := profile(setup, conditions, frame_size)) is not None:
        return own_rates
    burst = burst_of(conditions.pattern)
    if burst is None:
        return Poisson() if conditions.pattern == "poisson" else None
    if conditions.burst_rate is None:
        return Bursts(frames=burst)
    try:
        within_fps = conditions.burst_rate.offered_fps(maximum_fps(setup, conditions, frame_size))
    except ValueError as error:
        raise ParameterError(str(error), "burst_rate") from None
    if within_fps < rate_fps:
        raise ParameterError(
            f"{within_fps:,} frames/s within a burst are less than the mean rate, {rate_fps:,} frames/s",
            "burst_rate",
        )
    return Bursts(frames=burst, within_fps=within_fps)


def _foreground(sender: Side, receiver: Side, size: int, size_ipv4: int) -> FrameSpec:
    """From the sender's address to the receiver's, as the sender addresses it."""
    version = sender.version
    destination = _destination(receiver, version)
    assert destination is not None, "the configuration is checked"
    return FrameSpec(
        version=version, size=size if version == 6 else size_ipv4, source=_own(sender, version), destination=destination
    )


def _background(sender: Side, receiver: Side, size: int) -> FrameSpec:
    """Native IPv6, not translated."""
    return FrameSpec(version=6, size=size, source=_own(sender, 6), destination=_own(receiver, 6))


def _own(side: Side, version: int) -> IPv4Address | IPv6Address:
    interface = side.address(version)
    assert interface is not None, "the configuration is checked"
    return interface.ip


def source_ports(mode: FieldMode) -> VaryingField:
    """Source ports over the range of RFC 4814 4.5; fixed ones as RFC 2544 C.2.6.4 has them."""
    return _ports(mode, RFC4814_SOURCE_PORTS, RFC2544_SOURCE_PORT)


def destination_ports(mode: FieldMode) -> VaryingField:
    return _ports(mode, RFC4814_DESTINATION_PORTS, RFC2544_DESTINATION_PORT)


def _networks(receiver: Side, conditions: AllConditions) -> int:
    return conditions.networks if receiver.networks is None else receiver.networks


def _ports(mode: FieldMode, recommended: tuple[int, int], fixed: int) -> VaryingField:
    low, high = (fixed, fixed) if mode is FieldMode.FIXED else recommended
    return VaryingField(mode=mode, min=low, max=high)


def _check_size(setup: Setup, conditions: AllConditions, frame_size: int) -> None:
    smallest = smallest_frame_size(setup, conditions)
    if not smallest <= frame_size <= MAX_FRAME_SIZE:
        traffic = "IPv6" if has_ipv6(setup, conditions) else "IPv4"
        raise ParameterError(
            f"{frame_size} bytes are impossible: {traffic} traffic has frames of {smallest} to {MAX_FRAME_SIZE}",
            "frame_sizes",
        )


def _check_numbers(conditions: AllConditions, rate_fps: int) -> None:
    """Each frame has its own sequence number (protocol/README.md): they last for 20 hours at 14.88 million
    frames/s."""
    frames = rate_fps * conditions.duration_s
    if frames > MAX_FRAMES:
        raise ParameterError(
            f"{frames:,.0f} frames per direction are more than a trial can have ({MAX_FRAMES:,}): choose a shorter"
            " duration",
            "duration_s",
        )


def _check_translated(setup: Setup, conditions: AllConditions) -> None:
    """Each path through a translator needs a destination address; the Responder learns its own."""
    for direction in setup.active(conditions.active()):
        sender, receiver = setup.ends(direction)
        if conditions.connections is not None and stateful_traffic.replies(direction, setup):
            continue
        if sender.version != receiver.version and receiver.seen_as is None:
            raise ConfigError(missing_seen_as(sender), f"{_key_of(setup, receiver)}.seen_as")


def _key_of(setup: Setup, side: Side) -> str:
    return next(setup.key_of(name) for name, one in setup.sides().items() if one is side)


def _check_directions(setup: Setup, conditions: AllConditions) -> None:
    """Named ports have paths in the configuration, and frames of their own only."""
    if setup.ports is None:
        return
    if conditions.directions != "both":
        raise ParameterError("is for left and right: name the paths in the configuration", "directions")
    chosen = conditions.modified_by
    if chosen.broadcast or chosen.management or chosen.routing_updates:
        raise ParameterError("broadcasts, queries and routing updates need left and right, not ports", "modifiers")


def _check_ports(setup: Setup, conditions: AllConditions) -> None:
    """Ports in the configuration take precedence: a condition that chose others would have no effect."""
    in_configuration = [
        f"{setup.key_of(name)}.{field}"
        for name, side in setup.sides().items()
        for field in ("source_port", "destination_port")
        if getattr(side, field) is not None
    ]
    if in_configuration and conditions.ports is not FieldMode.RANDOM:
        raise ParameterError(
            f"{conditions.ports} ports are not possible: the configuration sets them in {in_configuration[0]}", "ports"
        )


def _check_described(setup: Setup, conditions: AllConditions) -> None:
    """What goes with plain frames only, and headers that are given twice."""
    if not described_traffic.is_described(conditions, setup):
        return
    _check_headers_once(setup, conditions)
    kind = "frames with headers of your choice, of several sizes or flows"
    if conditions.foreground.native_percent:
        raise ParameterError(f"native IPv6 in the background does not go with {kind}", "foreground")
    for name, side in setup.sides().items():
        if _networks(side, conditions) > 1:
            raise ParameterError(f"several networks do not go with {kind}", "networks")
        if side.varying_address is not None:
            raise ConfigError(f"does not go with {kind}", f"{setup.key_of(name)}.varying_address")
    if "checksums" in setup.engine.offloads:
        raise ConfigError(f"the offload checksums does not go with {kind}", "engine.offloads")


def _check_headers_once(setup: Setup, conditions: AllConditions) -> None:
    if setup.streams and (conditions.frame or conditions.flows > 1):
        member = "frame" if conditions.frame else "flows"
        raise ParameterError("the configuration has streams, each with its own", member)
    for name, side in setup.sides().items():
        if side.frame is not None and setup.streams:
            raise ConfigError("does not go with streams, each with its own", f"{setup.key_of(name)}.frame")
        if side.frame is not None and conditions.frame is not None:
            raise ParameterError(f"the configuration has headers in {setup.key_of(name)}.frame already", "frame")


def _check_modifiers(setup: Setup, conditions: AllConditions) -> None:
    """Extension headers need frames of IPv6."""
    senders = [setup.ends(direction)[0] for direction in setup.active(conditions.active())]
    if conditions.modified_by.extension_headers is not None and all(sender.version == 4 for sender in senders):
        raise ParameterError("extension-header is for IPv6 frames, but no side sends any", "modifiers")


def _check_pacing(setup: Setup, conditions: AllConditions) -> None:
    """With a filled line only the sender decides on places. The engine checks the ports."""
    if fill_of(conditions.pacing) is None:
        return
    if setup.engine.queues > 1:
        raise ParameterError(
            "fill needs a single queue (engine.queues): the card decides in which order the frames of several leave",
            "pacing",
        )
    for offload in ("send_at", "rate_limit"):
        if offload in setup.engine.offloads:
            raise ParameterError(f"fill does not go with the offload {offload}, with which the card paces", "pacing")


def _check_networks(setup: Setup, conditions: AllConditions) -> None:
    for name, side in setup.sides().items():
        if conditions.networks > 1 and side.networks is not None:
            raise ParameterError(
                f"{conditions.networks} networks are not possible: the configuration sets them in"
                f" {setup.key_of(name)}.networks",
                "networks",
            )
        if (networks := _networks(side, conditions)) > 1 and side.varying_address is not None:
            message = f"{networks} networks and {setup.key_of(name)}.varying_address exclude each other"
            raise (
                ParameterError(message, "networks")
                if side.networks is None
                else ConfigError(message, f"{setup.key_of(name)}.networks")
            )


def _check_background(setup: Setup, conditions: AllConditions) -> None:
    """Background traffic needs IPv6 on both sides, whatever the foreground is."""
    if conditions.foreground.native_percent == 0:
        return
    need = f"`foreground` {conditions.foreground.text()} sends native IPv6 in the background"
    for name, side in setup.sides().items():
        if side.ipv6 is None:
            raise ConfigError(f"is missing: {need}", f"{setup.key_of(name)}.ipv6")
        if side.ipv6.ip.is_link_local and side.has_gateway:
            raise ConfigError(
                f"is a link-local address, which no router forwards: {need}", f"{setup.key_of(name)}.ipv6"
            )
        if side.has_gateway and side.gateway_mac is None and side.gateway6 is None:
            raise ConfigError(f"is missing: {need}", f"{setup.key_of(name)}.gateway6")
