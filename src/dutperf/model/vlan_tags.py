# SPDX-License-Identifier: Apache-2.0
"""VLAN tags of test frames (IEEE 802.1Q, 802.1ad): those that frames are sent with, and what arrived instead.

Tags are written as the bytes that they have in the frame, outermost first, in hexadecimal digits and with priority 0:
``8100000a`` is VLAN 10, and the empty text is a frame without a tag. The priority (PCP, DEI) is left out: routers and
bridges set it by rules of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, StringConstraints

from dutperf.model.value import Count, Value

VlanTags = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{4}0[0-9a-f]{3})*$")]
"""Also of frames that arrive, which may have any number."""
TagChoices = Annotated[
    tuple[Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{4}0[0-9a-f]{3}){0,8}$")], ...],
    Field(min_length=1, max_length=128),
]
"""With any of these a frame may arrive."""

_CUSTOMER = "8100"
_TYPES = frozenset({_CUSTOMER, "88a8", "9100"})
_TYPE, _TAG = 4, 8
"""Digits of a type, and of a tag."""


def leading(digits: str) -> VlanTags:
    """The tags at the beginning of a frame's bytes behind its MAC addresses, in hexadecimal digits."""
    found, tag = "", digits[:_TAG]
    while len(tag) == _TAG and tag[:_TYPE] in _TYPES:
        found += f"{tag[:_TYPE]}0{tag[_TYPE + 1 :]}"
        tag = digits[len(found) :][:_TAG]
    return found


def outermost(tags: VlanTags) -> VlanTags:
    """The outermost tag; empty for none, and for one that has a priority alone (VLAN 0)."""
    tag = tags[:_TAG]
    return "" if tag.endswith("0000") else tag


def in_vlan(vlan: int) -> VlanTags:
    """One tag of IEEE 802.1Q."""
    return f"{_CUSTOMER}{vlan:04x}"


def tags_in_words(tags: VlanTags) -> str:
    """``VLAN 10``, ``VLAN 5 (type 0x88a8) / VLAN 10``, or ``no VLAN tag``."""
    each = [tags[at : at + _TAG] for at in range(0, len(tags), _TAG)]
    return " / ".join(map(_word, each)) or "no VLAN tag"


def _either(tags: tuple[VlanTags, ...]) -> str:
    return " or ".join(map(tags_in_words, tags))


def _word(tag: str) -> str:
    kind = "" if tag.startswith(_CUSTOMER) else f" (type 0x{tag[:_TYPE]})"
    return f"VLAN {int(tag[_TYPE:], 16)}{kind}"


def others_in_words(seen: Sequence[tuple[int, str]], frames: int, unnamed: str) -> str:
    """``500 with no VLAN tag, 3 with others``: so many of all ``frames`` with each thing that was seen."""
    rest = frames - sum(one for one, _ in seen)
    return ", ".join(f"{one:,} {what}" for one, what in (*seen, (rest, unnamed)) if one)


class OtherTags(Value):
    """Frames that arrived with the same tags, which are not among those that they should have."""

    tags: VlanTags
    frames: Annotated[int, Field(ge=1)]


class UnaskedTags(Value):
    """Tags of the frames of a direction of which none arrived, with which the DUT was not asked for the MAC address to
    which they were sent."""

    sent: tuple[VlanTags, ...]
    """The outermost one of each."""
    asked: tuple[VlanTags, ...] | None = None
    """With which it was asked, and answered; None: the configuration gives its MAC address."""

    def words(self, port: str) -> str:
        """``frames carry VLAN 100, but the DUT answered ARP or Neighbour Discovery with no VLAN tag at the left
        port``."""
        frames = f"frames carry {_either(self.sent)}"
        if self.asked is None:
            return f"{frames}, and at the {port} port the DUT was not asked whether it has that (gateway_mac)"
        return (
            f"{frames}, but at the {port} port the DUT answered ARP or Neighbour Discovery with {_either(self.asked)}:"
            " it may not have their VLAN"
        )


class ArrivedTags(Value):
    """What was seen of the VLAN tags of a direction's test frames; other frames than these had the right ones."""

    other: Count = 0
    """Test frames that arrived with other tags than they should have. They count as received."""
    seen: tuple[OtherTags, ...] = ()
    """The first few of these tags."""
    hidden: bool = False
    """Whether the receiving port does not see the outer tag: nothing was compared."""
    unasked: UnaskedTags | None = None
    """If none of the direction's frames arrived: what may explain it."""

    def words(self) -> str:
        """``500 with no VLAN tag, 3 with VLAN 20``."""
        seen = [(one.frames, f"with {tags_in_words(one.tags)}") for one in self.seen]
        return others_in_words(seen, self.other, "with others")
