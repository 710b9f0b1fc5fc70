# SPDX-License-Identifier: Apache-2.0
"""The address table of a simulated switch: which test frames of a trial it floods
(:mod:`dutperf.traffic.switches`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dutperf.model import DescribedField, Direction, DirectionCounts, Profile, Stream, Trial

_BROADCAST = "ff" * 6
_DESTINATION_BIT, _SOURCE_BIT, _MAC_BITS = 0, 48, 48


@dataclass(frozen=True)
class AddressTable:
    """The ground truth of a table that refuses addresses when it is full, or evicts."""

    size: int | None = None
    """Addresses, of the tester's ports too; None: no limit."""
    learning_aps: float | None = None
    """Addresses that it learns in a second; None: all."""
    ageing_s: float = 300.0
    evicts: bool = False
    """The learning port's own address first, which is its oldest."""


@dataclass
class SimulatedSwitch:
    """A table and what is in it."""

    table: AddressTable
    _learned: int = 0
    _evicted: bool = False
    """The learning port's own address."""

    def flood(self, trial: Trial, counts: Mapping[Direction, DirectionCounts]) -> dict[Direction, DirectionCounts]:
        """``counts`` with the frames that arrive at ports that are not their path's end."""
        ports = {name for path in trial.streams() for name in path.partition("->")[::2] if name}
        flooded = dict(counts)
        for stream in trial.streams().values():
            if (learning := _varying(stream, _SOURCE_BIT)) is not None:
                self._learn(learning, stream.rate_fps, len(ports))
        for path, stream in trial.streams().items():
            others = sorted(ports - set(path.partition("->")[::2]))
            if any(frame.bytes.startswith(_BROADCAST) for frame in stream.frames):
                frames = counts[path].received
            elif (tested := _varying(stream, _DESTINATION_BIT)) is not None:
                frames = self._unknown(trial, path, stream, tested)
            elif self._evicted and path.endswith(f"->{self._learner(trial)}"):
                frames = counts[path].received
            else:
                continue
            if frames and others:
                flooded[path] = counts[path].model_copy(update={"misdelivered": dict.fromkeys(others, frames)})
        return flooded

    def _learn(self, addresses: int, rate_fps: int, ports: int) -> None:
        room = addresses if self.table.size is None else max(0, self.table.size - max(ports, 3))
        self._evicted = self.table.evicts and addresses > room
        room += self._evicted
        learning_aps = rate_fps if self.table.learning_aps is None else self.table.learning_aps
        in_time = round(addresses * learning_aps / rate_fps)
        self._learned = min(addresses, room, in_time)

    @staticmethod
    def _learner(trial: Trial) -> str:
        varying = (path for path, one in trial.streams().items() if _varying(one, _DESTINATION_BIT) is not None)
        return next((path.partition("->")[2] for path in varying), "")

    def _unknown(self, trial: Trial, path: Direction, stream: Stream, addresses: int) -> int:
        if isinstance(stream.pattern, Profile):
            known = trial.times(path).frames_before(round(self.table.ageing_s * 1e9)) if self._learned else 0
            return max(0, trial.intended(path) - known)
        return max(0, addresses - self._learned)


def _varying(stream: Stream, bit: int) -> int | None:
    """How many values a MAC address of the stream's frames has; None: it does not vary."""
    fields: list[DescribedField] = [field for frame in stream.frames for field in frame.fields]
    found = (field.count for field in fields if (field.bit, field.bits) == (bit, _MAC_BITS))
    return next((int(count) for count in found if count is not None), None)
