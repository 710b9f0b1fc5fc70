# SPDX-License-Identifier: Apache-2.0
"""The frames that modifiers add to a stream (RFC 2544 11.1 to 11.3, RFC 5180 6.1): broadcasts, management
queries, routing updates. They are those of the link: a port with a tunnel sends them outside of it, and one whose test
frames are behind VLAN tags behind those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from dutperf.frames import additional
from dutperf.model import MOST_FRAMES_IN_TURN, AdditionalFrames, BytesAt, Direction, VlanTags
from dutperf.setup.conditions import AllConditions
from dutperf.setup.configuration import ParameterError, Setup, Side

TEST_FRAMES_PER_BROADCAST = 99
"""One frame in a hundred is a broadcast (RFC 2544 11.1)."""
QUERY_NS = 1_000_000_000
UPDATE_NS = 30_000_000_000
"""RFC 2544 C.2.3, IP-RIP."""
UPDATED = 6
"""Networks of an update (RFC 2544 C.2.6.2)."""
METRICS = (7, 8)
"""Of the states A and B, between which updates alternate (RFC 2544 11.3); 7 is that of C.2.6.2."""
LINK_LOCAL = IPv6Address("fe80::2")
"""Source of RIPng updates; the same on both links."""
_TAGS_AT = 24
"""Of a frame in hexadecimal digits: behind the MAC addresses."""
_NETWORKS = {
    4: ("198.18.{}.0/24", "198.19.{}.0/24"),
    6: ("2001:2:0:40{:02x}::/64", "2001:2:0:c0{:02x}::/64"),
}
"""Behind the phantom routers of the ports, which have them by turns."""
_FIRST = 65
"""They begin here (RFC 2544 C.2.2.2)."""


def frames_of(
    setup: Setup, conditions: AllConditions, direction: Direction, frame_size: int, vlan_tags: Sequence[VlanTags] = ()
) -> tuple[AdditionalFrames, ...]:
    """The additional frames of a path. ``frame_size``: of the IPv4 test frames, in bytes. ``vlan_tags``: those of the
    test frames, which the additional ones have in turn. Raises ParameterError: no side can send them."""
    tags = tuple(dict.fromkeys(vlan_tags)) or ("",)
    each = _frames_of(setup, conditions, direction, frame_size - max(map(len, tags)) // 2)
    return tuple(_behind(tags[: MOST_FRAMES_IN_TURN // len(one.frames)], one) for one in each)


def _behind(tags: Sequence[VlanTags], one: AdditionalFrames) -> AdditionalFrames:
    frames = tuple(frame[:_TAGS_AT] + tag + frame[_TAGS_AT:] for frame in one.frames for tag in tags)
    return one.model_copy(update={"frames": frames})


def _frames_of(
    setup: Setup, conditions: AllConditions, direction: Direction, frame_size: int
) -> Iterator[AdditionalFrames]:
    chosen, active = conditions.modified_by, setup.active(conditions.active())
    sender = _sender(setup, direction)
    if chosen.broadcast:
        if all(_sender(setup, one).link_version == 6 for one in active):
            raise ParameterError(
                "broadcast is for IPv4: IPv6 has no broadcast frames (RFC 5180 section 6)", "modifiers"
            )
        if sender.link_version == 4:
            yield _broadcast(sender, tuple(setup.path_ends()).index(direction), frame_size)
    if chosen.management and direction == active[0]:
        yield _management(sender)
    if chosen.routing_updates and direction == _first_from(direction.sending_port, active):
        yield _routing_updates(sender, tuple(setup.sides()).index(direction.sending_port))


def _sender(setup: Setup, direction: Direction) -> Side:
    return setup.ends(direction)[0]


def _first_from(port: str, active: Iterable[Direction]) -> Direction:
    """The first path from a port: a link has one phantom router."""
    return next(path for path in active if path.sending_port == port)


def _broadcast(sender: Side, number: int, frame_size: int) -> AdditionalFrames:
    """``number``: of the path."""
    return AdditionalFrames(
        name="broadcast",
        frames=(additional.broadcast(_own4(sender), number, frame_size).hex(),),
        after_frames=TEST_FRAMES_PER_BROADCAST,
        forwarded=(_at(*additional.broadcast_mark(number)),),
    )


def _management(sender: Side) -> AdditionalFrames:
    version = sender.link_version
    own, router = sender.address(version), sender.gateway(version)
    if own is None or router is None:
        raise ParameterError(
            f"management asks the DUT, whose address is missing in the configuration (gateway{version})",
            "modifiers",
        )
    return AdditionalFrames(
        name="management",
        frames=(additional.query(own.ip, router).hex(),),
        destination_mac="next_hop4" if version == 4 else "next_hop6",
        every_ns=QUERY_NS,
        replies=tuple(_at(*mark) for mark in additional.reply_marks(own.ip, router)),
    )


def _routing_updates(sender: Side, port: int) -> AdditionalFrames:
    """``port``: the number of the sender's."""
    first = _FIRST + UPDATED * (port // 2)
    texts = [_NETWORKS[sender.link_version][port % 2].format(first + number) for number in range(UPDATED)]
    if sender.link_version == 4:
        networks = [IPv4Network(text) for text in texts]
        frames = [additional.rip(_own4(sender), networks, metric) for metric in METRICS]
    else:
        networks6 = [IPv6Network(text) for text in texts]
        frames = [additional.ripng(LINK_LOCAL, networks6, metric) for metric in METRICS]
    return AdditionalFrames(
        name="routing-updates",
        frames=tuple(frame.hex() for frame in frames),
        every_ns=UPDATE_NS,
        forwarded=(_at(*additional.routing_mark(frames[0])),),
    )


def _own4(side: Side) -> IPv4Address:
    assert side.ipv4 is not None, "the configuration is checked"
    return side.ipv4.ip


def _at(place: int, content: bytes) -> BytesAt:
    return BytesAt(at=place, bytes=content.hex())
