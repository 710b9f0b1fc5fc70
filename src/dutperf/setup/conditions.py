# SPDX-License-Identifier: Apache-2.0
"""The conditions of a measurement: what the user chose, checked once. Every summary states them (RFC
2544 section 10, RFC 8219 section 5).

:class:`Conditions` has the members of every measurement. A procedure's file derives its own model
from it and from the groups below (:class:`AtThroughput`, :class:`WithTimeout`, …). Each member
declares its option (:mod:`dutperf.setup.option`). The command line, plans, the Python interface, help
and documentation are generated from the members.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from dutperf import errors
from dutperf.model import (
    LEFT_AND_RIGHT,
    MAX_FRAME_SIZE,
    MIN_FRAME_SIZE,
    MOST_CONNECTIONS,
    Capture,
    Direction,
    FieldMode,
    Flows,
    Networks,
    Value,
    to_json,
)
from dutperf.setup import frame_file, modifiers, steady_pattern
from dutperf.setup.changing_rate import FORMS, ChangingRate, is_changing
from dutperf.setup.configuration import ParameterError
from dutperf.setup.direction_rates import DirectionRates
from dutperf.setup.given import Given, default
from dutperf.setup.modifiers import Modifiers
from dutperf.setup.option import OUTPUT, SEARCH, TRAFFIC, TRIAL, Option, all_offered, offered
from dutperf.setup.pacing import SOFTWARE, fill_of
from dutperf.setup.rate import AnyRate, OptionalRate
from dutperf.setup.rate import Rate as Rate
from dutperf.setup.ratio import READ_RATIO, AnyRatio
from dutperf.setup.size_mix import SizeMix, is_mix
from dutperf.setup.steady_pattern import burst_of
from dutperf.spelling import hint, with_and
from dutperf.statistics import stopping

Directions = Literal["both", "forward", "reverse"]

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
smallest is 84. Not every Ethernet carries frames longer than 1518: they have series of their own."""
Series = Literal["rfc2544", "rfc5180", "rfc5180-jumbo", "rfc8219", "rfc8219-jumbo"]
FOREGROUND_SERIES: dict[str, tuple[str, ...]] = {
    "rfc8219": ("2:2", "10:9", "2:1", "10:1"),
    "rfc5180": ("10:9", "2:1", "10:1"),
}
"""Foreground n:m with which 0, 10, 50 and 90 % of the frames are native IPv6 (RFC 8219 5.3), and the mixes of IPv4
and IPv6 of a router with both (RFC 5180 7)."""

RFC4814_SOURCE_PORTS = (1024, 65535)
"""RFC 4814 4.5."""
RFC4814_DESTINATION_PORTS = (1, 49151)
RFC2544_SOURCE_PORT = 0xC020
"""RFC 2544 C.2.6.4, where the ports are fixed."""
RFC2544_DESTINATION_PORT = 7

_HIGHEST = 2**63
"""No member takes a larger number; Python does not print one of thousands of digits."""

PRELIMINARY_RATE = Rate(value=10_000, unit="fps")
"""Connections/s, low enough for small DUTs."""


def invalid_member(error: ValidationError) -> tuple[str, str]:
    """The member of conditions with an invalid value (empty: several contradict each other),
    and the reason, for a person."""
    details = errors.first(error)
    field = str(details["loc"][0]) if details["loc"] else ""
    field = "frame_sizes" if field == "size_mix" else field  # the option by which a mix is given
    if details["type"] == frame_file.MEMBER:
        return frame_file.MEMBER, details["msg"]
    if details["type"] in ("int_parsing", "float_parsing"):
        return field, f"'{details['input']}' is not a number"
    reason = details["msg"].replace("Input should", "should")
    quoted = reason.startswith("'")
    given = details["input"]
    shown = ", ".join(map(str, given)) if isinstance(given, list | tuple) else given
    return field, f"{reason} (it is {shown})" if field and not quoted else reason


class Foreground(Value):
    """Frame k is foreground when k mod n < m, else native IPv6 (RFC 8219 5.3); ``"10:9"`` as text."""

    n: Annotated[int, Field(ge=1, le=1_000_000)] = 2
    m: Annotated[int, Field(ge=0, le=1_000_000)] = 2

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, given: Any) -> Any:
        if not isinstance(given, str):
            return given
        match = re.fullmatch(r"\s*(\d+):(\d+)\s*", given)
        if not match:
            raise ValueError(f"'{given}' is not of the form N:M, as in 2:2 or 10:9")
        return {"n": int(match[1]), "m": int(match[2])}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.m > self.n:
            raise ValueError(f"foreground n:m needs m <= n, not {self.n}:{self.m}")
        return self

    @model_serializer
    def text(self) -> str:
        """As it is typed: ``10:9``."""
        return f"{self.n}:{self.m}"

    @property
    def native_percent(self) -> float:
        """Share of the frames that are native IPv6 in the background (RFC 8219 5.3)."""
        return 100 * (self.n - self.m) / self.n


