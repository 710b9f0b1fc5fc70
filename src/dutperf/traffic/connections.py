# SPDX-License-Identifier: Apache-2.0
"""Connections through a stateful DUT (RFC 9693 sections 4.1 to 4.7): which ports they have, the phase that opens them,
and what a later phase does with them."""

from __future__ import annotations

from functools import cached_property
from math import ceil
from typing import Any

from dutperf.model import (
    MOST_CONNECTIONS,
    TRIAL_NUMBERS,
    Case,
    Connections,
    ConnectionUse,
    Direction,
    FieldMode,
    FrameSpec,
    Load,
    Phase,
    Stream,
    Trial,
    VaryingField,
    members_of,
)
from dutperf.setup.conditions import WithDuration
from dutperf.setup.configuration import ConfigError, ParameterError, Setup, Side
from dutperf.traffic import arriving_tags
from dutperf.traffic.base import TrafficKind
from dutperf.traffic.connected_frames import ConnectedFrames
from dutperf.traffic.endpoints import foreground, of_connections, own_address
from dutperf.traffic.parts import is_described
from dutperf.traffic.plain import PlainTraffic

MOST_SOURCES = 40_000
"""Source ports, if the number of connections chooses: RFC 9693 recommends a few ten thousand of them, and as many
destination ports as are needed."""
FIRST_SOURCE_PORT, FIRST_DESTINATION_PORT = 1024, 1
"""RFC 4814 4.5."""
LAST_PORT = 65_535
_NS = 1_000_000_000
LONGEST_S = 86_400
"""Sending time of a phase."""


