# SPDX-License-Identifier: Apache-2.0
"""What is sent by the flows of a configuration, and captured, now.

The engine runs one trial at a time. Where flows are started or stopped while others are sent, the trial ends and the
next one has what is left of them: the counts of each flow are the sums over its trials, and a warning says how long the
others paused.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from dutperf.engine.client import EngineTester
from dutperf.errors import DutperfError
from dutperf.model import (
    MOST_CAPTURED,
    Capture,
    Cause,
    Direction,
    DirectionCounts,
    Stream,
    Trial,
    TrialResult,
    Verdict,
    ports_of,
)
from dutperf.model.pattern import NS_PER_S
from dutperf.model.trial import TRIAL_NUMBERS, Stamping
from dutperf.otg import links
from dutperf.otg.flows import LONGEST_NS, Flow
from dutperf.otg.links import Links
from dutperf.otg.model import Message, Rejected
from dutperf.otg.trial_log import TrialLog
from dutperf.setup.configuration import NO_PORT, EngineSettings, Setup, SharedPort, Side
from dutperf.tester import Progress, TesterError
from dutperf.tester.in_background import TrialInBackground

Streams = Mapping[Direction, Sequence[str]]
"""Each with the further ports at which its frames may arrive."""
Open = Callable[[Setup, int, Streams], EngineTester]
"""The tester on a setup: longest frame in bytes, and streams."""
PROGRESS_MS = 100
USUAL_FRAME = 1518
"""Bytes that ports take at least."""
_MIDDLE = 15 / 16
"""Of a bucket of delays, which is an eighth of them wide, as a share of the largest."""
_PATIENCE_S = 0.5
"""Between two attempts to open ports whose gateway did not answer."""
_MOST_DOUBTFUL = 100
"""Trials of a flow that were not valid, of which it keeps the causes: the latest."""
STARTED, STOPPED, PAUSED = "started", "stopped", "paused"


@dataclass
class Totals:
    """The counts of a flow."""

    sent: int = 0
    received: int = 0
    """With duplicates."""
    lost: int = 0
    sent_bytes: float = 0.0
    received_bytes: float = 0.0
    sent_ns: int = 0
    """For how long it has been sent."""
    latency_ns: tuple[float, float, float, int] | None = None
    """The smallest, the largest, the sum and the number of all."""
    first_ns: int | None = None
    """When the first frame arrived, since 1970..."""
    last_ns: int | None = None
    """... and the latest."""
    received_at: Counter[str] = field(default_factory=Counter)
    """By ports of ours, where it has several."""
    tracked: Counter[int | None] = field(default_factory=Counter)
    """By the values of its tags; None: of frames with more values than are counted each by itself."""

    def add(self, counts: DirectionCounts, stream: Stream, began_ns: int, sent_ns: int) -> None:
        """Count what a trial counted of its ``stream``, which began at ``began_ns`` since 1970 and sent it for
        ``sent_ns``."""
        sizes, mean = stream.sizes, stream.mean_size
        received = counts.received + counts.duplicates
        kinds = counts.kinds or ()
        self.sent += counts.sent
        self.received += received
        self.lost += counts.lost
        self.received_at.update(counts.received_at or {})
        if counts.tracked is not None:
            for value, frames in (*counts.tracked.values.items(), (None, counts.tracked.others)):
                self.tracked[value] += frames
        if len(kinds) == len(sizes):
            self.sent_bytes += sum(one.sent * size for one, size in zip(kinds, sizes, strict=True))
            self.received_bytes += sum(one.received * size for one, size in zip(kinds, sizes, strict=True))
            self.received_bytes += counts.duplicates * mean
        else:
            self.sent_bytes += counts.sent * mean
            self.received_bytes += received * mean
        self.sent_ns += sent_ns
        delays = counts.delay_us
        if delays is not None and counts.stamped_received:
            buckets = delays.buckets or ((delays.p50, counts.stamped_received),)
            number = sum(count for _, count in buckets)
            least, most, total, before = self.latency_ns or (delays.min * 1e3, delays.max * 1e3, 0.0, 0)
            total += sum(most_us * _MIDDLE * count for most_us, count in buckets) * 1e3
            self.latency_ns = min(least, delays.min * 1e3), max(most, delays.max * 1e3), total, before + number
        if counts.arrivals is not None and received:
            self.first_ns = self.first_ns or began_ns + round(counts.arrivals.first_s * NS_PER_S)
            self.last_ns = began_ns + round(counts.arrivals.last_s * NS_PER_S)


def joined(parts: Sequence[Totals]) -> Totals:
    """The times, latencies and tags of the parts of a flow."""
    latencies = [one.latency_ns for one in parts if one.latency_ns is not None]
    first = [one.first_ns for one in parts if one.first_ns is not None]
    last = [one.last_ns for one in parts if one.last_ns is not None]
    least, most, total, number = zip(*latencies, strict=True) if latencies else ((), (), (), ())
    return Totals(
        latency_ns=(min(least), max(most), sum(total), sum(number)) if latencies else None,
        first_ns=min(first, default=None),
        last_ns=max(last, default=None),
        tracked=sum((one.tracked for one in parts), Counter()),
    )


def hosts_of(port: Mapping[str, Any]) -> list[Any]:
    """What the engine tells of the hosts on a port, of the port's own first; none of one that is not open."""
    return [port, *port.get("hosts", [])] if port else []