Duration = Annotated[
    float,
    Field(ge=0.001, le=86_400),
    Option(
        "Sending time of a trial", clause="RFC 2544 section 24: 60", label="sending time of a trial, s", panel=TRIAL
    ),
]
Repetitions = Annotated[
    Given[Annotated[int, Field(ge=1, le=10_000)] | stopping.Auto, str],
    Option(
        "Repetitions of each case (RFC 8219: 20); auto: as many as needed",
        label="repetitions asked for",
        metavar="COUNT|auto",
        panel=SEARCH,
    ),
]


class WithFrameSizes(Value):
    """Test frames of sizes that are chosen."""

    frame_sizes: Annotated[
        Given[tuple[Annotated[int, Field(ge=MIN_FRAME_SIZE, le=MAX_FRAME_SIZE)], ...], Sequence[int] | int | str],
        Field(min_length=1),
        Option(
            "Sizes with FCS: 84,1518, a series (rfc8219) or imix. Default: the smallest",
            label="frame sizes, bytes with FCS",
            flag="--frame-size",
            alias="--frame-sizes",
            metavar="SIZE,…",
            listed=True,
            depends=True,
            panel=TRAFFIC,
        ),
    ] = default((84,))
    series: Series | None = None
    """Without frame sizes: the series to take (:data:`FRAME_SIZE_SERIES`); None: the smallest size of
    the traffic."""
    size_mix: str | None = None
    """A mix of frame sizes (:mod:`dutperf.setup.size_mix`); ``frame_sizes`` is then its mean."""

    @model_validator(mode="before")
    @classmethod
    def _series(cls, members: Any) -> Any:
        """Sizes may be a number, a list, a text (``84,128``), or the name of a series."""
        if not isinstance(members, dict) or "frame_sizes" not in members:
            return members
        others = {name: value for name, value in members.items() if name != "frame_sizes"}
        given = list(_each(members["frame_sizes"]))
        if len(given) == 1 and is_mix(given[0]):
            return others | {"size_mix": given[0].strip()}
        words = words_of(given)
        is_series = len(words) == 1 and isinstance(words[0], str) and words[0] in FRAME_SIZE_SERIES
        return others | {"series": words[0]} if is_series else members

    @field_validator("frame_sizes", mode="before")
    @classmethod
    def _numbers(cls, given: Any) -> Any:
        words = words_of(given)
        for word in words:
            if is_mix(word):
                raise ValueError("a mix of sizes is measured alone, without other sizes")
            if isinstance(word, str) and not re.fullmatch(r"[0-9]+", word):
                raise ValueError(
                    f"'{word}' is neither a frame size in bytes nor one of the series {', '.join(FRAME_SIZE_SERIES)}"
                )
        return tuple(words)

    @field_validator("frame_sizes")
    @classmethod
    def _different(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(sizes)) < len(sizes):
            raise ValueError("the same size twice")
        return sizes

    @field_validator("size_mix")
    @classmethod
    def _is_mix(cls, text: str | None) -> str | None:
        return None if text is None else SizeMix.parse(text).text

    @property
    def sizes_are_given(self) -> bool:
        """Whether ``frame_sizes`` were chosen, by the user or by :meth:`dutperf.traffic.TrafficKind.sized`."""
        return "frame_sizes" in self.model_fields_set


