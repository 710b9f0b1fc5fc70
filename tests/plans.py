# SPDX-License-Identifier: Apache-2.0
"""Trials, plans and observers for tests that measure simulated DUTs."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from dutperf import procedures, traffic
from dutperf.dut.device import Device
from dutperf.dut.printed import ByCause
from dutperf.journal import JOURNAL, PlanEvent, ResumedJournal
from dutperf.model import (
    FRAME_SIZE,
    FRAME_SIZE_IPV4,
    LEFT_AND_RIGHT,
    Case,
    Direction,
    DirectionCounts,
    FieldMode,
    FrameSpec,
    Load,
    LoopStall,
    Quantiles,
    Stream,
    Trial,
    TrialResult,
    VaryingField,
)
from dutperf.procedures.dns64 import Dns64
from dutperf.run import campaign
from dutperf.run.campaign import Observer, Plan, Status, Summary
from dutperf.setup import configuration
from dutperf.setup.conditions import Conditions, Duration, Rate, Repetitions, WithFrameSizes
from dutperf.setup.configuration import Dut, Setup
from dutperf.setup.questions import WithQuestions
from dutperf.tester import ProgressCallback, Tester
from dutperf.tester.simulated import SimulatedTester

ADDRESSES = {4: ("198.18.0.2", "198.19.0.2"), 6: ("2001:2::2", "2001:2:0:8000::2")}


def frame(version: int, size: int) -> FrameSpec:
    source, destination = map(ip_address, ADDRESSES[version])
    return FrameSpec.model_validate({"version": version, "size": size, "source": source, "destination": destination})


def stream(version: int, size: int, rate_fps: int, **members: Any) -> Stream:
    port = VaryingField(mode=FieldMode.RANDOM, min=1024, max=65535)
    return Stream(
        rate_fps=rate_fps, foreground=frame(version, size), source_port=port, destination_port=port, **members
    )


def trial(rate_fps: int = 1000, *, number: int = 0, size: int = 84, **members: Any) -> Trial:
    """An SIIT trial: IPv6 forward, IPv4 reverse; a second long unless ``members`` say otherwise."""
    defaults = {
        "duration_ns": 10**9,
        "drain_ns": 0,
        "forward": stream(6, size, rate_fps),
        "reverse": stream(4, size - 20, rate_fps),
    }
    return Trial(trial=number, **{**defaults, **members})


def counts(sent: int = 1000, received: int | None = None, **members: Any) -> DirectionCounts:
    """Of a direction in which nothing went wrong, but for what ``members`` say."""
    received = sent if received is None else received
    calm = {
        "intended": sent,
        "sent": sent,
        "received": received,
        "foreground_sent": sent,
        "background_sent": 0,
        "foreground_received": received,
        "background_received": 0,
        "duplicates": 0,
        "out_of_order": 0,
        "stale": 0,
        "corrupted": 0,
        "send_time_s": 1.0,
        "lateness_us": Quantiles(p50=1, p99=2, p999=3, max=4),
        "stall_us": LoopStall(sender=5, receiver=5),
        "not_accepted": 0,
        "tester_drops": {},
        "dut_input_drops": 0,
        "other_received": {},
    }
    return DirectionCounts(**{**calm, **members})


NAT44 = {
    "left": {"port": "eth1", "version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1"},
    "right": {"port": "eth2", "version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1"},
}
NAT64 = {
    "left": {"port": "eth1", "version": 6, "ipv6": "2001:2::2/64", "gateway6": "2001:2::1"},
    "right": {**NAT44["right"], "seen_as": "64:ff9b::198.19.0.2"},
}


SWITCH = {
    "ports": {
        name: {"port": f"eth{number}", "version": 4, "ipv4": f"198.18.0.{1 + number}/24"}
        for number, name in enumerate("abc", 1)
    },
    "paths": "mesh",
}
OF_SWITCHES = ("address-capacity", "address-learning-rate", "address-ageing", "broadcast")


OF_FRAMES = tuple(one for one in procedures.every() if issubclass(one.conditions, WithFrameSizes))
"""Procedures that send test frames; others ask questions."""


class Everything(*dict.fromkeys(definition.conditions for definition in OF_FRAMES)):  # type: ignore[misc]
    """What any of these may be measured for, to be narrowed to one of them."""

    duration_s: Duration = 5.0
    pattern: str = "constant"
    burst_rate: Rate | None = None
    repetitions: Repetitions = 3


def make_trial(setup: Setup, conditions: Conditions, frame_size: int, rate_fps: int, number: int) -> Trial:
    """Of the traffic that the conditions choose."""
    return traffic.of(setup, conditions).trial(Case({FRAME_SIZE: frame_size}), Load.fps(rate_fps), number)


class SiitTraffic(traffic.PlainTraffic):
    """SIIT's frames on media of any speed, whatever its setup is; :meth:`making` has others."""

    media_fps: int | None = None
    make: Callable[[Case, Load, int], Trial] | None = None

    def making(self, make: Callable[[Case, Load, int], Trial]) -> SiitTraffic:
        """The same with those trials."""
        other = copy(self)
        other.make = make
        return other

    def cases(self) -> tuple[Case, ...]:
        return tuple(Case({FRAME_SIZE: size, FRAME_SIZE_IPV4: size - 20}) for size in self.given.frame_sizes)

    def maximum_fps(self, case: Case) -> int | None:
        del case
        return self.media_fps

    def trial(self, case: Case, load: Load, number: int) -> Trial:
        if self.make is not None:
            return self.make(case, load, number)
        chosen = self.conditions
        times = {"duration_ns": round(chosen.duration_s * 1e9), "drain_ns": round(chosen.drain_s * 1e9)}
        made = trial(
            load.value, number=number, size=case[FRAME_SIZE], seed=chosen.seed, **times, **traffic.stamps(self.given)
        )
        idle = {direction.value: None for direction in set(LEFT_AND_RIGHT) - set(chosen.active())}
        return made.model_copy(update=idle)


