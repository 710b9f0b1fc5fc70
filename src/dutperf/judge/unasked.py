# SPDX-License-Identifier: Apache-2.0
"""VLAN tags of frames that were all lost, where the DUT was not asked for its MAC address with these tags. It may not
have that VLAN, and then drops them all. That is a hint beside the loss: a DUT may have one MAC address in all VLANs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dutperf.judge.answered import ports_of
from dutperf.model import ArrivedTags, DirectionCounts, Stream, Trial, TrialResult, UnaskedTags, in_vlan
from dutperf.model.value import members_of
from dutperf.model.vlan_tags import leading, outermost

_ADDRESSES = 24
"""Hexadecimal digits of the two MAC addresses, before the tags."""


def with_unasked(result: TrialResult, trial: Trial, opened: Mapping[str, Any]) -> TrialResult:
    """The result with such tags. ``opened``: the parameters of ``open``."""
    ports, found = ports_of(opened), {}
    for direction, counts in result.all_directions().items():
        sender = direction.ports[0]
        if counts.received or not counts.sent or not result.dut_answered.ports().get(sender, False):
            continue
        if (unasked := _unasked(trial.all_streams()[direction], ports.get(sender, {}))) is not None:
            found[direction] = _with(counts, unasked)
    return result.model_copy(update=members_of(result.all_directions() | found)) if found else result


def _unasked(stream: Stream, port: Mapping[str, Any]) -> UnaskedTags | None:
    is_given = "gateway_mac" in port
    if stream.replay is not None or not (is_given or {"gateway4", "gateway6"} & set(port)):
        return None
    asked = tuple(map(in_vlan, port.get("vlans", ()))) or ("",)
    sent = dict.fromkeys(outermost(leading(frame.bytes[_ADDRESSES:])) for frame in stream.frames) or {"": None}
    others = tuple(tag for tag in sent if tag not in (() if is_given else asked))
    if not others or (is_given and others == ("",)):  # frames without a tag need nobody's VLAN
        return None
    return UnaskedTags(sent=others, asked=None if is_given else asked)


def _with(counts: DirectionCounts, unasked: UnaskedTags) -> DirectionCounts:
    tags = counts.vlan_tags or ArrivedTags()
    return counts.model_copy(update={"vlan_tags": tags.model_copy(update={"unasked": unasked})})