class EveryTrial(Value):
    """What every trial has, whatever it sends."""

    drain_s: Annotated[
        float,
        Field(ge=0, le=3_600),
        Option(
            "Time to receive residual frames after sending",
            clause="RFC 2544 section 23: 2",
            label="receiving time after sending, s",
            panel=TRIAL,
        ),
    ] = 2.0
    learning_rest_s: Annotated[
        float,
        Field(ge=0, le=60),
        Option(
            "Wait between ARP or NDP and sending",
            clause="RFC 2544 section 23: 2",
            label="wait after the learning frames (ARP, NDP), s",
            panel=TRIAL,
        ),
    ] = 0.0
    tx_burst: Annotated[
        int,
        Field(ge=1, le=512),
        Option(
            "Maximum number of due frames handed to the driver at once, 1-512",
            label="maximum frames handed to the driver at once",
            metavar="FRAMES",
            panel=TRIAL,
        ),
    ] = 32

    @model_validator(mode="after")
    def _has_an_effect(self) -> Self:
        for one in offered(type(self)):
            needed = one.option.needs
            if needed and not getattr(self, needed) and getattr(self, one.name) != one.field.default:
                raise ValueError(f"`{one.name}` has no effect without `{needed}`")
        return self

    if not TYPE_CHECKING:  # an editor shows the members instead

        def __init__(self, **given: Any) -> None:
            """Conditions as a program gives them.

            Raises:
                ParameterError: no member of these conditions, or an invalid value.
            """
            _check_names(type(self), given)
            _check_values(type(self), given)
            try:
                super().__init__(**given)
            except ValidationError as error:
                member, reason = invalid_member(error)
                raise ParameterError(reason, member) from None

        __init__.__pydantic_base_init__ = True  # validation does not call it

    @classmethod
    def recorded(cls, members: Mapping[str, Any]) -> Self:
        """From a journal or a suite, as :meth:`stated` wrote them; members of other models are ignored.

        Raises:
            ValidationError: an invalid value.
        """
        return cls.model_validate({name: value for name, value in members.items() if name in cls.model_fields})

    def stated(self) -> dict[str, Any]:
        """The members that the procedure uses, as JSON types."""
        return to_json(self)


class Conditions(EveryTrial):
    """What every measurement has. Rates are per direction."""

    seed: Annotated[
        int,
        Field(ge=0, le=2**53 - 1),
        Option("Random seed; the same seed sends the same frames", label="random seed", metavar="N", panel=TRIAL),
    ] = 0

    @property
    def every(self) -> AllConditions:
        """These conditions with what holds for the members that the procedure does not offer."""
        return AllConditions.of(self)

    @property
    def mix(self) -> str:
        """Suffix that names the traffic of a measurement, empty for the default traffic:
        ``-native50-networks256``, ``-forward-bursts32``."""
        every = self.every
        direction = "" if every.directions == "both" else f"-{every.directions}"
        percent = every.foreground.native_percent
        native = f"-native{percent:g}" if percent else ""
        connections = "" if every.connections is None else f"-connections{every.connections}"
        frames = ("" if every.size_mix is None else "-imix") + ("" if every.frame is None else "-frame")
        apart = f"-apart{every.flows_apart_s:g}" if every.flows_apart_s else ""
        flows = "" if every.flows is None else f"-flows{every.flows}{apart}"
        networks = f"-networks{every.networks}" if every.networks > 1 else ""
        pattern = "" if every.pattern == "constant" else "-" + every.pattern.replace(":", "")
        fill = "" if every.pacing == SOFTWARE else "-fill"
        within = "" if every.burst_rate is None else "-at" + every.burst_rate.text().replace("%", "pc")
        traffic = direction + connections + frames + native + flows + networks
        return traffic + pattern + within + fill + modifiers.suffix(every.modifiers)

    def loss_goals(self) -> tuple[float, ...]:
        """The loss ratios up to which a trial passes, strictest first: the goals, or the one loss
        tolerance."""
        every = self.every
        return every.goals or (every.loss_tolerance,)

    def passing(self) -> str:
        """The pass criterion, to be stated with every figure of such trials; empty for that of RFC 2544
        26.1, no loss."""
        every = self.every
        strictest = self.loss_goals()[0]
        tolerated = [f"up to {strictest * 100:g} % of a direction's frames lost"] if strictest else []
        more = [f"more lost in up to {every.exceed_ratio * 100:g} % of a load's trials"] if every.exceed_ratio else []
        late = (
            [f"frames later than {every.frame_timeout_ms:g} ms counted as lost"]
            if every.frame_timeout_ms is not None
            else []
        )
        return with_and(tolerated + more + late)


# --- groups of members for the procedures' models -------------------------------------------------


class WithDuration(Value):
    """Trials of a length that is chosen."""

    duration_s: Duration = 60.0


class WithRepetitions(Value):
    """Each case is measured several times."""

    repetitions: Repetitions = default(20)

    @field_validator("repetitions", mode="before")
    @classmethod
    def _of_text(cls, given: Any) -> Any:
        return stopping.parse(given) if isinstance(given, str) else given


