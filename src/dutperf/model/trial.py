# SPDX-License-Identifier: Apache-2.0
"""A trial and its phases: the request to the tester."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from dutperf.model.capture import Capture
from dutperf.model.connections import Connections, ConnectionUse, Opening
from dutperf.model.pattern import Times, random_bits
from dutperf.model.questions import NameServer
from dutperf.model.stream import Stream
from dutperf.model.value import LEFT_AND_RIGHT, Direction, Span, Sparse, Value, Within, to_json
from dutperf.model.wording import FRAMES, Wording

_DUE_TIMES = 3
"""Number of a path's generator of due times (``Generator`` in ``engine/trial/trial.hpp``)."""
_GENERATORS = 32
"""Of each path after the first two."""

TRIAL_NUMBERS = 65536
"""A test frame carries 16 bits of the trial's number. No frames of a trial are left this many trials
later."""


ANY_LOSS = 0.999999
"""Tolerated loss of a phase whose losses say nothing about its validity."""


class Stamping(StrEnum):
    """Which frames carry their send time."""

    NONE = "none"
    TAGGED = "tagged"
    EVERY = "every"


class Tagged(Value):
    """``count`` tagged frames. The frames that are due ``after_ns`` after the start or later are divided
    into equal parts, with one tagged frame in each (RFC 8219 7.2)."""

    count: Annotated[int, Field(ge=1, le=10_000_000)]
    after_ns: Within


class DelaysFiles(Value):
    """Files for all delays of each direction, or of paths by their names, on the tester's machine, in
    NumPy's format (protocol/README.md)."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Annotated[str, Field(min_length=1)]] = Field(init=False)

    forward: Annotated[str, Field(min_length=1)] | None = None
    reverse: Annotated[str, Field(min_length=1)] | None = None


class Fill(Value):
    """The line is filled without a gap: between the test frames come fillers, frames that the DUT's NIC
    drops."""

    kind: Literal["fill"] = "fill"
    destination: Annotated[str, Field(pattern=r"^[0-9a-f]([02468ace])(:[0-9a-f]{2}){5}$")]
    """A unicast MAC address that nobody has."""


class Question(Value):
    """What the procedure wants to learn from a trial, and how exactly
    (:mod:`dutperf.judge.validity`)."""

    tolerated_loss: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of a direction's frames that may be lost."""
    links_may_fall: bool = False
    """The DUT is reset during the trial, and the tester's links may go down with it."""
    opening_counts: bool = False
    """The preliminary phase that opens connections is measured too: if the DUT loses its frames, the trial ends
    with it, and its counts are the trial's."""
    delete_connections: bool = False
    """How long the DUT takes to delete its connections is measured after the trial (RFC 9693 section 4.8)."""
    clear_addresses: bool = False
    """The DUT's address table is emptied before the trial (RFC 2889 sections 5.7, 5.8)."""
    once: bool = False
    """The trial counts as it is: one that is not valid is not repeated. For a probability of loss: trials
    with loss are invalid more often than others (a disturbance may have caused it)."""
    may_end_early: bool = False
    """A trial that can no longer become valid may end early: it is repeated, and its result is not
    used."""
    resolution: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Resolution of the search for the DUT's highest rate, as a share of the trial's rate; 0: no
    search, the trial's own figures count."""


