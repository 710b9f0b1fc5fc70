# SPDX-License-Identifier: Apache-2.0
"""Where a run was measured: what of host and tester may change its figures, and whether a resumed
run went on elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from dutperf.journal import Environment, Event, of_kind
from dutperf.model import Load, Value, is_load

HOST = ("name", "cpu", "cores", "usable_cores", "kernel", "kernel_options", "governor", "clock_source")
TESTER = ("engine", "dpdk", "cores", "left.driver", "right.driver", "memory.mode")


class Move(Value):
    """Something about host or tester that was not the same after a run was resumed."""

    time: str
    """When it was resumed (ISO 8601, UTC)."""
    name: str
    """Dotted, from ``host`` or ``tester`` on."""
    before: Any
    now: Any

    def said(self) -> str:
        """For a person."""
        what = self.name.replace(".", " ").replace("_", " ")
        return f"the run was resumed at {self.time} on another {what}: {self.before} before, {self.now} from then on"


def stated(environment: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What may change the figures, by dotted names, of a summary's ``environment`` or an event that
    has its members."""
    yield from _known(environment.get("host", {}), HOST, "host")
    yield from _known(environment.get("tester", {}), TESTER, "tester")


def moves(events: Sequence[Event]) -> tuple[Move, ...]:
    """Everything that was otherwise after the run of a journal's ``events`` had been resumed: its
    trials are not of one place."""
    places = list(of_kind(events, Environment))
    found = []
    for before, after in pairwise(places):
        there, here = dict(stated(before.as_json())), dict(stated(after.as_json()))
        names = [name for name in dict.fromkeys((*there, *here)) if there.get(name) != here.get(name)]
        found += [Move(time=after.time, name=name, before=there.get(name), now=here.get(name)) for name in names]
    return tuple(found)


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of JSON types by their dotted names; a list of plain values is a leaf, and a load,
    whose name is that of its unit."""
    if is_load(value):
        load, (parent, dot, _) = Load.of_json(value), name.rpartition(".")
        yield f"{parent}{dot}{load.unit.column}", load.value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(entry, Mapping | list) for entry in value):
        for number, entry in enumerate(value):
            yield from flat(entry, f"{name}.{number}")
    else:
        yield name, value


def _known(members: Mapping[str, Any], names: tuple[str, ...], prefix: str) -> Iterator[tuple[str, Any]]:
    values = dict(flat(members))
    yield from ((f"{prefix}.{name}", values[name]) for name in names if name in values)