Settling = Annotated[
    float,
    Field(ge=0, le=3_600),
    Option(
        "Wait between trials",
        clause="RFC 2544 section 23: 5",
        label="wait between trials, s",
        panel=TRIAL,
    ),
]


class WithPatience(Value):
    """A DUT may be late."""

    dut_patience_s: Annotated[
        float,
        Field(ge=0, le=86_400),
        Option(
            "Longest wait for a DUT that forwards or answers nothing",
            label="longest wait for a DUT that forwards nothing, s",
            panel=TRIAL,
        ),
    ] = 0.0


class WithSettling(WithPatience):
    """Time for the DUT between trials."""

    settle_s: Settling = 0.0


class WithTolerance(Value):
    """Some loss may pass."""

    loss_tolerance: Annotated[
        AnyRatio,
        Field(ge=0, lt=1),
        Option(
            "Loss ratio goal: share of a direction's frames",
            clause="RFC 2544: 0",
            label="loss ratio goal per direction",
            metavar="RATIO",
            text=True,
            panel=TRIAL,
        ),
    ] = default(0.0)


class WithStreams(Value):
    """Which frames are sent, and where to."""

    directions: Annotated[
        Directions,
        Option("Directions that send", clause="RFC 2544 section 14: both", label="directions that send", panel=TRAFFIC),
    ] = "both"
    direction_rates: Annotated[
        str | None,
        Option(
            "Ratio of the directions' rates, as 10:1",
            clause="RFC 2544 section 14: 1:1",
            label="rates of the directions, forward:reverse",
            metavar="FORWARD:REVERSE",
            panel=TRAFFIC,
        ),
    ] = None
    foreground: Annotated[
        Given[Foreground, str],
        Option(
            "M of N frames are foreground, the rest native IPv6; or rfc8219",
            label="foreground traffic n:m, the rest is native IPv6",
            metavar="N:M,…",
            several=True,
            panel=TRAFFIC,
        ),
    ] = default(Foreground())
    networks: Annotated[
        Networks,
        Option(
            "Destination networks in each direction, 1-256 (RFC 2544 section 12: 1,256)",
            label="destination networks in each direction",
            metavar="COUNT,…",
            several=True,
            panel=TRAFFIC,
        ),
    ] = 1
    frame: Annotated[
        str | None,
        Option(
            "Headers of the frames, as vlan(id=100)/ip/udp. Default: UDP directly over IP",
            label="headers of the frames",
            metavar="HEADERS",
            panel=TRAFFIC,
        ),
    ] = None
    frame_from: Annotated[
        str | None,
        Option(
            "Frame of a capture (pcap, pcapng), by its number from 1 on",
            label="frame from a capture",
            metavar="FILE[:N]…",
            panel=TRAFFIC,
        ),
    ] = None
    flows: Annotated[
        Flows | None,
        Option(
            "Flows in each direction. Default: UDP ports vary by frame",
            label="flows in each direction",
            metavar="COUNT,…",
            several=True,
            panel=TRAFFIC,
        ),
    ] = None
    modifiers: Annotated[
        Given[tuple[str, ...], Sequence[str] | str],
        Option(
            "Condition of RFC 2544 section 11, as broadcast or filters:25; repeatable",
            label="modifiers",
            flag="--modifier",
            metavar="NAME",
            listed=True,
            panel=TRAFFIC,
        ),
    ] = default(())

    @model_validator(mode="before")
    @classmethod
    def _frame_of_capture(cls, members: Any) -> Any:
        return frame_file.with_frame(members)

    @field_validator("direction_rates", mode="before")
    @classmethod
    def _differ(cls, given: object) -> str | None:
        rates = None if given is None else DirectionRates.parse(str(given))
        return None if rates is None or rates.forward == rates.reverse else str(rates)

    @field_validator("modifiers", mode="before")
    @classmethod
    def _are_modifiers(cls, given: Any) -> Any:
        words = words_of(given)
        return Modifiers.parse(words).texts() if all(isinstance(word, str) for word in words) else given

    @property
    def modified_by(self) -> Modifiers:
        return Modifiers.parse(self.modifiers)

    @property
    def of_directions(self) -> DirectionRates:
        return DirectionRates.parse(self.direction_rates or "1:1")

    def active(self) -> tuple[Direction, ...]:
        """The directions that send, forward first."""
        return LEFT_AND_RIGHT if self.directions == "both" else (Direction(self.directions),)