class Phase(Value):
    """A part of a trial with its own traffic: streams, sending time, drain. Each phase is judged by
    itself. A phase always sends the same frames."""

    trial: Annotated[int, Field(ge=0, le=TRIAL_NUMBERS - 1)]
    """The number in the tags of its frames, which reveals late frames of another phase."""
    seed: Annotated[int, Field(ge=0, le=2**53 - 1)] = 0
    rest_ns: Annotated[int, Field(ge=1, le=100_000_000_000_000)] | None = None
    """Time between the learning frames and the first test frame (RFC 2544 section 23 (b)); None: no
    rest."""
    duration_ns: Span
    drain_ns: Annotated[int, Field(ge=0, le=3_600_000_000_000)]
    burst: Annotated[int, Field(ge=1, le=512)] = 32
    stamping: Stamping = Stamping.NONE
    stamps: Literal["kernel", "card", "auto"] | None = None
    """What times the delays of stamped frames: the kernel or the cards at both ends (``SO_TIMESTAMPING``), or with
    ``auto`` the loops where the kernel cannot; None: the tester's loops."""
    tagged: Tagged | None = None
    lost_delay_ns: Annotated[int, Field(ge=0, le=2**53 - 1)] | None = None
    """Delay that a lost stamped frame counts as; None: it does not count."""
    frame_timeout_ns: Annotated[int, Field(ge=1, le=3_600_000_000_000)] | None = None
    """A frame with a longer delay does not count as received (Lencse, Kovács, Shima, IJATES2 9(2),
    2020)."""
    question: Question = Question()
    """For the verdict on the phase; the engine does not get it."""
    by_flow: Literal[True] | None = None
    """Whether each flow of described frames is counted by itself."""
    delay_parts: Literal[1, 2, 5, 10, 25, 50] | None = None
    """Equal parts of the sending time with delays of their own, of stamped frames by their due times;
    a divisor of the number of parts for losses (:data:`dutperf.model.result.LOSS_BINS`)."""
    delays_files: DelaysFiles | None = None
    queries_file: Annotated[str, Field(min_length=1)] | None = None
    """File for the times of each query, on the tester's machine, in NumPy's format (protocol/README.md)."""
    progress_ms: Annotated[int, Field(ge=20, le=1000)] | None = None
    """Time between two reports of the counts; None: a second."""
    capture: Capture | None = None
    """Frames for a file."""
    connections: Connections | None = None
    """None: no stateful test."""
    server: NameServer | None = None
    """The tester's own name server, for which a DUT asks; None: there is none."""
    pacing: Fill | None = None
    """None: each frame is handed over when it is due."""
    forward: Stream | None = None
    reverse: Stream | None = None
    paths: dict[Direction, Stream] | None = None
    """Of named ports: the stream of every path, in the order of the configuration; None: of left and
    right."""
    other_streams: dict[Direction, Stream] | None = None
    """Streams with rates of their own on the same paths. They are load beside those that are measured: what is lost of
    them decides nothing. Without any that are measured, they are."""

    @model_validator(mode="after")
    def _some_direction(self) -> Self:
        if not self.all_streams() and self.capture is None:
            raise ValueError("a trial needs a direction, a stream, or a capture")
        if self.paths is not None and (self.forward is not None or self.reverse is not None):
            raise ValueError("a trial has either paths, or forward and reverse")
        return self

    @model_validator(mode="after")
    def _changes_while_sending(self) -> Self:
        for direction, stream in self.all_streams().items():
            begin_ns, ends_ns = stream.begin_ns or 0, stream.ends_ns(self.duration_ns)
            if begin_ns >= ends_ns or ends_ns > self.duration_ns:
                raise ValueError(
                    f"{direction} would send from {begin_ns} to {ends_ns} ns of a trial of {self.duration_ns} ns"
                )
            if stream.then is not None and stream.then.after_ns >= ends_ns - begin_ns:
                raise ValueError(
                    f"the rate of {direction} would change after {stream.then.after_ns} ns of a trial of"
                    f" {self.duration_ns} ns"
                )
        return self

    @model_validator(mode="after")
    def _stamps_as_needed(self) -> Self:
        if (self.tagged is not None) != (self.stamping is Stamping.TAGGED):
            raise ValueError("tagged needs stamping tagged, and stamping tagged needs tagged")
        if self.lost_delay_ns is not None and self.stamping is Stamping.NONE:
            raise ValueError("lost_delay_ns needs stamped frames")
        if self.frame_timeout_ns is not None and self.stamping is not Stamping.EVERY:
            raise ValueError("frame_timeout_ns needs stamping every")
        if self.delay_parts is not None and self.stamping is Stamping.NONE:
            raise ValueError("delay_parts needs stamped frames")
        if self.delays_files is not None and self.stamping is Stamping.NONE:
            raise ValueError("delays_files needs stamped frames")
        if self.pacing is not None and self.stamping is not Stamping.NONE:
            raise ValueError("a filled line goes without stamped frames")
        return self

    @model_validator(mode="after")
    def _connections_have_frames(self) -> Self:
        if self.connections is None:
            return self
        streams, initiator = self.streams(), self.connections.initiator
        opens = self.connections.use is ConnectionUse.OPEN
        if opens and set(streams) != {initiator}:
            raise ValueError(f"only the Initiator opens connections: {initiator} alone")
        each_once = self.connections.opening is Opening.EACH
        if opens and each_once and self.intended(initiator) > self.connections.count:
            raise ValueError(
                f"{self.intended(initiator)} frames open {self.connections.count} connections: each opens one"
            )
        if self.connections.use in (ConnectionUse.EACH, ConnectionUse.LOST) and initiator in streams:
            raise ValueError(f"only the Responder sends: not {initiator}")
        return self

    @property
    def opens_connections(self) -> bool:
        return self.connections is not None and self.connections.use is ConnectionUse.OPEN

    @property
    def duration_s(self) -> float:
        return self.duration_ns / 1e9

    @property
    def whole_s(self) -> float:
        """Rest, sending and draining in seconds."""
        return ((self.rest_ns or 0) + self.duration_ns + self.drain_ns) / 1e9

    def lasting(self, duration_s: float) -> Self:
        """The same trial with another sending time. What sends in a part of it does so in the same part."""
        return self.within(round(duration_s * 1e9))

    def within(self, duration_ns: int, **members: Any) -> Self:
        """As :meth:`lasting`, in ns, with further ``members`` that differ."""
        share = Fraction(duration_ns, self.duration_ns)
        others = self.other_streams and {one: stream.at(share) for one, stream in self.other_streams.items()}
        return self.model_validate({**dict(self), "duration_ns": duration_ns, "other_streams": others, **members})

    def request(self) -> dict[str, Any]:
        """The ``params`` of the engine's ``run`` (protocol/request.schema.json)."""
        members = to_json(self)
        streams = (members if self.paths is None else members["paths"]) | members.get("other_streams", {})
        for direction, stream in self.all_streams().items():
            if stream.frames or stream.destination_address is not None:
                streams[direction].pop("networks", None)
            for frame in (*streams[direction].get("frames", ()), *streams[direction].get("ptp", ())):
                for known_here in ("name", "stream", "native"):
                    frame.pop(known_here, None)
            if stream.streams:
                numbers = {name: number for number, name in enumerate(stream.streams)}
                streams[direction]["streams"] = [numbers[frame.stream or ""] for frame in stream.frames]
            if stream.replay is not None:
                streams[direction]["replay"] = stream.replay.request()
        return {name: value for name, value in members.items() if name not in ("question", "preliminary")}

    def streams(self) -> dict[Direction, Stream]:
        """The streams of the active paths: forward first, or in the order of the configuration. Where nothing else is
        sent, those with rates of their own."""
        if self.paths is not None:
            return dict(self.paths)
        both = {Direction.FORWARD: self.forward, Direction.REVERSE: self.reverse}
        active = {direction: stream for direction, stream in both.items() if stream is not None}
        return active or dict(self.other_streams or {})

    @property
    def sends_others_alone(self) -> bool:
        """Whether nothing is sent but streams with rates of their own."""
        return all(direction.stream for direction in self.streams())

    @property
    def counted(self) -> Wording:
        return next((stream.counted for stream in self.streams().values()), FRAMES)

    def all_streams(self) -> dict[Direction, Stream]:
        """The same, and behind them those beside them."""
        return self.streams() | (self.other_streams or {})

    def with_streams(self, streams: dict[Direction, Stream]) -> Self:
        """The trial with these streams in place of its own on the same paths."""
        if self.paths is not None:
            return self.model_copy(update={"paths": {**self.paths, **streams}})
        return self.model_copy(update={direction.value: stream for direction, stream in streams.items()})

    @property
    def longest_frame(self) -> int:
        """Size of the longest frame that is sent, in bytes."""
        return max((size for stream in self.all_streams().values() for size in stream.sizes), default=0)

    def intended(self, direction: Direction) -> int:
        """Number of frames that ``direction`` is to send: those due before the end of the sending time."""
        return 0 if direction not in self.all_streams() else self.times(direction).frames_before(self.duration_ns)

    def additional(self, direction: Direction) -> tuple[int, ...]:
        """Number of additional frames of each kind that ``direction`` is to send."""
        stream = self.all_streams().get(direction)
        kinds = () if stream is None else stream.additional
        return tuple(one.among(self.intended(direction), self.duration_ns) for one in kinds)

    def times(self, direction: Direction) -> Times:
        """Due times of the frames of an active direction (protocol/README.md)."""
        return self.all_streams()[direction].times(self.duration_ns, random_bits(self.seed, self._generator(direction)))

    def number_of(self, direction: Direction) -> int:
        """The number of a path among those of the ports, behind which are the streams beside them."""
        paths = LEFT_AND_RIGHT if self.paths is None else tuple(self.paths)
        return (*paths, *(self.other_streams or {})).index(direction)

    def _generator(self, direction: Direction) -> int:
        """Number of the path's generator of due times (``generator_seed`` in ``engine/trial/trial.hpp``)."""
        number = self.number_of(direction)
        return 4 * _DUE_TIMES + number if number < 2 else _GENERATORS * number + _DUE_TIMES