DNS64 = {
    "left": {"port": "tl", "version": 6, "ipv6": "2001:2::2/64", "gateway6": "2001:2::1"},
    "right": {"port": "tr", "version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1"},
    "dns64": {"server": "2001:2::1"},
}


LOOPED_BACK = {
    "left": {"port": "tl", "version": 6, "ipv6": "2001:2::2/64"},
    "right": {"port": "tr", "version": 6, "ipv6": "2001:2:0:8000::2/64"},
    "dns64": {"server": "2001:2:0:8000::2"},
}


def questions(config: dict[str, Any] = DNS64, **conditions: Any) -> Plan[Dns64]:
    """To measure a DNS64 server, unless ``conditions`` say otherwise as :func:`plan`."""
    setup = configuration.parse(config, "test")
    chosen = Dns64(**{"duration_s": 5, "repetitions": 3, "settle_s": 0, **conditions})
    return Plan(
        traffic=traffic.of(setup, chosen),
        conditions=chosen,
        dut=SimulatedDevice(Dut(name="simulated")),
        config=configuration.as_json(setup),
    )


def plan(media_fps: int | None = None, **conditions: Any) -> Plan[Any]:
    """To measure SIIT with trials of 5 s, three times, unless ``conditions`` say otherwise; those of questions are for
    a DNS64 server."""
    if conditions.keys() & (WithQuestions.model_fields.keys() - Everything.model_fields.keys()):
        return questions(**conditions)
    chosen = Everything(**{"duration_s": 5, "drain_s": 0, "repetitions": 3, **conditions})
    kind = SiitTraffic(configuration.parse(NAT44, "test"), chosen)
    kind.media_fps = media_fps
    return Plan(
        traffic=kind,
        conditions=chosen,
        dut=SimulatedDevice(Dut(name="simulated"), has_connections=True),
    )


def making(what: Plan[Any], make: Callable[[Case, Load, int], Trial]) -> Plan[Any]:
    """With those trials."""
    assert isinstance(what.traffic, SiitTraffic)
    return replace(what, traffic=what.traffic.making(make))


class SimulatedDevice(Device):
    """Does nothing when it is told to, and counts how often it was; ``can_do`` are commands that it has."""

    can_do: frozenset[str] = frozenset({"reset", "clear_addresses"})
    started = finished = killed = emptied = 0

    def can(self, command: str) -> bool:
        return command in self.can_do

    def reset(self) -> SimulatedDevice:
        self.started += 1
        return self

    def clear_addresses(self) -> None:
        self.emptied += 1

    def clear_connections(self) -> float:
        return 0.25

    def count_connections(self) -> int | None:
        return None

    def finish(self) -> None:
        self.finished += 1

    def kill(self) -> None:
        self.killed += 1


class Counting(SimulatedTester):
    """Of a DUT that counts what it loses."""

    lost = 0

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        result = super().run(trial, on_progress)
        self.lost += sum(counts.lost for counts in result.directions().values())
        return result

    def dut_losses(self) -> ByCause:
        """So far, both directions' as one."""
        return {Direction.FORWARD: {"queue": self.lost}, Direction.REVERSE: {}}


class CountingDevice(SimulatedDevice):
    """Whose losses ``count`` tells."""

    def __init__(self, count: Callable[[], ByCause | str]) -> None:
        super().__init__(Dut(name="simulated"), has_connections=True)
        self._count = count

    def counts_losses(self) -> bool:
        return True

    def losses(self) -> ByCause | str:
        return self._count()


class Log:
    """An observer that keeps what it was told."""

    def __init__(self) -> None:
        self.statuses: list[Status] = []

    def update(self, status: Status) -> None:
        self.statuses.append(status)


def measure(tester: Tester, what: Plan[Any], out: Path, name: str = "throughput", log: Log | None = None) -> Summary:
    """By the procedure of that name."""
    return campaign.measure(procedures.find(name), tester, narrowed(what, name), out, log or Log())


def resume(tester: Tester, what: Plan[Any], recorded: ResumedJournal, log: Observer) -> Summary:
    """Go on with the procedure of the journal."""
    name = recorded.plan.procedure
    known = name in procedures.NAMES
    return campaign.resume(tester, narrowed(what, name) if known else what, recorded, log)


def journal_lines(directory: Path) -> list[dict[str, Any]]:
    """The events of the journal in ``directory`` as they stand there."""
    whole_lines = (directory / JOURNAL).read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in whole_lines]


def plan_event(**members: Any) -> PlanEvent:
    """Of no run in particular."""
    empty: dict[str, Any] = {"conditions": {}, "attempts": {}, "search": {}, "axes": [], "cases": []}
    return PlanEvent(**{"dutperf": "0", "procedure": "throughput", **empty, **members})


def narrowed(what: Plan[Any], name: str) -> Plan[Any]:
    """With the conditions that the procedure of that name has."""
    chosen = {member: value for member, value in dict(what.conditions).items() if value is not None}
    kind = copy(what.traffic)
    kind.setup = configuration.parse(SWITCH, "test") if name in OF_SWITCHES else kind.setup
    return replace(what, traffic=kind, conditions=procedures.find(name).conditions.recorded(chosen))
