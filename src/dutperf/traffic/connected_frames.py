# SPDX-License-Identifier: Apache-2.0
"""Frames of any headers and sizes in connections (RFC 9693): UDP over IP, also behind VLAN tags and IPv6
extension headers and in a tunnel to the DUT, whose addresses and ports the headers leave open. Other frames go beside
them, in no connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dutperf.frames import Endpoints, Template
from dutperf.model import DescribedField, DescribedFrame, Direction, FieldMode, VaryingAddress, VaryingField
from dutperf.model.described_frame import ConnectionPart
from dutperf.setup.conditions import Conditions
from dutperf.setup.configuration import ConfigError, ParameterError, Setup
from dutperf.traffic import parts
from dutperf.traffic.combinations import headers_of
from dutperf.traffic.described import DescribedTraffic
from dutperf.traffic.endpoints import destination_of, of_connections, own_address
from dutperf.traffic.parts import Part

PORT_BITS = 16
_UDP_SIZE = 8
_EXTENSIONS = frozenset(("hop_by_hop", "routing", "dest_options", "fragment", "ah"))
"""Headers between IP and UDP; a route's segments decide where frames go, and so no connection does."""
_ADDRESSES = {4: (20, 12, 32), 6: (40, 8, 128)}
"""By IP version: bytes of the header, where its source address is, and the bits of an address."""


class ConnectedFrames(DescribedTraffic):
    """The described frames of both directions. ``ports``: the ranges of source and destination ports."""

    def __init__(self, setup: Setup, conditions: Conditions, ports: tuple[VaryingField, VaryingField]) -> None:
        super().__init__(setup, conditions)
        self._ports = ports

    def check_kind(self) -> None:
        """Some frames of each direction belong to connections, and none of these to a flow."""
        super().check_kind()
        for direction in (self.setup.initiator_path, *filter(self.learns_destination, self.active())):
            connected = self.connected(direction, self.smallest_frame_size)
            if not connected and self.conditions.foreground.m == 0:
                raise ParameterError("leaves no frames for connections: all are native IPv6", "foreground")
            if not connected:
                raise headers_of(self.setup, direction.ports[0]).refused(
                    "no frames belong to connections: these are ip/udp without addresses and ports, with only VLAN"
                    " tags before it and IPv6 extension headers in it"
                )
            for part in connected:
                if part.flows is not None:
                    raise self.flows_in(part).refused("frames of connections have no flows: each connection is one")
            self._check_tunnel(direction)

    def _check_tunnel(self, direction: Direction) -> None:
        tunnel = self.setup.ends(direction)[0].tunnel_headers
        if tunnel is not None and tunnel.varies_by_flow:
            raise ConfigError(
                "a field of the tunnel cannot vary by flow: frames of connections have no flows",
                f"{self.setup.key_of(direction.ports[0])}.tunnel",
            )

    def connected(self, direction: Direction, frame_size: int) -> tuple[Part, ...]:
        """The parts of a direction whose frames belong to connections."""
        connected = []
        for part in self.parts_of(direction, frame_size):
            with self.refusing(direction.ports[0], part):
                connected += [part] if self._is_connected(part, direction) else []
        return tuple(connected)

    def ends_of(self, part: Part, direction: Direction) -> Endpoints:
        """What varies of the addresses is the connection's; the Responder's destinations are learned."""
        if not self._is_connected(part, direction):
            return super().ends_of(part, direction)
        sender, _ = self.setup.ends(direction)
        if self.learns_destination(direction):
            ends: Any = (own_address(sender, sender.version),) * 2
            return Endpoints(ipv4=ends) if sender.version == 4 else Endpoints(ipv6=ends)
        plain = super().ends_of(part, direction)
        return Endpoints(ipv4=plain.ipv4, ipv6=plain.ipv6)

    def finished(
        self, part: Part, frames: tuple[DescribedFrame, ...], direction: Direction
    ) -> tuple[DescribedFrame, ...]:
        frames = super().finished(part, frames, direction)
        between = self._between(part, direction)
        if between is None:
            return frames
        return tuple(self._in_connection(frame, direction, between) for frame in frames)

    def learns_destination(self, direction: Direction) -> bool:
        return direction is self.setup.responder_path

    def _in_connection(self, frame: DescribedFrame, direction: Direction, between: int) -> DescribedFrame:
        """With the parts of its connection in place of the ports that vary otherwise. ``between``: bytes between IP's
        header and UDP's."""
        fields = tuple(self._fields(frame, direction, between))
        taken = [range(one.bit, one.bit + one.bits) for one in fields]
        others = (one for one in frame.fields if not any(one.bit in bits for bits in taken))
        return frame.model_copy(update={"fields": (*others, *fields)})

    def _is_connected(self, part: Part, direction: Direction) -> bool:
        return self._between(part, direction) is not None

    def _between(self, part: Part, direction: Direction) -> int | None:
        """Bytes between the headers of IP and UDP of a part's frames; None: they belong to no connections."""
        sender, _ = self.setup.ends(direction)
        stack = parts.headed(part, part.version(sender))
        if isinstance(stack, Template) or part.native or not self.setup.has_connections(direction):
            return None
        headers = stack.headers
        at = max((number for number, one in enumerate(headers) if one.name in ("ipv4", "ipv6")), default=-1)
        before, ip, between, udp = headers[: max(at, 0)], headers[at], headers[at + 1 : -1], headers[-1]
        is_connected = (
            udp.name == "udp"
            and ip.name == f"ipv{sender.version}"
            and ip.size == _ADDRESSES[sender.version][0]
            and not {"source", "destination"} & (ip.given.keys() | udp.given.keys())
            and all(one.name in ("eth", "vlan") for one in before)
            and all(one.name in _EXTENSIONS and "segments" not in one.given for one in between)
        )
        return sum(one.size for one in between) if is_connected else None

    def _fields(self, frame: DescribedFrame, direction: Direction, between: int) -> Iterator[DescribedField]:
        sender, receiver = self.setup.ends(direction)
        size, source_at, bits = _ADDRESSES[sender.version]
        udp = 8 * (frame.tag_at - _UDP_SIZE)
        source = udp - 8 * (between + size - source_at)

        def varying(part: ConnectionPart, field: VaryingField, bit: int) -> DescribedField:
            count = 1 if field.mode is FieldMode.FIXED else field.max - field.min + 1
            return _field(part, bit, first=str(field.min), count=str(count))

        def within(address: VaryingAddress) -> int:
            return 8 * (address.offset4 if sender.version == 4 else address.offset6)

        replies = self.learns_destination(direction)
        own_networks = self.networks(sender) if replies else 1
        if (own := of_connections(sender, own_address(sender, sender.version), own_networks)) is not None:
            yield varying("source_address", own, source + within(own))
        if replies:
            yield _field("destination_address", source + bits, bits=bits, mode="learned")
            yield _field("source_port", udp, mode="learned")
            yield _field("destination_port", udp + PORT_BITS, mode="learned")
            return
        to = destination_of(receiver, sender.version)
        assert to is not None, "the configuration is checked"
        if (other := of_connections(receiver, to, self.networks(receiver))) is not None:
            yield varying("destination_address", other, source + bits + within(other))
        yield varying("source_port", self._ports[0], udp)
        yield varying("destination_port", self._ports[1], udp + PORT_BITS)


def _field(part: ConnectionPart, bit: int, **members: Any) -> DescribedField:
    return DescribedField(**{"bit": bit, "bits": PORT_BITS, "mode": "connection", "part": part, **members})
