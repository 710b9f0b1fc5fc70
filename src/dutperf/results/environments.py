# SPDX-License-Identifier: Apache-2.0
"""Where a run was measured: the parts of host and tester that may change its figures, and their
changes when it was resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from dutperf.journal import Environment, Event, of_kind
from dutperf.model import Load, Value, is_load

HOST = ("name", "cpu", "cores", "usable_cores", "kernel", "kernel_options", "governor", "clock_source")
TESTER = ("engine", "dpdk", "instructions", "cores", "left.driver", "right.driver", "memory.mode")


class EnvironmentChange(Value):
    """A part of host or tester that changed when a run was resumed."""

    time: str
    """When the run was resumed (ISO 8601, UTC)."""
    name: str
    """Dotted name, beginning with ``host`` or ``tester``."""
    before: Any
    now: Any

    def sentence(self) -> str:
        what = self.name.replace(".", " ").replace("_", " ")
        return f"the run was resumed at {self.time} with another {what}: {self.before} before, {self.now} after"


def stated(environment: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The members of ``environment`` that may change the figures, by dotted names; it is a
    summary's, or an event with the same members."""
    yield from _selected(environment.get("host", {}), HOST, "host")
    yield from _selected(environment.get("tester", {}), TESTER, "tester")


def changes(events: Sequence[Event]) -> tuple[EnvironmentChange, ...]:
    """All changes of the environment in a journal's ``events``: a resumed run may have trials of
    several environments."""
    found = []
    for before, after in pairwise(of_kind(events, Environment)):
        there, here = dict(stated(before.as_json())), dict(stated(after.as_json()))
        names = [name for name in dict.fromkeys((*there, *here)) if there.get(name) != here.get(name)]
        found += [
            EnvironmentChange(time=after.time, name=name, before=there.get(name), now=here.get(name)) for name in names
        ]
    return tuple(found)


def duts(dut: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The DUT of a result, or each of several in a row."""
    row = dut.get("row")
    named = [one for one in row if isinstance(one, Mapping) and "name" in one] if isinstance(row, list) else []
    return named if len(named) > 1 else [dut]


def of_dut(dut: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What a result says of its DUT, by dotted names; of several in a row after the name of each."""
    if len(row := duts(dut)) == 1:
        yield from flat(dut)
        return
    yield "name", dut.get("name")
    for one in row:
        yield from flat({key: value for key, value in one.items() if key != "name"}, str(one["name"]))


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of JSON types by their dotted names. Lists of plain values are leaves, and loads,
    which are named by their unit."""
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


def _selected(members: Mapping[str, Any], names: tuple[str, ...], prefix: str) -> Iterator[tuple[str, Any]]:
    values = dict(flat(members))
    yield from ((f"{prefix}.{name}", values[name]) for name in names if name in values)
