# SPDX-License-Identifier: Apache-2.0
"""The traffic of the procedures for switches.

An address table (RFC 2889 sections 5.7, 5.8): a learning port sends one frame from each of many MAC addresses, a test
port sends one to each, and monitoring ports see those that the switch floods because it does not know the address.

Broadcasts (RFC 2889 section 5.10): one port sends them, all others receive copies. The frames are of the path to one
of these, where each is told from the others and timed; at the others the copies are counted.

A few frames go to the other ports themselves, so that a valid trial proves that these receive, and in a test of an
address table from a monitoring port to the learning and test ports themselves: the table holds the addresses of all
ports for the whole trial, or the trial shows that it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dutperf import traffic
from dutperf.model import (
    ANY_LOSS,
    FRAME_SIZE,
    TRIAL_NUMBERS,
    Case,
    Direction,
    Load,
    Phase,
    Profile,
    Question,
    Segment,
    Stamping,
    Stream,
    Trial,
)
from dutperf.setup.conditions import Conditions
from dutperf.setup.configuration import ConfigError, ParameterError, Setup
from dutperf.traffic.connections import duration_ns

FIRST_ADDRESS = "02:28:89:00:00:00"
"""Locally administered; the others follow one by one."""
MOST_ADDRESSES = 1 << 24
CONTROL_SHARE, LEAST_CONTROLS = 0.1, 10
"""Frames to each other port itself: a share of the test frames, and at least so many."""
AGED_SHARE, AGED_S = 0.05, 1.0
"""By how much longer than the ageing time a trial waits for an empty table, whichever is more: switches look for
aged addresses at intervals."""
FORGETTING_FROM_NS = 50_000_000
"""Begin of the test frames after the learning frame whose address is to age: longer than a sender is late in a valid
trial."""
_ONE_FRAME_FPS = 1_000
BROADCAST = "ff:ff:ff:ff:ff:ff"
BROADCAST_CONTROL_SHARE = 0.01
"""Of broadcasts, which load all ports: frames to each other port itself."""


@dataclass(frozen=True)
class Roles:
    """The ports by what they do (RFC 2889 section 5.7.3)."""

    learning: str
    test: str
    monitors: tuple[str, ...]

    @property
    def learned(self) -> Direction:
        return Direction(f"{self.learning}->{self.test}")

    @property
    def tested(self) -> Direction:
        return Direction(f"{self.test}->{self.learning}")

    def controls(self) -> tuple[Direction, ...]:
        """The paths of the frames to the monitoring ports themselves."""
        return tuple(Direction(f"{self.test}->{monitor}") for monitor in self.monitors)

    def own(self) -> tuple[Direction, ...]:
        """The paths of the frames to each port's own address."""
        first = self.monitors[0]
        return *self.controls(), Direction(f"{first}->{self.learning}"), Direction(f"{first}->{self.test}")

    @property
    def own_addresses(self) -> int:
        """Addresses of the tester's ports, which announce themselves before each phase: the switch learns them
        first."""
        return 2 + len(self.monitors)


@dataclass(frozen=True)
class Audience:
    """The port that sends broadcasts, the one at which they are timed, and the others at which they are counted."""

    sender: str
    timed: str
    others: tuple[str, ...]

    @property
    def path(self) -> Direction:
        """Of the broadcasts."""
        return Direction(f"{self.sender}->{self.timed}")

    def controls(self) -> tuple[Direction, ...]:
        """The paths of the frames to the other ports themselves."""
        return tuple(Direction(f"{self.sender}->{port}") for port in self.others)

    def turned(self, number: int) -> Audience:
        """The same ports, with another one timed for each of the numbers from 0 on."""
        receivers = (self.timed, *self.others)
        timed = receivers[number % len(receivers)]
        return Audience(self.sender, timed, tuple(port for port in receivers if port != timed))


@dataclass(frozen=True)
class Learned:
    """So many addresses that are learned and then tested, at these rates in frames/s."""

    roles: Roles
    addresses: int
    learning_fps: int
    test_fps: int
    wait_s: float | None
    """Ageing time to wait before, so that the table is empty; None: a command empties it."""