class WithPorts(Value):
    """UDP ports that vary."""

    ports: Annotated[
        Given[FieldMode, Literal["fixed", "increasing", "decreasing", "random"]],
        Option(
            "How UDP ports vary (RFC 4814); fixed: those of RFC 2544 C.2.6.4",
            label="UDP ports",
            panel=TRAFFIC,
        ),
    ] = default(FieldMode.RANDOM)


class WithPattern(Value):
    """Gaps that are not alike, and traffic before the trial."""

    rates_may_change: ClassVar[bool] = False
    """Whether the pattern may have rates of its own (:mod:`dutperf.setup.changing_rate`)."""
    pattern: Annotated[
        str,
        Option(
            "Traffic pattern: constant, poisson or bursts:FRAMES (RFC 2544 section 21)",
            label="traffic pattern at the mean rate",
            metavar="PATTERN",
            panel=TRAFFIC,
        ),
    ] = "constant"
    burst_rate: Annotated[
        OptionalRate,
        Option(
            "With bursts: the rate within a burst. Default: the tester's maximum",
            label="rate within a burst",
            metavar="RATE",
            panel=TRAFFIC,
        ),
    ] = default(None)
    warm_up_s: Annotated[
        float,
        Field(ge=0, le=3_600),
        Option(
            "Send uncounted traffic for so long before each trial",
            label="warm-up before each trial, s",
            panel=TRAFFIC,
        ),
    ] = 0.0

    @field_validator("pattern")
    @classmethod
    def _known(cls, pattern: str) -> str:
        if is_changing(pattern):
            if not cls.rates_may_change:
                raise ValueError("a rate that changes is for a single trial (dutperf trial) and for dutperf ramp")
            ChangingRate.parse(pattern)
            return pattern
        rates = f", {FORMS}" if cls.rates_may_change else ""
        return steady_pattern.checked(pattern, rates)

    @field_validator("burst_rate")
    @classmethod
    def _of_bursts(cls, burst_rate: Rate | None, others: ValidationInfo) -> Rate | None:
        if burst_rate is not None and burst_of(others.data.get("pattern", "bursts:2")) is None:
            raise ValueError("has no effect without bursts (bursts:32)")
        return burst_rate


class WithFlowsApart(WithStreams):
    """Flows may begin one after the other."""

    flows_apart_s: Annotated[
        float,
        Field(ge=0, le=3_600),
        Option(
            "Flow i+1 begins so long after flow i (RFC 8219 10.2.2)",
            label="each flow begins after the one before, s",
            needs="flows",
            panel=TRAFFIC,
        ),
    ] = 0.0

    @property
    def joining_s(self) -> float:
        """How long flows still begin: a trial is so much longer."""
        return self.flows_apart_s * ((self.flows or 1) - 1)


class WithStamps(Value):
    """What times delays."""

    stamps: Annotated[
        Literal["loop", "kernel", "card", "auto"],
        Option(
            "Time stamps: by loops, kernel or cards (af_packet ports), auto: what can",
            label="time stamps",
            panel=TRAFFIC,
        ),
    ] = "loop"

    @property
    def stamped_by(self) -> Literal["kernel", "card", "auto"] | None:
        """As a trial has it. None: the tester's loops, whatever the kernel can."""
        return None if self.stamps == "loop" else self.stamps


class WithPacing(Value):
    """How frames are spaced on the line."""

    pacing: Annotated[
        str,
        Option(
            "Space frames by software, or by fill frames on the line",
            label="spacing of the frames",
            metavar="software|fill[:MAC]",
            panel=TRAFFIC,
        ),
    ] = SOFTWARE

    @field_validator("pacing")
    @classmethod
    def _is_pacing(cls, pacing: str) -> str:
        fill_of(pacing)
        return pacing


class WithGoals(Value):
    """A search for the highest rate that passes, by one of two methods."""

    search: Annotated[
        Literal["binary", "mlr"],
        Option("How the rate is found: binary, or mlr (MLRsearch, RFC 9971)", label="search", panel=SEARCH),
    ] = "binary"
    goals: Annotated[
        Given[tuple[Annotated[float, READ_RATIO, Field(ge=0, lt=1)], ...], Sequence[float | str]],
        Option(
            "With `search` mlr: loss ratio goal; repeatable: 0 and 0.005",
            label="loss ratios searched for",
            flag="--goal",
            metavar="RATIO",
            listed=True,
            panel=SEARCH,
        ),
    ] = default(())

    exceed_ratio: Annotated[
        AnyRatio,
        Field(ge=0, lt=1),
        Option(
            "With `search` mlr: share of a load's trials that may fail",
            label="exceed ratio",
            metavar="RATIO",
            text=True,
            panel=SEARCH,
        ),
    ] = default(0.0)
    duration_sum_s: Annotated[
        Annotated[float, Field(gt=0, le=86_400)] | None,
        Option(
            "With `search` mlr: trial seconds that decide a load. Default: one trial",
            label="duration sum of a load's trials, s",
            flag="--duration-sum",
            metavar="SECONDS",
            panel=SEARCH,
        ),
    ] = None

    @field_validator("goals")
    @classmethod
    def _in_order(cls, goals: tuple[float, ...]) -> tuple[float, ...]:
        if len(set(goals)) < len(goals):
            raise ValueError("the same loss ratio twice; give each once")
        return tuple(sorted(goals))


