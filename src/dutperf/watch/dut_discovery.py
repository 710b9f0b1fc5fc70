# SPDX-License-Identifier: Apache-2.0
"""Finds the cores of a DUT on this machine, which the tester avoids, from the facts of
:mod:`dutperf.watch.namespace_probe`.

The DUT is everything behind the tester's veth ports: all namespaces that can be reached from their
peers, without the one in which the rest of this machine runs; and whoever has its TUN ports open. Its
kernel work runs where receive packet steering or threaded NAPI puts it, else in the sender's system
call, on the tester's own core. Its processes run where their threads' affinity allows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dutperf.machine.cpu_sets import Cores, from_list, from_mask
from dutperf.spelling import with_and

Facts = Mapping[str, Any]
"""The result of :func:`dutperf.watch.namespace_probe.facts`."""
Place = tuple[int, int]
"""An interface: its namespace and its index there."""
_LONGEST_NAME = 15
"""Characters that the kernel keeps of a thread's name."""


@dataclass(frozen=True)
class Work:
    """A task of the DUT, and the cores on which it may run."""

    what: str
    cores: Cores
    is_process: bool = False


@dataclass(frozen=True)
class Discovery:
    """The DUT as it was found."""

    usable: Cores
    """Cores that the engine may use."""
    online: Cores
    """Cores of the machine."""
    ports: tuple[str, ...]
    """The tester's interfaces."""
    works: tuple[Work, ...] = ()
    namespaces: tuple[int, ...] = ()
    """Namespaces of the DUT alone."""
    pids: tuple[int, ...] = ()
    """The DUT's processes in other namespaces, and kernel threads that work for it."""
    missing: tuple[str, ...] = ()
    """Ports whose peer was not found."""

    @property
    def cores(self) -> Cores:
        """The DUT's cores, without the tasks that may run on every core."""
        return Cores().union(*(work.cores for work in self.confined))

    @property
    def confined(self) -> tuple[Work, ...]:
        """Tasks with cores of their own."""
        return tuple(work for work in self.works if not self._floats(work))

    @property
    def floating(self) -> tuple[Work, ...]:
        """Tasks that may run on every core."""
        return tuple(work for work in self.works if self._floats(work))

    @property
    def steered(self) -> bool:
        """Whether the DUT's kernel work has cores of its own."""
        return any(not work.is_process for work in self.works)

    def _floats(self, work: Work) -> bool:
        return any(work.cores >= cores and len(cores) > 1 for cores in (self.usable, self.online))


def discover(facts: Facts, ports: Sequence[str], shared: Collection[int] = ()) -> Discovery:
    """Find the DUT behind ``ports``. The processes of ``shared`` namespaces do not count as the DUT's. Raises KeyError,
    ValueError: the facts do not have the probe's form."""
    seen = _Seen(facts, ports, {facts["tester"], facts["host"], *shared})
    ends = {name: seen.other_end(name) for name in ports}
    places = seen.reachable({end for end in ends.values() if end is not None})
    private = {namespace for namespace, _ in places if namespace not in seen.shared}
    taps = seen.own_tuns()
    processes = list(seen.processes(private, places | taps.keys()))
    return Discovery(
        usable=frozenset(facts["usable"]),
        online=from_list(facts["online"]),
        ports=tuple(ports),
        works=(
            *_steering([seen.interfaces[place] for place in sorted(places)]),
            *(_work_of(one, one["namespace"] in private) for one in processes),
        ),
        namespaces=tuple(sorted(private)),
        pids=tuple(one["pid"] for one in processes if one["namespace"] not in private),
        missing=tuple(name for name, end in ends.items() if end is None and name not in taps.values()),
    )


@dataclass(frozen=True)
class _Seen:
    """The facts, with the tester's ports."""

    facts: Facts
    ports: Sequence[str]
    shared: set[int]

    @property
    def interfaces(self) -> dict[Place, Facts]:
        """All interfaces of this machine."""
        return {
            (space["inode"], one["index"]): one for space in self.facts["namespaces"] for one in space["interfaces"]
        }

    def other_end(self, name: str) -> Place | None:
        """The peer of a veth in the tester's namespace; None where the interface is not a veth, or
        its peer is another port of the tester or not accessible."""
        mine = {one["name"]: place for place, one in self.interfaces.items() if place[0] == self.facts["tester"]}
        return self._across(mine[name]) if name in mine else None

    def own_tuns(self) -> dict[Place, str]:
        """The tester's ports that are TUN devices: whoever has one open, as a virtual machine, is the DUT."""
        return {
            place: one["name"]
            for place, one in self.interfaces.items()
            if place[0] == self.facts["tester"] and one["tun"] and one["name"] in self.ports
        }

    def _across(self, place: Place) -> Place | None:
        """The peer in a veth pair, in which each end names the other."""
        interfaces = self.interfaces
        end = (interfaces[place]["peer_namespace"], interfaces[place]["peer"])
        if (
            end == place
            or end not in interfaces
            or (interfaces[end]["peer_namespace"], interfaces[end]["peer"]) != place
        ):
            return None
        return None if end[0] == self.facts["tester"] and interfaces[end]["name"] in self.ports else end

    def reachable(self, places: set[Place]) -> set[Place]:
        """All interfaces of the DUT: those of its namespaces, and their peers in others."""
        found, waiting = set[Place](), set(places)
        while waiting:
            place = waiting.pop()
            found.add(place)
            if place[0] in self.shared:
                continue
            for other in self.interfaces:
                ends = {other, self._across(other)} if other[0] == place[0] else set()
                waiting |= {end for end in ends if end is not None and end[0] != self.facts["tester"]} - found
        return found

    def processes(self, namespaces: Collection[int], places: Collection[Place]) -> Iterator[Facts]:
        """The processes in ``namespaces``, owners of the DUT's TUN devices, and kernel threads of
        interfaces with threaded NAPI."""
        own = [self.interfaces[place] for place in places]
        napi = [f"napi/{one['name']}-"[:_LONGEST_NAME] for one in own if one["threaded"]]
        tuns = {one["name"] for one in own if one["tun"]}
        others = {(place[0], one["name"]) for place, one in self.interfaces.items() if place not in places}
        for one in self.facts["processes"]:
            owner = any(
                name in tuns and (one["namespace"], name) not in others for name in one["tuns"]
            )  # a TUN device may be in another namespace than its owner
            if one["namespace"] in namespaces or owner or any(one["name"].startswith(name) for name in napi):
                yield one


def _steering(interfaces: Sequence[Facts]) -> Iterator[Work]:
    """Receive packet steering, one task for each set of cores."""
    by_cores: dict[Cores, list[str]] = {}
    for one in interfaces:
        if cores := Cores().union(*(from_mask(mask) for mask in one["rps"])):
            by_cores.setdefault(cores, []).append(one["name"])
    yield from (Work(f"receive packet steering of {with_and(names)}", cores) for cores, names in by_cores.items())


def _work_of(process: Facts, lives_there: bool) -> Work:
    cores = Cores().union(*(from_list(text) for text in process["cores"]))
    return Work(f"{process['name']} ({process['pid']})", cores, is_process=lives_there or bool(process["tuns"]))