class Trial(Sparse, Phase):
    """One elementary measurement (RFC 2544 section 23). The trial itself is its measuring phase;
    preliminary phases come before it, as in RFC 9693 section 4.4."""

    sparse: ClassVar[Sequence[str]] = ("preliminary",)

    preliminary: tuple[Phase, ...] = ()
    """Phases in this order. Their frames do not count in the trial's result."""

    @model_validator(mode="after")
    def _numbers_differ(self) -> Self:
        numbers = [*(phase.trial for phase in self.preliminary), self.trial]
        if len(set(numbers)) < len(numbers):
            raise ValueError("two phases of a trial have the same number")
        return self

    @property
    def whole_s(self) -> float:
        """Rest, sending and draining of all phases in seconds."""
        return super().whole_s + sum(phase.whole_s for phase in self.preliminary)

    def preliminary_trials(self) -> Iterator[Trial]:
        return (Trial(**dict(phase)) for phase in self.preliminary)

    @property
    def numbers(self) -> int:
        """How many trial numbers it takes: one for each phase, and with connections one more, for the phase that asks
        which connections are left."""
        return 1 + len(self.preliminary) + (self.connections is not None)

    def alone(self) -> Trial:
        """The measuring phase without preliminary ones."""
        return self.model_copy(update={"preliminary": ()}) if self.preliminary else self