TimeoutMs = Annotated[
    Annotated[float, Field(ge=0.001, le=60_000)] | None,
    Option(
        "Frames with a longer delay count as lost (in no RFC)",
        label="frame timeout, ms",
        metavar="MS",
        panel=TRIAL,
    ),
]
"""Proposed by Lencse, Kovács, Shima, IJATES2 9(2), 2020."""


class WithTimeout(Value):
    """Late frames may count as lost."""

    frame_timeout_ms: TimeoutMs = None

    @field_validator("frame_timeout_ms")
    @classmethod
    def _within_drain(cls, timeout_ms: float | None, others: ValidationInfo) -> float | None:
        """The last frame of a trial must have as much time to arrive as the others."""
        drain_s = others.data.get("drain_s")
        if timeout_ms is not None and drain_s is not None and timeout_ms > drain_s * 1000:
            raise ValueError(
                f"should be at most the receiving time after the last frame (`drain_s`), {drain_s * 1000:g} ms"
            )
        return timeout_ms


def _connections(given: Any) -> Any:
    """A number of connections from its text: ``"10000"``, ``"10k"``, ``"1.5M"``."""
    if not isinstance(given, str):
        return given
    match = re.fullmatch(r"\s*([0-9][0-9_]{0,15}(?:\.[0-9]{1,9})?)\s*([kM]?)\s*", given)
    count = Decimal(match[1].replace("_", "")) * {"": 1, "k": 1_000, "M": 1_000_000}[match[2]] if match else None
    if count is None or count % 1:
        raise ValueError(f"'{given}' is not a number of connections: give a whole number (10000, 10k, 1M)")
    return int(count)


ConnectionCount = Annotated[int, BeforeValidator(_connections), Field(ge=1, le=MOST_CONNECTIONS)]
PreliminaryRate = Annotated[
    AnyRate,
    Option(
        "Rate of the preliminary phase, in connections/s (RFC 9693 section 4.2)",
        label="rate of the preliminary phase, connections/s",
        metavar="RATE",
        needs="connections",
        panel=TRAFFIC,
    ),
]
PhaseGap = Annotated[
    float,
    Field(ge=0, le=3_600),
    Option(
        "Wait between the preliminary phase and the trial, in s",
        label="wait after the preliminary phase, s",
        needs="connections",
        panel=TRAFFIC,
    ),
]


class WithConnections(Value):
    """Stateful traffic (RFC 9693): a preliminary phase opens the connections, and all frames of the trial belong
    to them."""

    connections: Annotated[
        Given[ConnectionCount | None, str],
        Option(
            "Connections through a stateful DUT (RFC 9693). Default: a stateless DUT",
            label="connections",
            metavar="COUNT,…",
            several=True,
            panel=TRAFFIC,
        ),
    ] = default(None)
    preliminary_rate: PreliminaryRate = default(PRELIMINARY_RATE)
    phase_gap_s: PhaseGap = 0.0


class Steady(WithRepetitions, WithSettling, WithStreams, WithPorts, Conditions, WithFrameSizes):
    """Trials at rates that do not change, repeated."""


class Usual(WithDuration, WithTolerance, WithPattern, WithPacing, WithFlowsApart, Steady):
    """What most measurements have."""


class AllConditions(WithTimeout, WithConnections, WithGoals, WithStamps, Usual):
    """Every member that traffic or a verdict depends on, for what handles the conditions of any procedure."""

    repetitions: Repetitions = default(1)

    @classmethod
    def of(cls, conditions: Conditions) -> AllConditions:
        """``conditions``, and what holds for a procedure that does not offer a member."""
        return conditions if isinstance(conditions, AllConditions) else _completed(_This(conditions))