class ConnectionTraffic(TrafficKind):
    """The Initiator opens ``connections``, then both sides use them: the Responder's destinations are those that the
    tester learns."""

    @property
    def count(self) -> int:
        """Connections of a trial."""
        assert self.conditions.connections is not None
        return self.conditions.connections

    def trial(self, case: Case, load: Load, number: int) -> Trial:
        """As :meth:`dutperf.traffic.TrafficKind.trial`. Raises ParameterError: the DUT's timeout is shorter than the
        trial (RFC 9693 section 4.4)."""
        made = super().trial(case, load, number)
        if isinstance(self.given, WithDuration):  # others make their phases themselves
            self._check_timeout((*made.preliminary, made.alone()))
        return made

    def phases_before(self, members: dict[str, Any], frame_size: int, number: int) -> tuple[Phase, ...]:
        opening = self.opening(frame_size, self.share_of_media("preliminary_rate", frame_size), number)
        of_traffic = {**members, "connections": self._of_phase(ConnectionUse.TRAFFIC)}
        return (opening, *self.warm_up(of_traffic, number + 1, self._gap_ns))

    def after_phases(self, preliminary: tuple[Phase, ...]) -> dict[str, Any]:
        is_warm = len(preliminary) > 1
        return {"rest_ns": None if is_warm else self._gap_ns, "connections": self._of_phase(ConnectionUse.TRAFFIC)}

    def stream(self, direction: Direction, frame_size: int, rate_fps: int) -> Stream:
        """The Initiator's frames, or the Responder's; of other paths frames without connections."""
        if self._described is not None:
            return self._described.stream(direction, frame_size, rate_fps)
        if not self.setup.has_connections(direction):
            return PlainTraffic(self.setup, self.given).stream(direction, frame_size, rate_fps)
        return self._plain(direction, frame_size, rate_fps)

    def smallest_sizes(self) -> list[int]:
        return [] if self._described is None else self._described.smallest_sizes()

    @cached_property
    def _described(self) -> ConnectedFrames | None:
        """None: its frames are plain."""
        is_mixed = self.conditions.foreground.native_percent > 0
        if not is_mixed and not is_described(self.conditions, self.setup):
            return None
        return ConnectedFrames(self.setup, self.given, self._ports)

    def _plain(self, direction: Direction, frame_size: int, rate_fps: int) -> Stream:
        sender, receiver = self.setup.ends(direction)
        size_ipv4 = self.size_ipv4(frame_size)
        learns = self.learns_destination(direction)
        if learns:
            own = own_address(sender, sender.version)
            size = frame_size if sender.version == 6 else size_ipv4
            frames = FrameSpec(version=sender.version, size=size, source=own, destination=own)
        else:
            frames = foreground(sender, receiver, frame_size, size_ipv4)
        networks, own_networks = (1, self.networks(sender)) if learns else (self.networks(receiver), 1)
        source_port, destination_port = self._ports
        return Stream(
            **self.rhythm(direction, frame_size, rate_fps),
            foreground=frames,
            networks=networks,
            source_address=of_connections(sender, frames.source, own_networks),
            destination_address=None if learns else of_connections(receiver, frames.destination, networks),
            arrives_with=arriving_tags.of_plain(receiver),
            source_port=source_port,
            destination_port=destination_port,
        )

    @property
    def room(self) -> int:
        """The most connections for which there are combinations of ports and addresses."""
        return room(self.setup, self.networks(self._responder))

    @cached_property
    def _ports(self) -> tuple[VaryingField, VaryingField]:
        networks = self.networks(self._responder)
        source, destination = ports(self.setup, self.count, networks)
        return _field(source), _field(destination)

    @property
    def _responder(self) -> Side:
        return self.setup.ends(self.setup.initiator_path)[1]

    def learns_destination(self, direction: Direction) -> bool:
        """Whether the frames of ``direction`` are the Responder's."""
        return direction is self.setup.responder_path

    # --- phases that procedures compose -----------------------------------------------------------

    def opening(self, frame_size: int, rate_fps: int, number: int) -> Phase:
        """The phase with the given number that opens the connections, ``rate_fps`` in a second, one by each frame
        (RFC 9693 section 4.2)."""
        path = self.setup.initiator_path
        return self._one_frame_each(path, frame_size, rate_fps, number, ConnectionUse.OPEN, self._rest_ns)

    def replies(self, frame_size: int, rate_fps: int, number: int) -> Phase:
        """A phase in which the Responder sends one frame in each connection, ``rate_fps`` in a second (RFC 9693 section
        4.6). Raises ConfigError: see :meth:`trial`; or no path leads from the Responder to the Initiator."""
        path = self.setup.responder_path
        if path is None:
            initiator, responder = self.setup.initiator_path.ports
            raise ConfigError(f"is missing {responder}->{initiator}: the Responder replies in each connection", "paths")
        return self._one_frame_each(path, frame_size, rate_fps, number, ConnectionUse.EACH, self._gap_ns)

    def lowest_rate(self, frames_each: float) -> int:
        """The lowest rate, in connections/s, at which ``frames_each`` frames in each connection, and what is waited
        before and after them, end before the DUT's timeout (RFC 9693 section 4.4); without a timeout 1. Raises
        ParameterError: the waits alone take longer."""
        timeout_s, chosen = self.setup.stateful.timeout_s, self.conditions
        if timeout_s is None or chosen.connections is None:
            return 1
        phases = 2 if frames_each > 1 else 1
        waits_s = chosen.learning_rest_s + phases * chosen.drain_s + (phases - 1) * chosen.phase_gap_s
        if waits_s >= timeout_s:
            raise ParameterError(
                f"the DUT deletes a connection after {timeout_s:g} s without a frame (stateful.timeout_s), but the"
                f" waits of a trial alone take {waits_s:g} s: raise the DUT's timeout, or choose shorter waits",
                "drain_s",
            )
        return int(self.count * frames_each / (timeout_s - waits_s)) + 1

    def _one_frame_each(
        self, path: Direction, frame_size: int, rate_fps: int, number: int, use: ConnectionUse, rest_ns: int | None
    ) -> Phase:
        self.check_once()
        stream = self.stream(path, frame_size, rate_fps).with_rate(rate_fps).only_connected()
        return Phase(
            trial=number % TRIAL_NUMBERS,
            seed=self.conditions.seed,
            rest_ns=rest_ns,
            duration_ns=duration_ns(self.count, rate_fps),
            drain_ns=round(self.conditions.drain_s * _NS),
            burst=self.conditions.tx_burst,
            connections=self._of_phase(use),
            **members_of({path: stream}),
        )

    @property
    def _gap_ns(self) -> int | None:
        return round(self.conditions.phase_gap_s * _NS) or None

    def _of_phase(self, use: ConnectionUse) -> Connections:
        """What a phase does with the connections."""
        chosen = self.setup.stateful
        return Connections(
            use=use,
            initiator=self.setup.initiator_path,
            count=self.count,
            order=chosen.order,
            seed=self.conditions.seed,
            responder=chosen.responder,
            version=self._responder.version,
        )

    def _check_timeout(self, phases: tuple[Phase, ...]) -> None:
        timeout_s, needed_s = self.setup.stateful.timeout_s, sum(phase.whole_s for phase in phases)
        if timeout_s is not None and timeout_s <= needed_s:
            raise ParameterError(
                f"the DUT deletes a connection after {timeout_s:g} s without a frame (stateful.timeout_s), but the"
                f" phases of a trial take {needed_s:,.1f} s: raise the DUT's timeout, or choose shorter trials, fewer"
                " connections or a higher `preliminary_rate`",
                "connections",
            )

    def check_kind(self) -> None:
        """The ranges have enough combinations, and frames of any headers belong to connections."""
        _ = self._ports
        if self._described is not None:
            self._described.check_kind()


