# SPDX-License-Identifier: Apache-2.0
"""The tester's own limits, measured without a DUT and kept for later results on the same kind of
ports.

``dutperf selftest`` connects the tester's two ports and measures the highest rate that passes and
the delay: this tester's floor. It is kept in ``$XDG_STATE_HOME/dutperf/calibration.json``, one entry
for each host, pair of port drivers and version of the engine. Every later run on such ports states
it; ``--subtract-calibration`` subtracts the floor's typical delay from latencies.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from dutperf import file_lock
from dutperf.journal import WriteError, write_whole
from dutperf.machine import host
from dutperf.model import Value, ports_of
from dutperf.user_directory import NoHome, user_directory

FORMAT = 2
"""Version of the file format."""


Stamps = Literal["loop", "kernel", "card"]


class Floor(Value):
    """The tester's own limits with frames of one size (bytes incl. FCS). Delays in microseconds, of
    the faster direction."""

    frame_size: int
    stamps: Stamps = "loop"
    """Whose time stamps the delays are between."""
    limit_fps: int | None
    """Highest rate per direction at which it loses nothing and keeps its schedule; None: none of
    the rates tried, or it was not searched for."""
    rate_fps: int
    """Rate at which the delays were measured."""
    min_us: float
    """The least of both directions."""
    typical_us: float
    p999_us: float
    stall_us: float
    """Longest loop stall of the tester meanwhile; the largest delays may include as much."""


class Key(Value):
    """Members that have to match for a calibration to apply."""

    host: str
    drivers: tuple[str, ...]
    """Drivers of the left and the right port; of an interface of the kernel also that of the interface."""
    engine: str
    queues: int = 1
    offloads: tuple[str, ...] = ()


class Calibration(Value):
    """One tester's floors."""

    key: Key
    date: str
    ports: tuple[str, ...]
    dpdk: str
    kernel: str
    floors: tuple[Floor, ...]

    def floor(self, frame_size: int, stamps: str = "loop") -> Floor | None:
        """The floor by these time stamps of the size nearest to ``frame_size``; None: there is none by them."""
        by_them = (floor for floor in self.floors if floor.stamps == stamps)
        return min(by_them, key=lambda floor: abs(floor.frame_size - frame_size), default=None)

    @property
    def has_limit(self) -> bool:
        return any(floor.limit_fps is not None for floor in self.floors)

    def stated(self) -> dict[str, Any]:
        """The calibration as results state it, as JSON types."""
        return {
            "date": self.date,
            "ports": list(self.ports),
            "floors": [floor.model_dump(mode="json") for floor in self.floors],
        }


def path() -> Path:
    """Where calibrations are kept (XDG base directories). Raises NoHome."""
    return user_directory("XDG_STATE_HOME", ".local/state") / "calibration.json"


def made(environment: Mapping[str, Any], floors: Sequence[Floor], date: str) -> Calibration:
    """A calibration of the tester with this :meth:`~dutperf.tester.Tester.environment`."""
    ports = tuple(str(port["port"]) for port in ports_of(environment).values())
    about = host.environment()
    return Calibration(
        key=key_of(environment),
        date=date,
        ports=ports,
        dpdk=str(environment["dpdk"]),
        kernel=about["kernel"],
        floors=tuple(floors),
    )


def key_of(environment: Mapping[str, Any]) -> Key:
    """The key of a tester. Raises KeyError where its environment has no ports."""
    drivers = tuple(_drivers_of(port) for port in ports_of(environment).values())
    if not drivers:
        raise KeyError("ports")
    used = {"queues": environment.get("queues", 1), "offloads": tuple(environment.get("offloads", ()))}
    return Key(host=str(host.environment()["name"]), drivers=drivers, engine=str(environment["engine"]), **used)


def _drivers_of(port: Mapping[str, Any]) -> str:
    return "/".join(str(port[name]) for name in ("driver", "interface_driver") if name in port)


def find(environment: Mapping[str, Any], file: Path | None = None) -> Calibration | None:
    """The calibration of such a tester, if there is one that this version can read."""
    try:
        key = key_of(environment)
        kept = _read(file or path())
    except (KeyError, TypeError, NoHome):
        return None
    return next((one for one in kept if one.key == key), None)


def keep(calibration: Calibration, file: Path | None = None) -> Path:
    """Write a calibration in place of an older one of the same tester. Returns the file. Raises WriteError: it cannot
    be written."""
    where = file or path()
    with _alone(where):
        others = [one for one in _read(where) if one.key != calibration.key]
        document = {"format": FORMAT, "calibrations": [one.model_dump(mode="json") for one in (*others, calibration)]}
        write_whole(where, json.dumps(document, indent=2) + "\n")
    return where


def keep_floors(calibration: Calibration, file: Path | None = None) -> None:
    """The same for one that may be without a limit: of one of the same tester that has a limit, the floors by the loops
    stay. Raises WriteError: it cannot be written."""
    where = file or path()
    older = next((one for one in _read(where) if one.key == calibration.key and one.has_limit), None)
    if calibration.has_limit or older is None:
        keep(calibration, where)
        return
    floors = (*_by_loops(older, whether=True), *_by_loops(calibration, whether=False))
    keep(older.model_copy(update={"floors": floors}), where)


def _by_loops(calibration: Calibration, *, whether: bool) -> Iterator[Floor]:
    """The floors by the loops' stamps, or the others."""
    return (floor for floor in calibration.floors if (floor.stamps == "loop") is whether)


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Others that keep a calibration wait. The lock is on a file of its own: the other one is replaced."""
    lock = file.with_suffix(".lock")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise WriteError(f"cannot write {lock}: {error.strerror}") from None
    try:
        file_lock.wait(descriptor)
        yield
    finally:
        os.close(descriptor)


def _read(file: Path) -> list[Calibration]:
    """All calibrations of a file. Unreadable ones are ignored: they can be measured again."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        return (
            [Calibration.model_validate(one) for one in document["calibrations"]]
            if document["format"] == FORMAT
            else []
        )
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        return []