@dataclass(frozen=True, eq=False)
class _This:
    """Conditions as a key: these, not equal ones."""

    conditions: Conditions

    def __hash__(self) -> int:
        return id(self.conditions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _This) and self.conditions is other.conditions


@lru_cache(maxsize=4)
def _completed(this: _This) -> AllConditions:
    """Kept, since each trial asks several times for those of its run."""
    known = AllConditions.model_fields
    given = {name: value for name, value in this.conditions if name in known}
    return AllConditions.model_construct(this.conditions.model_fields_set & given.keys(), **given)


class WithMaximum(Conditions):
    """A search range or series with a highest rate."""

    max_rate: Annotated[
        OptionalRate,
        Option(
            "Highest rate. Default: the media's maximum, if it is known",
            label="highest rate",
            metavar="RATE",
            panel=SEARCH,
        ),
    ] = default(None)


class AtThroughput(Conditions, WithFrameSizes):
    """Measured at an earlier throughput, or at a given rate."""

    rate: Annotated[
        OptionalRate,
        Option(
            "Rate per direction to measure at. Default: the throughput, measured first",
            label="rate per direction",
            metavar="RATE",
            panel=SEARCH,
        ),
    ] = default(None)
    throughput_from: Annotated[
        Given[dict[int, int] | None, Mapping[int, int]],
        Option(
            "Use the median throughput of each frame size from this earlier run",
            label="rate measured at by frame size, frames/s per direction",
            metavar="DIR",
            panel=SEARCH,
        ),
    ] = default(None)
    """Frame size (bytes) to frames/s per direction."""
    throughput_deviations: tuple[str, ...] = ()
    """How the search for that throughput deviated from its clauses."""


class DelayFiles(Conditions):
    """Every delay may be written to a file."""

    delays_to: Annotated[
        Given[str | None, os.PathLike[str]],
        BeforeValidator(lambda path: os.fspath(path) if isinstance(path, os.PathLike) else path),
        Option(
            "Write every delay into this directory, on the engine's machine",
            label="files of all delays",
            metavar="DIR",
            panel=OUTPUT,
        ),
    ] = default(None)


class Calibrated(Conditions):
    """The tester's own delay may be subtracted."""

    subtract_calibration: Annotated[
        bool,
        Option(
            "Subtract the tester's own typical delay (dutperf selftest) from latencies",
            label="the tester's own delay is subtracted",
            panel=TRIAL,
        ),
    ] = False


class WithCapture(Value):
    """Frames may be written to a file."""

    capture: Annotated[
        str | None,
        Option(
            "Write frames to a capture file: lost, damaged, unexpected or first",
            metavar="KIND[:FRAMES],…",
            panel=OUTPUT,
        ),
    ] = None
    capture_to: Annotated[
        str, Option("The capture file (pcapng), on the engine's machine", metavar="FILE", needs="capture", panel=OUTPUT)
    ] = "capture.pcapng"

    @field_validator("capture")
    @classmethod
    def _kinds_of_capture(cls, capture: str | None) -> str | None:
        if capture is not None:
            Capture.parse(capture, "any")
        return capture

    def capture_wanted(self) -> Capture | None:
        """What goes to the capture file; its path is absolute."""
        return None if self.capture is None else Capture.parse(self.capture, str(Path(self.capture_to).absolute()))


class SingleTrial(
    WithPatience,
    WithCapture,
    WithStamps,
    WithTimeout,
    WithConnections,
    WithDuration,
    WithTolerance,
    WithPattern,
    WithPacing,
    WithFlowsApart,
    WithPorts,
    Conditions,
    WithFrameSizes,
):
    """Conditions of a single trial."""

    rates_may_change: ClassVar[bool] = True
    pattern: Annotated[
        str,
        Option(
            "Traffic pattern: constant, poisson, bursts:FRAMES, ramp:1k-100k, steps:1k,10k or sine:10k-50k",
            label="traffic pattern",
            metavar="PATTERN",
            panel=TRAFFIC,
        ),
    ] = "constant"
    foreground: Annotated[
        Given[Foreground, str],
        Option(
            "M of N frames are foreground, the rest native IPv6",
            metavar="N:M",
            panel=TRAFFIC,
        ),
    ] = default(Foreground())
    networks: Annotated[
        Networks,
        Option("Destination networks in each direction, 1-256", metavar="COUNT", panel=TRAFFIC),
    ] = 1
    connections: Annotated[
        Given[ConnectionCount | None, str],
        Option(
            "Connections through a stateful DUT (RFC 9693). Default: a stateless DUT",
            metavar="COUNT",
            text=True,
            panel=TRAFFIC,
        ),
    ] = default(None)