@dataclass(frozen=True)
class Aged:
    """One address that is tested for so long after it was learned."""

    roles: Roles
    test_fps: int
    duration_s: float


def roles(setup: Setup, learning_port: str | None, test_port: str | None) -> Roles:
    """The ports that were chosen, or the first two of the configuration; all others monitor. Raises ConfigError: fewer
    than three ports, not all of which send to each other, or headers of the user's choice. Raises ParameterError: no
    such port, or the same one twice."""
    names = _ports(setup)
    learning = learning_port or next(name for name in names if name != test_port)
    test = test_port or next(name for name in names if name != learning)
    _check_port("learning_port", learning, names)
    _check_port("test_port", test, names)
    if learning == test:
        raise ParameterError(f"is {test}, the learning port", "test_port")
    found = Roles(learning, test, tuple(name for name in names if name not in (learning, test)))
    _check_paths(setup, found.learned, found.tested, *found.own())
    return found


def audience(setup: Setup, sending_port: str | None) -> Audience:
    """The port that was chosen, or the first of the configuration, and all others."""
    names = _ports(setup)
    sender = sending_port or names[0]
    _check_port("sending_port", sender, names)
    timed, *others = (name for name in names if name != sender)
    found = Audience(sender, timed, tuple(others))
    _check_paths(setup, found.path, *found.controls())
    return found


def _ports(setup: Setup) -> list[str]:
    if setup.ports is None or len(setup.ports) < 3:
        raise ConfigError("are missing: what a switch floods shows at three ports or more (ports, paths)", "ports")
    if setup.streams:
        raise ConfigError("do not go with this measurement, which has frames of its own", "streams")
    if any(side.frame is not None for side in setup.sides().values()):
        raise ConfigError("does not go with headers of your choice: the frames are its own", "ports")
    return list(setup.ports)


def _check_port(option: str, name: str, names: list[str]) -> None:
    if name not in names:
        raise ParameterError(f"there is no port {name}: the ports are {', '.join(names)}", option)


def _check_paths(setup: Setup, *needed: Direction) -> None:
    missing = set(needed) - set(setup.path_ends())
    if missing:
        raise ConfigError(f"are without {', '.join(sorted(missing))}: let all ports send to each other (mesh)", "paths")


def learned(setup: Setup, conditions: Conditions, frame_size: int, made: Learned, number: int) -> Trial:
    """The trial in which addresses are learned, then tested; its phases have the numbers from ``number`` on."""
    by = made.roles
    learning = _streams(setup, _with(conditions, "source", made.addresses), frame_size, made.learning_fps)
    test = _streams(setup, _with(conditions, "destination", made.addresses), frame_size, made.test_fps)
    controls = _controls(setup, conditions, frame_size, made.test_fps, made.addresses, by.own())
    phases = [_phase(conditions, made.addresses, made.learning_fps, {by.learned: learning[by.learned]})]
    if made.wait_s is not None:
        wait_s = made.wait_s + max(AGED_S, AGED_SHARE * made.wait_s)
        waiting = _phase(conditions, 1, _ONE_FRAME_FPS, {by.tested: _plain(setup, conditions, frame_size)[by.tested]})
        phases.insert(0, {**waiting, "rest_ns": round(wait_s * 1e9)})
    elif conditions.learning_rest_s:
        phases[0]["rest_ns"] = round(conditions.learning_rest_s * 1e9)
    tested = _phase(conditions, made.addresses, made.test_fps, {by.tested: test[by.tested], **controls})
    numbered = [{**one, "trial": (number + place) % TRIAL_NUMBERS} for place, one in enumerate([*phases, tested])]
    preliminary = tuple(Phase(**one, question=Question(tolerated_loss=ANY_LOSS)) for one in numbered[:-1])
    question = Question(clear_addresses=made.wait_s is None)
    return Trial(**numbered[-1], question=question, preliminary=preliminary)