@dataclass
class RunningFlow:
    flow: Flow
    state: str = STOPPED
    totals: Totals = field(default_factory=Totals)
    doubts: deque[Sequence[str]] = field(default_factory=lambda: deque(maxlen=_MOST_DOUBTFUL))
    """Why trials since its start, whose counts are in the totals, say nothing about the DUT."""
    is_told: bool = False
    """Of all these doubts, by the answer to a stop or a pause."""

    def begin(self) -> None:
        """From the start, without what was counted before."""
        self.state, self.totals = STARTED, Totals()
        self.forget()

    def doubt(self, texts: Sequence[str]) -> None:
        if texts:
            self.doubts.append(texts)
            self.is_told = False

    def forget(self) -> None:
        self.doubts.clear()
        self.is_told = False


@dataclass
class AllSent:
    """When flows of so many frames had sent all of them: a slow port needs longer than their rates say."""

    frames: Mapping[Direction, int]
    at_s: dict[Direction, float] = field(default_factory=dict)
    """By the times of the progress."""

    def note(self, progress: Progress) -> None:
        for direction, frames in self.frames.items():
            if direction in progress.directions and progress.directions[direction].sent >= frames:
                self.at_s.setdefault(direction, progress.elapsed_s)

    def has(self, direction: Direction, before_s: float) -> bool:
        """Whether a flow had sent all of them by then, or just ends with its time."""
        return direction not in self.frames or self.at_s.get(direction, inf) <= before_s


@dataclass
class Part:
    """A trial that runs now."""

    trial: Trial
    names: tuple[str, ...]
    """Of the flows that it sends."""
    background: TrialInBackground
    all_sent: AllSent
    capture: Path | None = None
    began_ns: int = 0
    """When sending began, since 1970, to some milliseconds."""
    before: tuple[float, Mapping[Direction, tuple[int, int]]] | None = None
    """An earlier progress, for rates."""
    rates: dict[Direction, tuple[float, float]] = field(default_factory=dict)


@dataclass
class _Failed:
    """An attempt to open the ports."""

    error: TesterError
    text: str
    """In the words of the configuration."""
    at_s: float
    """When it ended."""
    answering: Mapping[str, Mapping[str, Any]] | None = None
    """What the engine tells of the ports without the gateways that do not answer; None: nobody has asked."""


