# SPDX-License-Identifier: Apache-2.0
"""The reference DUT as a process, and what it is made to be: the client of ``dutperf-refdut``
(engine/refdut/README.md).

Its counters are the truth that a tester on the other side of the cables is measured by.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dutperf.errors import DutperfError

PROGRAM = "dutperf-refdut"
VARIABLE = "DUTPERF_REFDUT"
"""The environment variable that names another one than was built here."""

Ratio = Annotated[float, Field(ge=0, le=1)]
Every = Annotated[int, Field(ge=0, le=1_000_000_000)]
Milliseconds = Annotated[float, Field(ge=0, le=3_600_000)]


class RefDutError(DutperfError):
    """The reference DUT cannot be reached or refuses a request; the text is one sentence."""


class Properties(BaseModel):
    """What the reference DUT is made to be. Ratios are shares of the frames of a direction,
    ``*_every=N`` means every Nth of them (0: none)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: Annotated[
        int,
        Field(ge=0, lt=2**53, description="of all that is random, and of the way in which flows are spread over cores"),
    ] = 1
    capacity_fps: Annotated[
        int,
        Field(
            ge=0,
            le=1_000_000_000,
            description="frames/s that a simulated core serves, both directions together; 0: no limit",
        ),
    ] = 0
    queue: Annotated[
        int,
        Field(
            ge=0,
            le=1_000_000,
            description="frames that can wait at a core besides the one in service; further ones are lost",
        ),
    ] = 1000
    cores: Annotated[
        int,
        Field(ge=1, le=64, description="simulated cores; a hash of addresses and ports says which one serves a flow"),
    ] = 1
    delay_ms: Annotated[Milliseconds, Field(description="delay of every frame, in ms")] = 0
    jitter: Annotated[
        Literal["none", "normal", "exponential"],
        Field(description="distribution of an added delay: none, normal or exponential"),
    ] = "none"
    jitter_ms: Annotated[
        Milliseconds, Field(description="its standard deviation (normal) or mean (exponential), in ms")
    ] = 0
    extra_delay: Annotated[
        Ratio, Field(description="share of the frames that are delayed longer, by extra_delay_ms")
    ] = 0
    extra_delay_every: Annotated[Every, Field(description="every Nth frame is delayed longer")] = 0
    extra_delay_ms: Annotated[Milliseconds, Field(description="by how much, in ms")] = 0
    loss: Annotated[Ratio, Field(description="share of the frames that is lost at random")] = 0
    loss_every: Annotated[Every, Field(description="every Nth frame is lost")] = 0
    duplicate: Annotated[Ratio, Field(description="share of the frames that is sent twice")] = 0
    duplicate_every: Annotated[Every, Field(description="every Nth frame is sent twice")] = 0
    reorder: Annotated[Ratio, Field(description="share of the frames that the next one overtakes")] = 0
    reorder_every: Annotated[Every, Field(description="every Nth frame is overtaken by the next one")] = 0
    bit_error: Annotated[Ratio, Field(description="share of the frames with one bit wrong in the last eight bytes")] = 0
    bit_error_every: Annotated[Every, Field(description="every Nth frame has one bit wrong")] = 0

    def request(self) -> dict[str, Any]:
        """The parameters of ``configure``."""
        return {
            "seed": self.seed,
            "capacity_fps": self.capacity_fps,
            "queue_frames": self.queue,
            "cores": self.cores,
            "delay_ns": nanoseconds(self.delay_ms / 1e3),
            "jitter": {"kind": self.jitter, "ns": nanoseconds(self.jitter_ms / 1e3)},
            "extra_delay": {
                **choice(self.extra_delay, self.extra_delay_every),
                "ns": nanoseconds(self.extra_delay_ms / 1e3),
            },
            "loss": choice(self.loss, self.loss_every),
            "duplicate": choice(self.duplicate, self.duplicate_every),
            "reorder": choice(self.reorder, self.reorder_every),
            "bit_error": choice(self.bit_error, self.bit_error_every),
        }


def nanoseconds(seconds: float) -> int:
    """As a whole number of nanoseconds."""
    return round(seconds * 1e9)


def choice(ratio: float, every: int) -> dict[str, int]:
    """Which frames something happens to, as the protocol has it."""
    return {"ratio_ppb": round(ratio * 1e9), "every": every}


class Quantiles(BaseModel):
    """Of a distribution of times, in microseconds."""

    p50: float
    p99: float
    p999: float
    max: float


class DirectionTruth(BaseModel):
    """What became of the frames of one direction. ``received`` = ``forwarded`` + all of ``lost`` +
    ``held``; copies are in ``duplicated`` alone."""

    received: int
    forwarded: int
    translated: int
    held: int
    lost: dict[str, int]
    duplicated: int
    reordered: int
    delayed: int
    corrupted: int
    delay_us: Quantiles
    """From the arrival of a frame until it was handed to the port, as it came to be."""
    lateness_us: Quantiles
    """How much of that this machine added to what was set."""

    @property
    def lost_total(self) -> int:
        """Frames lost, whatever the cause."""
        return sum(self.lost.values())


class PortLosses(BaseModel):
    """Frames that a port of the DUT lost: before the DUT saw them, and after it had counted them as
    forwarded."""

    lost_before: int
    lost_after: int


class Truth(BaseModel):
    """The counters of the reference DUT since it was configured or they were cleared."""

    forward: DirectionTruth
    reverse: DirectionTruth
    left: PortLosses
    right: PortLosses
    checksums_computed: int
    """UDP over IPv4 without a checksum that got one (RFC 7915 section 4.5)."""


@dataclass(frozen=True)
class RefDut:
    """A running reference DUT, reached by its socket. All methods raise RefDutError where it does
    not answer or refuses."""

    socket: Path
    patience_s: float = 30.0
    """How long an answer may take."""

    def open(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Let it open its ports; once in its life."""
        return self._ask("open", parameters)

    def configure(self, properties: Properties) -> None:
        """Make it what ``properties`` say. What is inside is let go; the counters begin anew."""
        self._ask("configure", properties.request())

    def counters(self) -> Truth:
        """What it has done."""
        return Truth.model_validate(
            {name: value for name, value in self._ask("counters").items() if name not in ("event", "id")}
        )

    def clear(self) -> None:
        """Let the counters begin anew. Frames that are inside will be missing in the balance."""
        self._ask("clear")

    def stall(self, duration_s: float, after_s: float = 0.0) -> None:
        """Nothing is served for ``duration_s`` seconds, from ``after_s`` seconds after the next
        frame that arrives."""
        self._ask("stall", {"duration_ns": nanoseconds(duration_s), "after_ns": nanoseconds(after_s)})

    def reset(self, duration_s: float, after_s: float = 0.0) -> None:
        """Likewise, but what is inside is lost and so is what arrives; ARP and NDP are not
        answered."""
        self._ask("reset", {"duration_ns": nanoseconds(duration_s), "after_ns": nanoseconds(after_s)})

    def _ask(self, method: str, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        request = {"id": 1, "method": method} | ({} if parameters is None else {"params": dict(parameters)})
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(self.patience_s)
                connection.connect(str(self.socket))
                connection.sendall(json.dumps(request).encode() + b"\n")
                line = connection.makefile().readline()
            answer: dict[str, Any] = json.loads(line)
        except (OSError, ValueError) as error:
            raise RefDutError(f"the reference DUT does not answer {method}: {error}") from None
        if answer.get("event") == "error":
            raise RefDutError(f"the reference DUT refuses {method}: {answer.get('message')}")
        return answer