def ageing(setup: Setup, conditions: Conditions, frame_size: int, made: Aged, number: int) -> Trial:
    """The trial in which one address is learned by one frame, and tested from :data:`FORGETTING_FROM_NS` on."""
    by, duration_ns = made.roles, round(made.duration_s * 1e9)
    learning = _streams(setup, _with(conditions, "source", 1), frame_size, _ONE_FRAME_FPS)[by.learned]
    test = _streams(setup, _with(conditions, "destination", 1), frame_size, made.test_fps)[by.tested]
    once_ns = 1_000_000_000 // _ONE_FRAME_FPS
    streams = {
        by.learned: _changing(learning, (once_ns, _ONE_FRAME_FPS), (FORGETTING_FROM_NS + duration_ns - once_ns, 0)),
        by.tested: _changing(test, (FORGETTING_FROM_NS, 0), (duration_ns, made.test_fps)),
        **_controls(setup, conditions, frame_size, made.test_fps, made.test_fps, by.controls()),
    }
    members = _phase(conditions, 1, _ONE_FRAME_FPS, streams)
    members |= {"duration_ns": FORGETTING_FROM_NS + duration_ns, "trial": number % TRIAL_NUMBERS}
    if conditions.learning_rest_s:
        members["rest_ns"] = round(conditions.learning_rest_s * 1e9)
    return Trial(**members, question=Question(clear_addresses=True))


def broadcast(setup: Setup, conditions: Conditions, frame_size: int, by: Audience, rate_fps: int, number: int) -> Trial:
    """The trial in which the sender broadcasts ``rate_fps`` frames in a second, all of them stamped."""
    text = f"eth(destination={BROADCAST})/ip/udp"
    described = traffic.of(setup, conditions.model_copy(update={"frame": text}))
    trial = described.trial(Case({FRAME_SIZE: frame_size}), Load.fps(rate_fps), number)
    frames = max(1, trial.intended(by.path))
    controls = _controls(setup, conditions, frame_size, rate_fps, frames, by.controls(), BROADCAST_CONTROL_SHARE)
    streams = {by.path: trial.streams()[by.path], **controls}
    warm_up = tuple(phase.model_copy(update={"paths": streams}) for phase in trial.preliminary)
    return trial.model_copy(update={"paths": streams, "preliminary": warm_up, "stamping": Stamping.EVERY})


def _with(conditions: Conditions, field: str, addresses: int) -> Conditions:
    """With frames whose ``field`` of the Ethernet header is each of the addresses in turn."""
    text = f"eth({field}=increment({FIRST_ADDRESS},count={addresses}))/ip/udp"
    return conditions.model_copy(update={"frame": text})


def _streams(setup: Setup, conditions: Conditions, frame_size: int, rate_fps: int) -> dict[Direction, Stream]:
    return traffic.of(setup, conditions).streams(frame_size, rate_fps)


def _plain(setup: Setup, conditions: Conditions, frame_size: int) -> dict[Direction, Stream]:
    return _streams(setup, conditions, frame_size, _ONE_FRAME_FPS)


def _controls(
    setup: Setup,
    conditions: Conditions,
    frame_size: int,
    test_fps: int,
    frames: int,
    paths: tuple[Direction, ...],
    share: float = CONTROL_SHARE,
) -> dict[Direction, Stream]:
    """The streams on ``paths``, to other ports themselves, beside ``frames`` test frames."""
    rate_fps = max(round(share * test_fps), -(-LEAST_CONTROLS * test_fps // frames), 1)
    streams = _streams(setup, conditions, frame_size, rate_fps)
    return {path: streams[path] for path in paths}


def _changing(stream: Stream, *rates: tuple[int, int]) -> Stream:
    """The stream with rates that last for so many nanoseconds each."""
    profile = Profile(segments=tuple(Segment(duration_ns=ns, from_fps=fps, to_fps=fps) for ns, fps in rates))
    return stream.model_copy(update={"rate_fps": profile.mean_fps, "pattern": profile})


def _phase(conditions: Conditions, frames: int, rate_fps: int, streams: dict[Direction, Stream]) -> dict[str, Any]:
    """Members of a phase in which so many frames are due."""
    return {
        "seed": conditions.seed,
        "burst": conditions.tx_burst,
        "duration_ns": duration_ns(frames, rate_fps),
        "drain_ns": round(conditions.drain_s * 1e9),
        "paths": streams,
    }