class Transmission:
    """The flows, and the trial that sends them. One thread at a time may call its methods."""

    def __init__(self, engine: EngineSettings, open_tester: Open, drain_s: float, log: TrialLog) -> None:
        self._engine, self._open_tester, self.log = engine, open_tester, log
        self._drain_ns = round(drain_s * NS_PER_S)
        self.links = Links()
        self.flows: dict[str, RunningFlow] = {}
        """By their names."""
        self.capturing: frozenset[str] = frozenset()
        """Ports at which frames are captured, by the configuration's names."""
        self._captured: list[tuple[Path, frozenset[str]]] = []
        self._tester: EngineTester | None = None
        self._failed: _Failed | None = None
        """Why the ports could not be opened."""
        self._part: Part | None = None
        self._number = 0
        self._directory = tempfile.TemporaryDirectory(prefix="dutperf-otg-")

    def close(self) -> None:
        with suppress(DutperfError):
            self._end_part()
        self._close_tester()
        self._directory.cleanup()

    # --- flows ----------------------------------------------------------------------------------------

    def set(self, planned: Links, flows: Sequence[Flow], configuration: Message, former: Message) -> None:
        """Have these ports and flows, of ``configuration``, instead of all that was there, and open the ports."""
        with self._undone(former):
            self._end_part()
            self._close_tester()
            self.links, self.flows = planned, {one.name: RunningFlow(one) for one in flows}
            self.capturing, self._captured = frozenset(), []
            self.log.configured(configuration, flows)
            self._open(must=False)
        self.log.forget()
        self._delete_captures()

    def change(self, planned: Links, flows: Sequence[Flow], configuration: Message, former: Message) -> list[str]:
        """Have these flows, of ``configuration``, at the same ports. Those that are there before and after keep their
        state and counts; those that are sent pause meanwhile. Returns warnings. Raises Rejected: the ports cannot be
        opened, and never can, or what was sent cannot go on. What was there of the ``former`` configuration is there
        then, and goes on."""
        self.settle()
        with self._undone(former):
            with self._between_trials("while flows were changed") as warnings:
                self.links, self.flows = planned, {one.name: self._going_on(one) for one in flows}
                self.log.configured(configuration, flows)
                self._close_tester()
            self._open(must=False)
        return warnings

    @contextmanager
    def _undone(self, former: Message) -> Iterator[None]:
        """If something is rejected in the block, have again what was there of the ``former`` configuration."""
        before = self.links, self.flows, self.capturing, self._captured
        try:
            yield
        except Rejected:
            self.links, self.flows, self.capturing, self._captured = before
            if self.links.sides:
                self.log.configured(former, [one.flow for one in self.flows.values()])
            with suppress(Rejected):
                with self._between_trials("while another configuration was refused"):
                    self._close_tester()
                self._open(must=False)
            raise

    def _going_on(self, flow: Flow) -> RunningFlow:
        """With the state and the counts of the one of its name, if there is one."""
        return replace(self.flows.get(flow.name) or RunningFlow(flow), flow=flow)

    def transmit(self, state: str, names: Sequence[str]) -> list[str]:
        """``start``, ``stop``, ``pause`` or ``resume`` these flows. Returns warnings. Raises Rejected: the ports cannot
        be opened."""
        self.settle()
        begins = state in ("start", "resume")
        if begins:
            self._open(must=True)
        with self._between_trials("while other flows were changed", names) as warnings:
            if begins:
                self._forget_told(names)
            for name in names:
                self._change(self.flows[name], state)
            warnings += [] if begins else self._doubts(names)
        return warnings

    def _forget_told(self, begun: Sequence[str]) -> None:
        """A stop of all flows after the ``begun`` ones tells nothing again of those that had been stopped before: a
        search would never get a valid trial."""
        for name, one in self.flows.items():
            if name not in begun and one.state == STOPPED and one.is_told:
                one.forget()

    def _doubts(self, names: Sequence[str]) -> list[str]:
        """Why counts of these flows say nothing about the DUT: of all trials that they have been in since their
        starts."""
        texts: dict[str, None] = {}
        for one in map(self.flows.__getitem__, names):
            one.is_told = True
            texts |= dict.fromkeys(text for each in one.doubts for text in each)
        return list(texts)

    @contextmanager
    def _between_trials(self, when: str, chosen: Sequence[str] = ()) -> Iterator[list[str]]:
        """End the trial that runs, and after the block begin the next one with what is sent and captured then. The
        list gets a warning of the pause of flows other than ``chosen`` that are sent before and after."""
        warnings: list[str] = []
        before, began_s = self.sending(), time.monotonic()
        self._end_part()
        yield warnings
        sending = self.sending()
        if sending or self.capturing:
            self._begin_part(sending)
        if paused := [name for name in sending if name in before and name not in chosen]:
            warnings.append(f"{', '.join(paused)}: paused for {time.monotonic() - began_s:.2f} s {when}")

    def sending(self) -> list[str]:
        return [name for name, one in self.flows.items() if one.state == STARTED]

    def _change(self, one: RunningFlow, state: str) -> None:
        if state == "start" or (state == "resume" and one.state == STOPPED):
            one.begin()
        elif state == "resume":
            one.state = STARTED
        elif state == "stop" or one.state == STARTED:
            one.state = STOPPED if state == "stop" else PAUSED

    def _begin_part(self, names: Sequence[str]) -> None:
        """Send what is left of these flows; without any, listen. Raises Rejected: the ports cannot be opened, or the
        journal cannot be written; none of the flows is sent then."""
        try:
            self._open(must=True)
            trial = self._next_trial(names)
            if trial is not None and trial.other_streams:
                self.log.begins(trial)
        except Rejected:
            for name in names:
                self.flows[name].state = STOPPED
            raise
        if trial is None:
            return
        assert self._tester is not None, "it is open"
        sending = tuple(name for name in names if self.flows[name].flow.direction in (trial.other_streams or {}))
        all_sent = AllSent(
            {
                one.flow.direction: one.flow.frames - one.totals.sent
                for one in map(self.flows.__getitem__, sending)
                if one.flow.frames is not None
            }
        )
        background = TrialInBackground(self._tester, trial, all_sent.note)
        file = None if trial.capture is None else Path(trial.capture.path)
        self._part = Part(trial, sending, background, all_sent, file)
        try:
            background.wait_until_sending()
            progress = background.progress
            self._part.began_ns = time.time_ns() - round((progress.elapsed_s if progress else 0.0) * NS_PER_S)
        except DutperfError as error:
            self._end_part(error)
            self._close_tester()  # a port that was made again is opened the next time
            raise Rejected(error.sentence, code=500, kind="internal") from None
        if file is not None:
            self._captured.append((file, self.capturing))

    def _next_trial(self, names: Sequence[str]) -> Trial | None:
        """The trial with what is left of these flows; None: nothing is to be sent or captured. Those of which nothing
        is left are stopped."""
        parts: dict[Direction, Any] = {}
        for name in names:
            one = self.flows[name]
            left = one.flow.part(one.totals.sent, one.totals.sent_ns, goes_on=bool(one.totals.sent))
            if left is None:
                one.state = STOPPED
            else:
                parts[one.flow.direction] = left
        if not parts and not self.capturing:
            return None
        self._number = (self._number + 1) % TRIAL_NUMBERS
        lasts = [
            LONGEST_NS if one.sends_ns is None else (one.begin_ns or 0) + one.sends_ns for one in parts.values()
        ] or [LONGEST_NS]
        file = Path(self._directory.name) / f"{self._number}.pcapng" if self.capturing else None
        sent = (one.flow for one in map(self.flows.__getitem__, names) if one.flow.direction in parts)
        stamped = any(flow.with_latency or flow.with_times for flow in sent)
        return Trial(
            trial=self._number,
            duration_ns=min(LONGEST_NS, max(lasts)),
            drain_ns=self._drain_ns if parts else 0,
            stamping=Stamping.EVERY if stamped else Stamping.NONE,
            progress_ms=PROGRESS_MS,
            other_streams=parts or None,
            capture=None if file is None else Capture(path=str(file), first=MOST_CAPTURED),
        )

    def _end_part(self, error: DutperfError | None = None) -> None:
        """End the trial that runs, if one does, and count what it counted."""
        part, self._part = self._part, None
        if part is None:
            return
        by_itself, progress = not part.background.is_running, part.background.progress
        elapsed_s = 0.0 if progress is None else progress.elapsed_s
        result = None
        if error is None:
            try:
                result = part.background.end()
            except DutperfError as failure:
                error = failure
        if result is not None:
            self._count(part, result, part.trial.duration_ns if by_itself else round(elapsed_s * NS_PER_S))
        if by_itself or result is None or result.verdict is Verdict.ABORTED:
            for name in part.names:
                self.flows[name].state = STOPPED
        if part.names:
            self._judged(part, result or _without_counts(part.trial, error))

    def _judged(self, part: Part, result: TrialResult) -> None:
        self.log.ended(part.trial, result)
        doubts = self.log.doubts()
        for name in part.names:
            self.flows[name].doubt(doubts)

    def _count(self, part: Part, result: TrialResult, lasted_ns: int) -> None:
        """Add what a trial counted of each flow; ``lasted_ns``: for how long it was sent."""
        flows = self._by_direction()
        for direction, counts in (result.other_streams or {}).items():
            one = flows[direction]
            stream = (part.trial.other_streams or {})[direction]
            sent_ns = max(0, min(stream.ends_ns(part.trial.duration_ns), lasted_ns) - (stream.begin_ns or 0))
            one.totals.add(counts, one.flow.stream, part.began_ns, sent_ns)
            if one.flow.part(one.totals.sent, one.totals.sent_ns, goes_on=True) is None:
                one.state = STOPPED

    def _by_direction(self) -> dict[Direction, RunningFlow]:
        return {one.flow.direction: one for one in self.flows.values()}

    def settle(self) -> None:
        """Count what has ended, and go on listening where frames are captured."""
        part = self._part
        if part is None:
            return
        self._rate(part)
        self._note_ends(part)
        if not part.background.is_running:
            self._end_part()
            if self.capturing:
                self._begin_part(self.sending())

    def show(self) -> None:
        """Note in the log what runs now."""
        self.log.show(self._part.background.progress if self._part is not None and self._part.names else None)

    def _note_ends(self, part: Part) -> None:
        """Flows that have ended, and whose last frames have arrived or never will, beside others that go on. The last
        ones have when the trial ends, which has their final counts."""
        for name in part.names if self._is_sending(part) else ():
            if self._has_been_sent(part, name, after_ns=self._drain_ns):
                self.flows[name].state = STOPPED

    def _is_sending(self, part: Part) -> bool:
        return not all(self._has_been_sent(part, name) for name in part.names)

    def _has_been_sent(self, part: Part, name: str, after_ns: int = 0) -> bool:
        """Whether a flow ended ``after_ns`` ago or longer."""
        progress, direction = part.background.progress, self.flows[name].flow.direction
        stream = (part.trial.other_streams or {})[direction]
        if stream.sends_ns is None or progress is None:
            return False
        after_s = after_ns / NS_PER_S
        ends_s = stream.ends_ns(part.trial.duration_ns) / NS_PER_S
        return progress.elapsed_s >= ends_s + after_s and part.all_sent.has(direction, progress.elapsed_s - after_s)

    def _rate(self, part: Part) -> None:
        """Rates from two reports, half a second apart or more."""
        progress = part.background.progress
        if progress is None:
            return
        now = {direction: (one.sent, one.received) for direction, one in progress.directions.items()}
        if part.before is None:
            part.before = (progress.elapsed_s, now)
            return
        elapsed_s = progress.elapsed_s - part.before[0]
        if elapsed_s >= 5 * PROGRESS_MS / 1000:
            for direction, (sent, received) in now.items():
                was = part.before[1].get(direction, (0, 0))
                part.rates[direction] = ((sent - was[0]) / elapsed_s, (received - was[1]) / elapsed_s)
            part.before = (progress.elapsed_s, now)

    # --- ports ----------------------------------------------------------------------------------------

    def _open(self, *, must: bool) -> None:
        """Open the ports. Where a gateway does not answer, or a link is down, this is tried again later. Raises
        Rejected: they cannot be opened, and ``must`` be, or never can."""
        if self._tester is not None:
            return
        if not self.links.sides:
            if must:
                raise Rejected("no configuration is set")
            return
        if self._failed and not must and time.monotonic() - self._failed.at_s < _PATIENCE_S:
            return
        try:
            self._tester = self._opened_on(*self._setup())
        except TesterError as error:
            told = self.in_their_words(error)
            self._failed = _Failed(error, str(told), time.monotonic())
            if must or not error.is_temporary:
                raise told from None
        else:
            self._failed = None
            self.log.opened(self._tester.environment())

    def _opened_on(self, setup: Setup, names: Streams) -> EngineTester:
        """The tester with open ports. Raises TesterError: they cannot be opened."""
        longest = max((size for one in self.flows.values() for size in one.flow.sizes), default=USUAL_FRAME)
        tester = self._open_tester(setup, max(USUAL_FRAME, longest), names)
        try:
            tester.environment()
        except TesterError:
            tester.close()
            raise
        return tester

    def in_their_words(self, error: TesterError) -> Rejected:
        """With the place in the configuration of whatever is wrong, and names as they are there."""
        text = str(error)
        for theirs, ours in self.links.ours.items():
            text = text if ours == theirs else text.replace(f"the {ours} port", f"the port {theirs!r}")
        place = self.links.places.get(error.field or "", error.field)
        return Rejected(f"{place}: {text}" if place else text, code=500, kind="internal")

    def _answering(self, failed: _Failed) -> dict[str, dict[str, Any]]:
        """What the engine tells of each port without the gateways that do not answer: it names one at a time."""
        setup, names = self._setup()
        error, silent = failed.error, list[tuple[str, int, str]]()
        while error.code == "no_answer":
            port, *way, gateway = (error.field or "").split(".")
            host = int(way[1]) + 1 if way else 0
            if (port, host, gateway) in silent or port not in setup.sides():
                break
            silent.append((port, host, gateway))
            left = _without(setup.sides()[port], host, gateway)
            setup = setup.model_copy(update={"ports": setup.sides() | {port: left}})
            try:
                tester = self._opened_on(setup, names)
            except TesterError as another:
                error = another
                continue
            with closing(tester):
                found = {name: dict(one) for name, one in ports_of(tester.environment()).items()}
            for port, host, gateway in silent:
                hosts_of(found[port])[host].pop(gateway.replace("gateway", "dut_mac"))
            return found
        return {}

    def _setup(self) -> tuple[Setup, Streams]:
        """Ports and paths; a port alone, and flows without a receiver, have one on which nothing arrives. Raises
        Rejected: a ring would have such a port."""
        flows = [one.flow for one in self.flows.values()]
        names = {one.direction: [self.links.ours[port] for port in one.also_rx] for one in flows}
        sides = dict(self.links.sides)
        paths = {str(name.path) for name in names}
        if len(sides) == 1 or any(name.receiving_port == links.NOWHERE for name in names):
            if rings := [name for name, side in sides.items() if side.port == "ring"]:
                raise Rejected(
                    f"{self.links.places[f'{rings[0]}.port']}: what leaves a ring needs a port where it arrives"
                )
            sides[links.NOWHERE] = NO_PORT
        ports = list(sides)
        paths = paths or {f"{ports[0]}->{ports[1]}"}
        return Setup.model_construct(engine=self._engine, ports=sides, paths=tuple(sorted(paths))), names

    @contextmanager
    def ports_free(self) -> Iterator[None]:
        """Give the ports back, and open them again after the block. Raises Rejected: frames are sent or captured
        now."""
        self.settle()
        if self._part is not None:
            raise Rejected("flows are sent or frames are captured now: stop that first")
        self._close_tester()
        try:
            yield
        finally:
            self._open(must=False)

    def _close_tester(self) -> None:
        tester, self._tester, self._failed = self._tester, None, None
        if tester is not None:
            tester.close()

    def retry(self) -> None:
        """Open the ports, if a gateway did not answer before, or a link was down; find out which gateways answer."""
        self._open(must=False)
        failed = self._failed
        if failed is not None and failed.answering is None:
            failed.answering = self._answering(failed)
            failed.at_s = time.monotonic()

    def opened(self) -> Mapping[str, Mapping[str, Any]]:
        """What the engine tells of each port, by names of ours; nothing where they are not open."""
        if self._tester is None:
            return (self._failed and self._failed.answering) or {}
        return ports_of(self._tester.environment())

    @property
    def unanswered(self) -> str:
        """Why the ports could not be opened; empty: they are open, or nobody tried."""
        return self._failed.text if self._failed else ""

    # --- captures -------------------------------------------------------------------------------------

    def begin_capture(self, ports: frozenset[str]) -> list[str]:
        """Capture what arrives at these ports, too; what was captured there is forgotten. Returns warnings. Raises
        Rejected: the ports cannot be opened."""
        self.settle()
        self._open(must=True)
        with (
            self._captures_undone("while a capture was refused"),
            self._between_trials("before the capture") as warnings,
        ):
            self._captured = [(file, before - ports) for file, before in self._captured if before - ports]
            self.capturing |= ports
        self._delete_captures()
        return warnings

    @contextmanager
    def _captures_undone(self, when: str) -> Iterator[None]:
        """If something is rejected in the block, send and capture again what was sent and captured before: else no
        trial could begin."""
        sending, before = self.sending(), (self.capturing, list(self._captured))
        try:
            yield
        except Rejected:
            self.capturing, self._captured = before
            with suppress(Rejected), self._between_trials(when):
                for name in sending:
                    self.flows[name].state = STARTED
            raise

    def _delete_captures(self) -> None:
        """Of the files, those that no port needs any more: a server may run for months."""
        needed = {file for file, _ in self._captured}
        for file in Path(self._directory.name).glob("*"):
            if file not in needed:
                file.unlink(missing_ok=True)

    def end_capture(self, ports: frozenset[str]) -> list[str]:
        """Capture no longer there. Returns warnings."""
        self.settle()
        with self._between_trials("at the end of the capture") as warnings:
            self.capturing -= ports
        return warnings

    def captured(self, port: str) -> list[Path]:
        """The files with what arrived at a port since its capture began; of other ports too. Raises Rejected: nothing
        was captured there, or frames are still being captured."""
        self.settle()
        files = [file for file, ports in self._captured if port in ports]
        if not files:
            raise Rejected(f"port_name: nothing was captured at {port}")
        if self._part is not None and self._part.capture in files:
            if self._is_sending(self._part):
                raise Rejected(f"port_name: the frames of {port} are written when the flows or its capture stop")
            with self._between_trials("while its capture was read"):
                pass
        return [file for file in files if file.exists()]

    # --- counts ---------------------------------------------------------------------------------------

    def so_far(self, one: RunningFlow) -> tuple[int, int, float, float]:
        """Frames and bytes of a flow, sent and received, with those of the trial that runs."""
        totals, mean = one.totals, one.flow.stream.mean_size
        sent = received = 0
        progress = None if self._part is None else self._part.background.progress
        if progress is not None and one.flow.direction in progress.directions:
            now = progress.directions[one.flow.direction]
            sent, received = now.sent, now.received
        return (
            totals.sent + sent,
            totals.received + received,
            totals.sent_bytes + sent * mean,
            totals.received_bytes + received * mean,
        )

    def lost(self, one: RunningFlow) -> int:
        """Frames of a flow that did not arrive, however many others arrived twice; of the trial that runs with those
        under way."""
        progress = None if self._part is None else self._part.background.progress
        now = None if progress is None else progress.directions.get(one.flow.direction)
        return one.totals.lost + (0 if now is None else max(0, now.sent - now.received))

    def received_at(self, one: RunningFlow, port: str) -> int:
        """Frames of a flow that arrived at a port, by its name in the configuration."""
        if port not in (one.flow.rx, *one.flow.also_rx):
            return 0
        if not one.flow.also_rx:
            return self.so_far(one)[1]
        ours, progress = self.links.ours[port], None if self._part is None else self._part.background.progress
        now = None if progress is None else progress.directions.get(one.flow.direction)
        return one.totals.received_at[ours] + ((now and now.received_at) or {}).get(ours, 0)

    def rates(self, one: RunningFlow) -> tuple[float, float]:
        """Frames/s of a flow, sent and received."""
        if self._part is None or one.state != STARTED:
            return 0.0, 0.0
        return self._part.rates.get(one.flow.direction, (0.0, 0.0))


def _without(side: Side, host: int, gateway: str) -> Side:
    if host == 0 or not isinstance(side, SharedPort):
        return side.model_copy(update={gateway: None})
    hosts = list(side.hosts)
    hosts[host - 1] = hosts[host - 1].model_copy(update={gateway: None})
    return side.model_copy(update={"hosts": tuple(hosts)})


def _without_counts(trial: Trial, error: DutperfError | None) -> TrialResult:
    """The result of a trial of which the tester told nothing."""
    code = error.code if isinstance(error, TesterError) else "internal"
    text = "" if error is None else error.sentence
    return TrialResult(trial=trial.trial, verdict=Verdict.ABORTED, causes=(Cause(code=code, text=text),))