def _check_names(model: type[EveryTrial], given: Iterable[str]) -> None:
    """Raises ParameterError for a name that is no member."""
    for name in given:
        if name not in model.model_fields:
            known = sorted(one.name for one in offered(model))
            raise ParameterError(f"{model.__name__} has no such condition; {hint(name, known)}", name)


def within_the_trial(model: type[Conditions], members: Any, name: str, latest_s: float) -> Any:
    """``members`` with a default for the time ``name``: ``latest_s``, as in its clause, or half of a
    trial that is shorter than twice that. A run reports the deviation."""
    if not isinstance(members, dict):
        return members
    try:
        duration_s = float(members.get("duration_s", model.model_fields["duration_s"].default))
    except (TypeError, ValueError):
        return members  # the duration is reported as invalid
    return {name: min(latest_s, duration_s / 2)} | members


# --- from what was chosen -------------------------------------------------------------------------

Model = TypeVar("Model", bound=Conditions)
OfTrial = TypeVar("OfTrial", bound=EveryTrial)


def make(model: type[OfTrial], chosen: Mapping[str, Any]) -> OfTrial:
    """Conditions from the chosen members; None keeps the default.

    Raises:
        ParameterError: an invalid value; also true or false for a number, which would be 1 or 0.
    """
    _check_values(model, chosen)
    try:
        return model.model_validate({name: value for name, value in chosen.items() if value is not None})
    except ValidationError as error:
        member, reason = invalid_member(error)
        raise ParameterError(reason, member) from None


def _check_values(model: type[EveryTrial], chosen: Mapping[str, Any]) -> None:
    """Raises ParameterError for what validation would take as another number, or could not print."""
    for name, value in chosen.items():
        numbers = [one for one in _each(value) if isinstance(one, int)]
        if _takes_truth_value(model, name):
            if not isinstance(value, bool | None):
                raise ParameterError(f"should be true or false (it is {value!r})", name)
        elif any(isinstance(one, bool) for one in numbers):
            raise ParameterError(f"should be a number or a text, not true or false (it is {value})", name)
        if any(abs(one) > _HIGHEST for one in numbers):
            raise ParameterError("is a number beyond all limits", name)


def _takes_truth_value(model: type[EveryTrial], name: str) -> bool:
    return name in model.model_fields and model.model_fields[name].annotation is bool


def each(model: type[Model], chosen: Mapping[str, Any]) -> tuple[Model, ...]:
    """Conditions for every combination of the values in lists (``"2:2,10:9"``, ``"1,256"``);
    ``foreground`` may be a series of :data:`FOREGROUND_SERIES`.

    Raises:
        ParameterError: see :func:`make`; the same value twice, or an empty list.
    """
    several = {
        one.name: _several(one.name, chosen[one.name])
        for one in offered(model)
        if one.option.several and chosen.get(one.name) is not None
    }
    for name, values in several.items():
        if not values:
            raise ParameterError("is an empty list: give a value, or leave it out", name)
        same = [getattr(one, "native_percent", one) for one in (getattr(make(model, {name: v}), name) for v in values)]
        if len(set(same)) < len(same):
            raise ParameterError("the same value twice", name)
    names = sorted(several, key=lambda name: name != "networks")
    return tuple(
        make(model, {**chosen, **dict(zip(names, values, strict=True))})
        for values in product(*(several[name] for name in names))
    )


def labels() -> dict[str, str]:
    """Labels of the members of all procedures in reports, with the unit."""
    return {one.name: one.option.label for one in all_offered(Conditions) if one.option.label}


def _several(name: str, given: Any) -> list[Any]:
    if name == "foreground" and isinstance(given, str) and given in FOREGROUND_SERIES:
        return list(FOREGROUND_SERIES[given])
    return list(_listed(given))


def words_of(given: Any) -> list[Any]:
    """The values of a list whose texts may be lists too."""
    return [word for one in _listed(given) for word in _listed(one)]


def _listed(given: Any) -> Iterator[Any]:
    """The values of a list or of a text with commas; or the single value."""
    return iter(word.strip() for word in given.split(",")) if isinstance(given, str) else _each(given)


def _each(given: Any) -> Iterator[Any]:
    """The values of a list, or the single value."""
    return iter(given) if isinstance(given, list | tuple) else iter((given,))
