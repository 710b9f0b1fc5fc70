# SPDX-License-Identifier: Apache-2.0
"""Where a DUT on this machine works, from what :mod:`dutperf.tester.namespace_probe` saw: the cores
that the tester keeps off.

The DUT is what stands at the other ends of the tester's veth ports: all namespaces that can be
reached from there, but for the one in which everything else on this machine runs. Its kernel work
is done where receive packet steering or threaded NAPI put it, else in the call of whoever sends to
it: on the tester's own core. Its processes work where their threads may run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dutperf.tester.cpu_sets import Cores, from_list, from_mask

Facts = Mapping[str, Any]
"""As :func:`dutperf.tester.namespace_probe.facts` has them."""
Place = tuple[int, int]
"""An interface: its namespace and its index there."""
_LONGEST_NAME = 15
"""Characters that the kernel keeps of a thread's name."""


@dataclass(frozen=True)
class Work:
    """Something that the DUT does, and the cores on which it may be done."""

    what: str
    cores: Cores
    is_process: bool = False


@dataclass(frozen=True)
class Discovery:
    """What was found of the DUT."""

    usable: Cores
    """Those that the engine may use."""
    online: Cores
    """Those of the machine."""
    ports: tuple[str, ...]
    """The interfaces at whose other ends it was looked for."""
    works: tuple[Work, ...] = ()
    namespaces: tuple[int, ...] = ()
    """Those that are the DUT's alone."""
    pids: tuple[int, ...] = ()
    """The DUT's processes elsewhere, and the kernel's threads that work for it."""
    missing: tuple[str, ...] = ()
    """Ports of which the other end was not found."""

    @property
    def cores(self) -> Cores:
        """The cores that the DUT was given; what may be done on every core says nothing about them."""
        return Cores().union(*(work.cores for work in self.confined))

    @property
    def confined(self) -> tuple[Work, ...]:
        """What has cores of its own."""
        return tuple(work for work in self.works if not self._floats(work))

    @property
    def floating(self) -> tuple[Work, ...]:
        """What may be done on every core."""
        return tuple(work for work in self.works if self._floats(work))

    @property
    def steered(self) -> bool:
        """Whether the DUT's kernel has cores of its own to work on."""
        return any(not work.is_process for work in self.works)

    def _floats(self, work: Work) -> bool:
        return any(work.cores >= cores and len(cores) > 1 for cores in (self.usable, self.online))


def discover(facts: Facts, ports: Sequence[str], shared: Collection[int] = ()) -> Discovery:
    """What stands at the other ends of ``ports``. The processes of ``shared`` namespaces are not
    taken for the DUT's.

    Raises:
        KeyError, ValueError: the facts are not what the probe says.
    """
    seen = _Seen(facts, ports, {facts["tester"], facts["host"], *shared})
    ends = {name: seen.other_end(name) for name in ports}
    places = seen.reachable({end for end in ends.values() if end is not None})
    private = {namespace for namespace, _ in places if namespace not in seen.shared}
    processes = list(seen.processes(private, places))
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
        missing=tuple(name for name, end in ends.items() if end is None),
    )


@dataclass(frozen=True)
class _Seen:
    """The facts, with the tester's ports."""

    facts: Facts
    ports: Sequence[str]
    shared: set[int]

    @property
    def interfaces(self) -> dict[Place, Facts]:
        """All of this machine."""
        return {
            (space["inode"], one["index"]): one for space in self.facts["namespaces"] for one in space["interfaces"]
        }

    def other_end(self, name: str) -> Place | None:
        """Of a veth in the tester's namespace; None where it is no veth, or leads to another port
        of the tester's or where nobody can look."""
        mine = {one["name"]: place for place, one in self.interfaces.items() if place[0] == self.facts["tester"]}
        return self._across(mine[name]) if name in mine else None

    def _across(self, place: Place) -> Place | None:
        """The other end of a veth pair: each names the other."""
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
        """All interfaces of the DUT: those of its namespaces, and the ends of their cables
        elsewhere."""
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
        """Those that live in ``namespaces``, own a TUN device of the DUT's, or are the kernel's
        threads for an interface with threaded NAPI."""
        own = [self.interfaces[place] for place in places]
        napi = [f"napi/{one['name']}-"[:_LONGEST_NAME] for one in own if one["threaded"]]
        tuns = {one["name"] for one in own if one["tun"]}
        others = {(place[0], one["name"]) for place, one in self.interfaces.items() if place not in places}
        for one in self.facts["processes"]:
            owner = any(
                name in tuns and (one["namespace"], name) not in others for name in one["tuns"]
            )  # a TUN device may have moved away from its owner
            if one["namespace"] in namespaces or owner or any(one["name"].startswith(name) for name in napi):
                yield one


def _steering(interfaces: Sequence[Facts]) -> Iterator[Work]:
    """Receive packet steering, one for each set of cores."""
    by_cores: dict[Cores, list[str]] = {}
    for one in interfaces:
        if cores := Cores().union(*(from_mask(mask) for mask in one["rps"])):
            by_cores.setdefault(cores, []).append(one["name"])
    yield from (Work(f"receive packet steering of {' and '.join(names)}", cores) for cores, names in by_cores.items())


def _work_of(process: Facts, lives_there: bool) -> Work:
    cores = Cores().union(*(from_list(text) for text in process["cores"]))
    return Work(f"{process['name']} ({process['pid']})", cores, is_process=lives_there or bool(process["tuns"]))