def ports(setup: Setup, connections: int, networks: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The ranges of source and destination ports of so many connections to ``networks`` networks: first and last port
    each. Raises ParameterError: the ranges of the configuration have fewer combinations. Raises ConfigError: they have
    more than can be put in an order."""
    chosen, addresses = setup.stateful, networks * _addresses(setup)
    sources = None if chosen.source_ports is None else _count(chosen.source_ports)
    destinations = None if chosen.destination_ports is None else _count(chosen.destination_ports)
    if destinations is None:
        destinations = max(1, ceil(connections / (addresses * (sources or MOST_SOURCES))))
    if sources is None:
        sources = max(1, ceil(connections / (addresses * destinations)))
    source = chosen.source_ports or (FIRST_SOURCE_PORT, FIRST_SOURCE_PORT + sources - 1)
    destination = chosen.destination_ports or (FIRST_DESTINATION_PORT, FIRST_DESTINATION_PORT + destinations - 1)
    if max(source[1], destination[1]) > LAST_PORT or sources * destinations * addresses < connections:
        times = f" × {addresses:,} pairs of addresses" if addresses > 1 else ""
        raise ParameterError(
            f"{connections:,} connections are more than the ranges have: {sources:,} source ports ×"
            f" {destinations:,} destination ports{times} (`stateful` of the configuration)",
            "connections",
        )
    if sources * destinations * addresses > MOST_CONNECTIONS:
        raise ConfigError(
            f"{sources:,} source ports × {destinations:,} destination ports × {addresses:,} pairs of addresses are more"
            f" combinations than can be put in an order ({MOST_CONNECTIONS:,}): choose smaller ranges",
            "stateful",
        )
    return source, destination


def room(setup: Setup, networks: int) -> int:
    """The most connections that have :func:`ports`."""
    chosen = setup.stateful
    sources = LAST_PORT - FIRST_SOURCE_PORT + 1 if chosen.source_ports is None else _count(chosen.source_ports)
    destinations = LAST_PORT if chosen.destination_ports is None else _count(chosen.destination_ports)
    return min(MOST_CONNECTIONS, sources * destinations * networks * _addresses(setup))


def duration_ns(connections: int, rate_fps: int) -> int:
    """Sending time of a phase with one frame in each connection. Raises ParameterError: it is longer than a day."""
    time_ns = max(1, connections * _NS // rate_fps)
    if time_ns > LONGEST_S * _NS:
        raise ParameterError(
            f"{connections:,} connections take {time_ns / 1e9:,.0f} s at {rate_fps:,} in a second: more than a day",
            "connections",
        )
    return time_ns


def _addresses(setup: Setup) -> int:
    ranges = [side.varying_address for side in setup.sides().values()]
    pairs = 1
    for one in ranges:
        pairs *= 1 if one is None or one.mode is FieldMode.FIXED else one.max - one.min + 1
    return pairs


def _count(ports: tuple[int, int]) -> int:
    return ports[1] - ports[0] + 1


def _field(ports: tuple[int, int]) -> VaryingField:
    mode = FieldMode.FIXED if ports[0] == ports[1] else FieldMode.RANDOM
    return VaryingField(mode=mode, min=ports[0], max=ports[1])
