# SPDX-License-Identifier: Apache-2.0
"""The conditions under which a procedure measures: what the user chose, checked once, and what a
summary states.

RFC 2544 section 10 and RFC 8219 section 5 ask that every result names them.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from dutperf import errors
from dutperf.model import MAX_FRAME_SIZE, MIN_FRAME_SIZE, Direction, FieldMode, Value
from dutperf.statistics import stopping

Directions = Literal["both", "forward", "reverse"]
Algorithm = Literal["binary", "mlr"]
LatencyDefinition = Literal["rfc8219", "rfc2544"]

_RFC2544_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
_RFC8219_SIZES = (64, 128, 256, 512, 768, 1024, 1280, 1518)
FRAME_SIZE_SERIES: dict[str, tuple[int, ...]] = {
    "rfc2544": _RFC2544_SIZES,
    "rfc5180": _RFC2544_SIZES,
    "rfc5180-jumbo": (*_RFC2544_SIZES, 1522, 2048, 4096, 8192, 9216),
    "rfc8219": _RFC8219_SIZES,
    "rfc8219-jumbo": (*_RFC8219_SIZES, 1522, 2048, 4096, 8192, 9216),
}
"""Bytes incl. FCS (RFC 2544 9.1, RFC 5180 5.1.1, RFC 8219 5.1.1). With IPv6 on either side the
smallest is 84. Not every Ethernet carries what is longer than 1518: those sizes are in series of
their own."""
Series = Literal["rfc2544", "rfc5180", "rfc5180-jumbo", "rfc8219", "rfc8219-jumbo"]
NATIVE_SHARES = ((2, 2), (10, 9), (2, 1), (10, 1))
"""Foreground n:m with which 0, 10, 50 and 90 % of the frames are native IPv6 (RFC 8219 5.3)."""

RFC4814_SOURCE_PORTS = (1024, 65535)
"""RFC 4814 4.5."""
RFC4814_DESTINATION_PORTS = (1, 49151)
RFC2544_SOURCE_PORT = 0xC020
"""RFC 2544 C.2.6.4, where the ports are fixed."""
RFC2544_DESTINATION_PORT = 7

LONGEST_BURST = 1_000_000
"""Frames."""
LATEST_S = {"tag_after_s": 60.0, "overload_s": 60.0, "reset_after_s": 10.0}
"""Members that are a time within the trial, and what they are by default (RFC 8219 7.2, RFC 2544
26.2 and 26.5; no clause says when to reset), in seconds. In a trial shorter than twice that, the
default is half of the trial: a run names the deviation."""


class Rate(Value):
    """A rate per direction as the user gave it: frames per second, or a share of the media's
    maximum frame rate."""

    value: Annotated[float, Field(gt=0)]
    unit: Literal["fps", "percent"]

    @model_validator(mode="before")
    @classmethod
    def _of_plain(cls, given: Any) -> Any:
        """A program may give a rate as it is typed, or frames per second as a number."""
        if isinstance(given, str):
            return cls.parse(given).model_dump()
        return (
            {"value": given, "unit": "fps"} if isinstance(given, int | float) and not isinstance(given, bool) else given
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """``"60000"``, ``"60k"``, ``"1.5M"`` (frames/s) or ``"12.5%"`` (of the maximum).

        Raises:
            ValueError: the text is no rate.
        """
        match = re.fullmatch(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([kM%]?)\s*", text)
        if not match or not (value := float(match[1].replace("_", ""))):
            raise ValueError(
                f"'{text}' is no rate: give frames per second (60000, 60k, 1.5M) or a share of the maximum (12.5%)"
            )
        if match[2] == "%":
            return cls(value=value, unit="percent")
        return cls(value=value * {"": 1, "k": 1_000, "M": 1_000_000}[match[2]], unit="fps")

    def fps(self, maximum_fps: int | None) -> int:
        """In frames per second, at least 1.

        Raises:
            ValueError: a percentage, but the media's maximum is not known.
        """
        if self.unit == "fps":
            return max(1, round(self.value))
        if maximum_fps is None:
            raise ValueError("a rate in % needs the media's speed: set media_mbps in the configuration")
        return max(1, round(self.value / 100 * maximum_fps))

    def text(self) -> str:
        """As :meth:`parse` reads it."""
        return f"{self.value:.12g}" + ("%" if self.unit == "percent" else "")

    def __str__(self) -> str:
        return f"{self.value:g} %" if self.unit == "percent" else f"{self.value:,.0f} frames/s"


def burst_of(pattern: str) -> int | None:
    """Frames of a burst of the ``pattern``; None: it has none."""
    kind, _, frames = pattern.partition(":")
    return int(frames) if kind == "bursts" else None


def refusal(error: ValidationError) -> tuple[str, str]:
    """Which member of :class:`Conditions` a value is not possible for (empty: they contradict each
    other), and why, for a person."""
    details = errors.first(error)
    field = str(details["loc"][0]) if details["loc"] else ""
    reason = details["msg"].replace("Input should", "should")
    return field, f"{reason} (it is {details['input']})" if field else reason


class Conditions(Value):
    """Everything about a measurement that the user may choose, apart from the set-up itself. Rates
    are per direction."""

    frame_sizes: Annotated[
        tuple[Annotated[int, Field(ge=MIN_FRAME_SIZE, le=MAX_FRAME_SIZE)], ...], Field(min_length=1)
    ] = (84,)
    """Bytes incl. FCS; with any IPv6 traffic the size of the IPv6 frame, the IPv4 one is 20 bytes
    shorter."""
    series: Series | None = None
    """Where no sizes are given: those of this series (:data:`FRAME_SIZE_SERIES`); None: the
    smallest that the traffic can have."""
    duration_s: Annotated[float, Field(ge=0.001, le=86_400)] = 60.0
    """Sending time of a trial (RFC 2544 section 24)."""
    drain_s: Annotated[float, Field(ge=0, le=3_600)] = 2.0
    """Receiving goes on for so long after the last frame (RFC 2544 section 23)."""
    learning_rest_s: Annotated[float, Field(ge=0, le=60)] = 0.0
    """Between the learning frames (ARP, NDP) before each trial and its first test frame (RFC 2544
    section 23 (b): 2)."""
    settle_s: Annotated[float, Field(ge=0, le=3_600)] = 0.0
    """Rest between a trial and the next, for the DUT to restabilise (RFC 2544 section 23 (e): 5)."""
    dut_patience_s: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    """How long a DUT that answers neither test frames nor ARP or NDP is waited for; 0: its silence
    is a result at once."""
    directions: Directions = "both"
    """Which directions send (RFC 2544 section 14: both)."""
    n: Annotated[int, Field(ge=1, le=1_000_000)] = 2
    """Frame k is foreground when k mod n < m, else native IPv6 (RFC 8219 5.3); n = m: no
    background."""
    m: Annotated[int, Field(ge=0, le=1_000_000)] = 2
    ports: FieldMode = FieldMode.RANDOM
    """How the UDP ports vary, over the ranges of RFC 4814 4.5; ``fixed``: those of RFC 2544
    C.2.6.4."""
    networks: Annotated[int, Field(ge=1, le=256)] = 1
    """Destination networks in each direction (RFC 2544 section 12: 1 and 256)."""
    seed: Annotated[int, Field(ge=0, le=2**53 - 1)] = 0
    """Of what is random: the same seed sends the same frames."""
    burst: Annotated[int, Field(ge=1, le=512)] = 32
    """Most frames that are due handed to the driver at once."""
    pattern: str = "constant"
    """How frames come at the mean rate: ``constant``, ``poisson`` (exponential gaps), or
    ``bursts:32``, as in RFC 2544 section 21, of so many frames."""
    burst_rate: Rate | None = None
    """Of the frames of such a burst; None: as fast as the sender can."""
    loss_tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the frames of a direction that may be lost in a trial that passes; RFC 2544 26.1
    knows only 0."""
    frame_timeout_ms: Annotated[float, Field(gt=0, le=60_000)] | None = None
    """A frame that takes longer counts as lost; None: every frame counts that comes before
    receiving ends. It is no condition of any RFC (Lencse, Kovács, Shima, IJATES2 9(2), 2020)."""
    repetitions: Annotated[int, Field(ge=1, le=10_000)] | stopping.Auto = 20
    """A number (RFC 8219 7.2 and 7.3: 20 at least), or as many as it takes."""
    search: Algorithm = "binary"
    """How the highest rate that passes is found; ``mlr``: MLRsearch (RFC 9971)."""
    goals: tuple[Annotated[float, Field(ge=0, lt=1)], ...] = ()
    """Loss ratios that MLRsearch looks for in one search; empty: the loss tolerance alone."""
    min_rate: Rate | None = None
    """The lowest of a search."""
    max_rate: Rate | None = None
    """The highest; None: the media's maximum."""
    initial_rate: Rate | None = None
    """To try first."""
    rates: Annotated[tuple[Rate, ...], Field(min_length=1)] | None = None
    """Those to measure, where a series does not find them by itself."""
    rate: Rate | None = None
    """The throughput as far as it is known, or another rate to measure delays at."""
    found: dict[int, int] | None = None
    """... or the throughput of an earlier run: frame size (bytes) to frames/s per direction."""
    definition: LatencyDefinition = "rfc8219"
    """What latency is: typical and worst case of many tagged frames (RFC 8219 7.2), or the mean of
    one a trial (RFC 2544 26.2)."""
    tags: Annotated[int, Field(ge=1, le=10_000_000)] = 50_000
    """Tagged frames of a latency trial (RFC 8219 7.2: at least 500; RFC 2544 26.2: one, which is
    the default there)."""
    tag_after_s: Annotated[float, Field(ge=0, le=86_400)] = LATEST_S["tag_after_s"]
    """When the first frame is tagged, in seconds after the start; by default 60, or half of a
    shorter trial than 120."""
    delays_to: str | None = None
    """Directory for a file with every delay of each trial, on the machine of the tester."""
    subtract_calibration: bool = False
    """Whether the tester's own typical delay, as the self-test found it, is taken from latencies;
    no clause has that."""
    overload_s: Annotated[float, Field(gt=0, le=86_400)] = LATEST_S["overload_s"]
    """How long the DUT is overloaded, in seconds; the rest of the trial is at the reduced rate (RFC
    2544 26.5). By default 60, or half of a shorter trial than 120."""
    reset_after_s: Annotated[float, Field(gt=0, le=86_400)] = LATEST_S["reset_after_s"]
    """When the DUT is reset, in seconds after the start of the trial; by default 10, or half of a
    shorter trial than 20."""
    step: Rate | None = None
    """Of a series of rates: frames/s, or a share of its highest rate; None: 10 %, the widest that
    RFC 2544 26.3 allows."""
    max_burst_s: Annotated[float, Field(gt=0, le=3_600)] = 30.0
    """The longest burst, as the time that its sending takes (RFC 9004 6.2: up to 30)."""
    burst_resolution: Annotated[float, Field(gt=0, le=0.5)] = 0.005
    """Of the search for the longest burst: a share of the shortest that failed; never less than a
    frame."""
    verifications: Annotated[int, Field(ge=0, le=100)] = 1
    """How often a burst that failed is offered again before it counts as failed (loss verification,
    ETSI GS NFV-TST 009 12.3)."""
    resolution: Rate = Rate(value=0.5, unit="percent")
    """Frames/s; or a share of the maximum rate, of the search's upper end where the media has no
    maximum."""

    @model_validator(mode="before")
    @classmethod
    def _tags_of_the_definition(cls, members: Any) -> Any:
        return (
            {"tags": 1, **members} if isinstance(members, dict) and members.get("definition") == "rfc2544" else members
        )

    @model_validator(mode="before")
    @classmethod
    def _within_the_trial(cls, members: Any) -> Any:
        if not isinstance(members, dict):
            return members
        try:
            duration_s = float(members.get("duration_s", cls.model_fields["duration_s"].default))
        except (TypeError, ValueError):
            return members  # which is refused as the duration
        return {name: min(latest_s, duration_s / 2) for name, latest_s in LATEST_S.items()} | members

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.m > self.n:
            raise ValueError(f"foreground n:m needs m <= n, not {self.n}:{self.m}")
        return self

    @field_validator("pattern")
    @classmethod
    def _known(cls, pattern: str) -> str:
        if pattern not in ("constant", "poisson") and not re.fullmatch(r"bursts:[1-9][0-9]*", pattern):
            raise ValueError("is none of constant, poisson and bursts:FRAMES")
        if (burst := burst_of(pattern)) is not None and not 2 <= burst <= LONGEST_BURST:
            raise ValueError(f"a burst has 2 to {LONGEST_BURST:,} frames")
        return pattern

    @field_validator("burst_rate")
    @classmethod
    def _of_bursts(cls, burst_rate: Rate | None, others: ValidationInfo) -> Rate | None:
        if burst_rate is not None and burst_of(others.data.get("pattern", "bursts:2")) is None:
            raise ValueError("has no effect without bursts (bursts:32)")
        return burst_rate

    @field_validator("repetitions", mode="before")
    @classmethod
    def _of_text(cls, given: Any) -> Any:
        return stopping.parse(given) if isinstance(given, str) else given

    @field_validator("goals")
    @classmethod
    def _in_order(cls, goals: tuple[float, ...]) -> tuple[float, ...]:
        if len(set(goals)) < len(goals):
            raise ValueError("the same loss ratio twice")
        return tuple(sorted(goals))

    @property
    def sizes_are_given(self) -> bool:
        """Whether ``frame_sizes`` were chosen, by the user or for the set-up
        (:func:`dutperf.setup.traffic.sized`)."""
        return "frame_sizes" in self.model_fields_set

    @property
    def native_percent(self) -> float:
        """Share of the frames that are native IPv6 in the background (RFC 8219 5.3)."""
        return 100 * (self.n - self.m) / self.n

    @field_validator("frame_timeout_ms")
    @classmethod
    def _within_drain(cls, timeout_ms: float | None, others: ValidationInfo) -> float | None:
        """The last frame of a trial must have as much time as the others."""
        drain_s = others.data.get("drain_s")
        if timeout_ms is not None and drain_s is not None and timeout_ms > drain_s * 1000:
            raise ValueError(
                f"receiving ends {drain_s * 1000:g} ms after the last frame (drain), so that frame could not take so"
                " long"
            )
        return timeout_ms

    @property
    def mix(self) -> str:
        """What tells the traffic of a measurement from that of another beside it, empty for the
        usual: ``-native50-networks256``, ``-forward-bursts32``."""
        direction = "" if self.directions == "both" else f"-{self.directions}"
        native = f"-native{self.native_percent:g}" if self.native_percent else ""
        pattern = "" if self.pattern == "constant" else "-" + self.pattern.replace(":", "")
        within = "" if self.burst_rate is None else "-at" + self.burst_rate.text().replace("%", "pc")
        return direction + native + (f"-networks{self.networks}" if self.networks > 1 else "") + pattern + within

    def loss_goals(self) -> tuple[float, ...]:
        """The loss ratios up to which a trial passes, the strictest first: the goals, or the one
        loss tolerance."""
        return self.goals or (self.loss_tolerance,)

    def passing(self) -> str:
        """What belongs behind every figure that such trials gave: what else than no loss counts as
        none. Empty where RFC 2544 26.1 is followed."""
        strictest = self.loss_goals()[0]
        tolerated = [f"up to {strictest * 100:g} % of a direction's frames lost"] if strictest else []
        late = (
            [f"frames later than {self.frame_timeout_ms:g} ms counted as lost"]
            if self.frame_timeout_ms is not None
            else []
        )
        return " and ".join(tolerated + late)

    def active(self) -> tuple[Direction, ...]:
        """The directions that send, forward first."""
        return tuple(Direction) if self.directions == "both" else (Direction(self.directions),)
