# SPDX-License-Identifier: Apache-2.0
"""With which VLAN tags test frames may arrive, by the configuration: those of the frames that the receiving side sends
itself. So ``--frame`` is for a DUT that keeps tags; ``left.frame`` and ``right.frame``, or streams of one direction,
are for one that adds, removes or changes them (docs/frames.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from dutperf.frames import Endpoints, build
from dutperf.model import DescribedFrame, VlanTags, in_vlan
from dutperf.model.vlan_tags import leading
from dutperf.setup.configuration import Side
from dutperf.traffic.parts import Part, headers_of

UNTAGGED: VlanTags = ""
_FIRST, _TYPE, _TAG, _PRIORITY = 96, 16, 32, 4
"""The first type is behind so many bits; bits of a type, of a tag, and of its priority, which follows the type."""
_DIGIT = 4
_ANY_ADDRESS = Endpoints(ipv4=(IPv4Address(0), IPv4Address(0)), ipv6=(IPv6Address(0), IPv6Address(0)))


@dataclass(frozen=True)
class OfBack:
    """Tags of frames of the other direction. None stands for tags that vary."""

    tags: tuple[VlanTags | None, ...]
    or_as_sent: bool
    """Whether a frame may also arrive with its own."""


def of_back(part: Part, receiver: Side) -> OfBack:
    """The tags of other frames with which those of ``part`` may arrive at ``receiver``.

    Raises:
        FrameError: headers of the other direction that are not possible.
    """
    stacks = [headers_of(text, receiver.version) for text in part.back]
    return OfBack(tuple(tags_of(build(one, one.min_size, _ANY_ADDRESS)) for one in stacks), part.keeps_tags)


def of_described(frame: DescribedFrame, back: OfBack, receiver: Side) -> tuple[VlanTags, ...] | None:
    """The tags with which ``frame`` may arrive at ``receiver``; None: they vary, and are not compared."""
    each = ((tags_of(frame),) if back.or_as_sent else ()) + back.tags
    known = [one for one in each if one is not None]
    return _with_vlans(known, receiver) if len(known) == len(each) else None


def of_plain(receiver: Side) -> tuple[VlanTags, ...] | None:
    """The same of plain frames; None: they arrive without a tag."""
    return _with_vlans((UNTAGGED,), receiver) if receiver.vlans else None


def _with_vlans(tags: Iterable[VlanTags], receiver: Side) -> tuple[VlanTags, ...]:
    """Where frames may arrive without a tag, they may arrive in the VLANs in which the DUT has its addresses."""
    each = tuple(dict.fromkeys(tags))
    return (*each, *map(in_vlan, receiver.vlans or ())) if UNTAGGED in each else each


def sent_with(frames: Iterable[DescribedFrame]) -> tuple[VlanTags, ...]:
    """The tags of each frame; of those that vary the first ones."""
    return tuple(leading(frame.bytes[_FIRST // _DIGIT :]) for frame in frames)


def tags_of(frame: DescribedFrame) -> VlanTags | None:
    """The tags of a frame; None: they vary."""
    found = leading(frame.bytes[_FIRST // _DIGIT :])
    end = _FIRST + len(found) * _DIGIT
    fixed = set(range(_FIRST, end + _TYPE))
    for tag in range(_FIRST, end, _TAG):
        fixed -= set(range(tag + _TYPE, tag + _TYPE + _PRIORITY))
    return None if any(fixed & set(range(one.bit, one.bit + one.bits)) for one in frame.fields) else found
