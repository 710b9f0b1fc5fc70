# SPDX-License-Identifier: Apache-2.0
"""The configuration that is set, and what is sent by it now.

The engine runs one trial at a time. Where flows are started or stopped while others are sent, the trial ends and the
next one has what is left of them: the counts of each flow are the sums over its trials, and a warning says how long the
others paused.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dutperf.engine.client import EngineTester
from dutperf.errors import DutperfError
from dutperf.model import MOST_CAPTURED, Capture, Direction, DirectionCounts, Trial, TrialResult, Verdict, ports_of
from dutperf.model.pattern import NS_PER_S
from dutperf.model.trial import TRIAL_NUMBERS, Stamping
from dutperf.otg import coverage, flows, links, recorded
from dutperf.otg.flows import LONGEST_NS, Flow
from dutperf.otg.links import Links
from dutperf.otg.model import Message, Rejected, messages, name_of
from dutperf.setup.configuration import NO_PORT, EngineSettings, Setup
from dutperf.tester import TesterError
from dutperf.tester.in_background import TrialInBackground

Open = Callable[[Setup, int, Sequence[Direction]], EngineTester]
"""The tester on a setup: longest frame in bytes, and streams."""
PROGRESS_MS = 100
POLL_S = 0.05
MOST_TRIALS = 1000
"""Of which the verdicts are kept."""
DRAIN_S = 0.5
_USUAL_FRAME = 1518
_MIDDLE = 15 / 16
"""Of a bucket of delays, which is an eighth of them wide, as a share of the largest."""
_PATIENCE_S = 0.5
"""Between two attempts to open ports whose gateway did not answer."""
_STARTED, _STOPPED, _PAUSED = "started", "stopped", "paused"


@dataclass
class Totals:
    """The counts of a flow."""

    sent: int = 0
    received: int = 0
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

    def add(self, counts: DirectionCounts, sizes: Sequence[int], began_ns: int, sent_ns: int) -> None:
        """Count what a trial counted of it, which began at ``began_ns`` since 1970 and sent it for ``sent_ns``."""
        received = counts.received + counts.duplicates
        kinds = counts.kinds or ()
        self.sent += counts.sent
        self.received += received
        if len(kinds) == len(sizes):
            self.sent_bytes += sum(one.sent * size for one, size in zip(kinds, sizes, strict=True))
            self.received_bytes += sum(one.received * size for one, size in zip(kinds, sizes, strict=True))
            self.received_bytes += counts.duplicates * sum(sizes) / len(sizes)
        else:
            self.sent_bytes += counts.sent * sum(sizes) / len(sizes)
            self.received_bytes += received * sum(sizes) / len(sizes)
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


@dataclass
class RunningFlow:
    """A flow and its state."""

    flow: Flow
    state: str = _STOPPED
    totals: Totals = field(default_factory=Totals)


@dataclass
class Part:
    """A trial that runs now."""

    trial: Trial
    names: tuple[str, ...]
    """Of the flows that it sends."""
    background: TrialInBackground
    capture: Path | None = None
    began_ns: int = 0
    """When sending began, since 1970, to some milliseconds."""
    before: tuple[float, Mapping[Direction, tuple[int, int]]] | None = None
    """An earlier progress, for rates."""
    rates: dict[Direction, tuple[float, float]] = field(default_factory=dict)


class Generator:
    """What a client controls. Each method may be called from any thread.

    ``located``: the ports that there are, by the locations of clients. ``engine``: how the engine runs.
    """

    def __init__(
        self, located: Mapping[str, str], engine: EngineSettings, open_tester: Open, drain_s: float = DRAIN_S
    ) -> None:
        self._located, self._engine, self._open_tester = located, engine, open_tester
        self._drain_ns = round(drain_s * NS_PER_S)
        self._lock = threading.RLock()
        self._configuration: Message = messages.Config()
        self._links = Links()
        self._running: dict[str, RunningFlow] = {}
        self._tester: EngineTester | None = None
        self._unanswered: tuple[float, str] | None = None
        """When and why the ports could not be opened."""
        self._part: Part | None = None
        self._number = 0
        self._capturing: set[str] = set()
        self._captured: list[tuple[Path, frozenset[str]]] = []
        self._directory = tempfile.TemporaryDirectory(prefix="dutperf-otg-")
        self._verdicts: list[dict[str, Any]] = []
        self._ended = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="dutperf-otg", daemon=True)
        self._keeper.start()

    def close(self) -> None:
        """Stop the traffic, and give the ports back."""
        self._ended.set()
        self._keeper.join()
        with self._lock:
            with suppress(DutperfError):
                self._end_part()
            self._close_tester()
            self._directory.cleanup()

    # --- configuration --------------------------------------------------------------------------------

    @property
    def configuration(self) -> Message:
        """The one that is set."""
        return self._configuration

    def set_configuration(self, wanted: Message) -> list[str]:
        """Set it, and open its ports; traffic that runs is stopped. Returns warnings.

        Raises:
            Rejected: it is not possible; the former one remains, and its traffic goes on.
        """
        with self._lock:
            warnings = coverage.check(wanted)
            planned_links = links.planned(wanted, self._located)
            planned_flows = flows.planned(wanted, planned_links)
            _check_captures(wanted, planned_links)
            self._end_part()
            self._close_tester()
            self._links, self._running = planned_links, {one.name: RunningFlow(one) for one in planned_flows}
            self._configuration = messages.Config()
            self._configuration.CopyFrom(wanted)
            self._capturing, self._captured, self._verdicts = set(), [], []
            self._open(must=False)
            return warnings + self._of_flows(planned_flows)

    def _of_flows(self, planned: Sequence[Flow]) -> list[str]:
        """Warnings about these flows, and ports that could not be opened."""
        warnings = [text for one in planned for text in one.warnings]
        warnings += [self._unanswered[1]] if self._unanswered else []
        if any(one.with_latency for one in planned):
            warnings.append("latency: from the sender's handover to the receiver's poll, whatever the mode")
        return warnings

    def _change_flows(self, made: Message) -> list[str]:
        """Set a configuration that differs in its flows alone. Those that are there before and after keep their state
        and counts; those that are sent pause meanwhile. Returns warnings.

        Raises:
            Rejected: it is not possible; nothing has changed.
        """
        warnings = coverage.check(made)
        planned_links = links.planned(made, self._located)
        planned_flows = flows.planned(made, planned_links)
        self._settle()
        began_s = time.monotonic()
        self._end_part()
        before, self._running = self._running, {}
        for one in planned_flows:
            self._running[one.name] = before.get(one.name) or RunningFlow(one)
            self._running[one.name].flow = one
        self._configuration, self._links = made, planned_links
        self._close_tester()
        sending = [name for name, one in self._running.items() if one.state == _STARTED]
        if sending or self._capturing:
            self._begin_part(sending)
            if sending:
                paused_s = time.monotonic() - began_s
                warnings.append(f"{', '.join(sending)}: paused for {paused_s:.2f} s while flows were changed")
        else:
            self._open(must=False)
        return warnings + self._of_flows(planned_flows)

    def _own_configuration(self) -> Message:
        """A copy, to be changed."""
        made = messages.Config()
        made.CopyFrom(self._configuration)
        return made

    def append(self, wanted: Message) -> list[str]:
        """Add flows to the configuration. Raises Rejected: see :meth:`set_configuration`."""
        coverage.check(wanted)
        with self._lock:
            made = self._own_configuration()
            for resources in wanted.config_append_list:
                made.flows.extend(resources.flows)
            return self._change_flows(made)

    def delete(self, wanted: Message) -> list[str]:
        """Delete flows by their names. Raises Rejected: see :meth:`set_configuration`."""
        coverage.check(wanted)
        unwanted = {name for resources in wanted.config_delete_list for name in resources.flows}
        with self._lock:
            made = self._own_configuration()
            if unknown := unwanted - {one.name for one in made.flows}:
                raise Rejected(f"flows: there is no {sorted(unknown)[0]!r}")
            for number in reversed(range(len(made.flows))):
                if made.flows[number].name in unwanted:
                    del made.flows[number]
            return self._change_flows(made)

    def update(self, wanted: Message) -> list[str]:
        """Change rate or size of flows. Raises Rejected: see :meth:`set_configuration`."""
        coverage.check(wanted)
        properties = [_property(wanted.flows, number) for number in wanted.flows.property_names]
        with self._lock:
            made = self._own_configuration()
            by_name = {one.name: one for one in made.flows}
            for one in wanted.flows.flows:
                if one.name not in by_name:
                    raise Rejected(f"flows: there is no {one.name!r}")
                for name in properties:
                    getattr(by_name[one.name], name).CopyFrom(getattr(one, name))
            return self._change_flows(made)

    # --- traffic --------------------------------------------------------------------------------------

    def transmit(self, state: str, names: Sequence[str]) -> list[str]:
        """``start``, ``stop``, ``pause`` or ``resume`` flows; no names: all. Returns warnings.

        Raises:
            Rejected: an unknown flow, or the ports cannot be opened.
        """
        with self._lock:
            self._settle()
            if unknown := [one for one in names if one not in self._running]:
                raise Rejected(f"traffic.flow_transmit.flow_names: there is no flow {unknown[0]!r}")
            if not self._running:
                raise Rejected("traffic.flow_transmit: no flow is configured")
            chosen_names = list(names) or list(self._running)
            others = [name for name, one in self._running.items() if one.state == _STARTED and name not in chosen_names]
            if state in ("start", "resume"):
                self._open(must=True)
            began_s = time.monotonic()
            self._end_part()
            for name in chosen_names:
                self._change(self._running[name], state)
            sending = [name for name, one in self._running.items() if one.state == _STARTED]
            warnings = [] if state in ("start", "resume") else self._doubts()
            if sending or self._capturing:
                self._begin_part(sending)
            if others:
                paused_s = time.monotonic() - began_s
                warnings.append(f"{', '.join(others)}: paused for {paused_s:.2f} s while other flows were changed")
            return warnings

    def _change(self, one: RunningFlow, state: str) -> None:
        if state == "start" or (state == "resume" and one.state == _STOPPED):
            one.totals, one.state = Totals(), _STARTED
        elif state == "resume":
            one.state = _STARTED
        elif state == "stop" or one.state == _STARTED:
            one.state = _STOPPED if state == "stop" else _PAUSED

    def _begin_part(self, names: Sequence[str]) -> None:
        """Send what is left of these flows; without any, listen.

        Raises:
            Rejected: the ports cannot be opened; none of the flows is sent then.
        """
        try:
            self._open(must=True)
        except Rejected:
            for name in names:
                self._running[name].state = _STOPPED
            raise
        assert self._tester is not None, "it is open"
        parts: dict[Direction, Any] = {}
        for name in names:
            one = self._running[name]
            left = one.flow.part(one.totals.sent, one.totals.sent_ns, goes_on=bool(one.totals.sent))
            if left is None:
                one.state = _STOPPED
            else:
                parts[one.flow.direction] = left
        if not parts and not self._capturing:
            return
        self._number = (self._number + 1) % TRIAL_NUMBERS
        sending = tuple(name for name in names if self._running[name].flow.direction in parts)
        lasts = [
            LONGEST_NS if one.sends_ns is None else (one.begin_ns or 0) + one.sends_ns for one in parts.values()
        ] or [LONGEST_NS]
        file = Path(self._directory.name) / f"{self._number}.pcapng" if self._capturing else None
        stamped = any(flow.with_latency or flow.with_times for flow in (self._running[name].flow for name in sending))
        trial = Trial(
            trial=self._number,
            duration_ns=min(LONGEST_NS, max(lasts)),
            drain_ns=self._drain_ns if parts else 0,
            stamping=Stamping.EVERY if stamped else Stamping.NONE,
            progress_ms=PROGRESS_MS,
            other_streams=parts or None,
            capture=None if file is None else Capture(path=str(file), first=MOST_CAPTURED),
        )
        background = TrialInBackground(self._tester, trial)
        self._part = Part(trial, sending, background, file)
        if file is not None:
            self._captured.append((file, frozenset(self._capturing)))
        try:
            background.wait_until_sending()
            progress = background.progress
            self._part.began_ns = time.time_ns() - round((progress.elapsed_s if progress else 0.0) * NS_PER_S)
        except DutperfError as error:
            self._end_part(error)
            self._close_tester()  # a port that was made anew is opened the next time
            raise Rejected(error.sentence, code=500, kind="internal") from None

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
                self._running[name].state = _STOPPED
        if part.names:
            self._note(part, result, "" if error is None else error.sentence)

    def _count(self, part: Part, result: TrialResult, lasted_ns: int) -> None:
        """Add what a trial counted of each flow; ``lasted_ns``: for how long it was sent."""
        for direction, counts in (result.other_streams or {}).items():
            one = self._of(direction)
            stream = (part.trial.other_streams or {})[direction]
            sent_ns = max(0, min(stream.ends_ns(part.trial.duration_ns), lasted_ns) - (stream.begin_ns or 0))
            one.totals.add(counts, one.flow.sizes, part.began_ns, sent_ns)
            if one.flow.part(one.totals.sent, one.totals.sent_ns, goes_on=True) is None:
                one.state = _STOPPED

    def _of(self, direction: Direction) -> RunningFlow:
        return next(one for one in self._running.values() if one.flow.direction is direction)

    def _note(self, part: Part, result: TrialResult | None, error: str) -> None:
        names = {str(one.flow.direction): name for name, one in self._running.items()}
        causes = [error] if result is None else [one.text for one in result.causes]
        for internal in sorted(names, key=len, reverse=True):  # flow-10 before flow-1
            causes = [text.replace(internal, names[internal]) for text in causes]
        counts = {} if result is None else result.other_streams or {}
        self._verdicts.append(
            {
                "flows": list(part.names),
                "verdict": str(Verdict.ABORTED) if result is None else str(result.verdict),
                "causes": causes,
                "counts": {
                    self._of(direction).flow.name: one.model_dump(mode="json", exclude_none=True)
                    for direction, one in counts.items()
                },
            }
        )
        del self._verdicts[:-MOST_TRIALS]

    def _doubts(self) -> list[str]:
        """Why the last trial says nothing about the DUT."""
        last = self._verdicts[-1:] if self._verdicts else []
        return [f"not valid: {text}" for one in last if one["verdict"] != "valid" for text in one["causes"]]

    def verdicts(self) -> list[dict[str, Any]]:
        """Of each trial since the configuration was set, oldest first: flows, verdict, causes and all counts."""
        with self._lock:
            self._settle()
            return list(self._verdicts)

    def _keep(self) -> None:
        """Notice trials that end by themselves."""
        while not self._ended.wait(POLL_S):
            with self._lock, suppress(DutperfError):
                self._settle()

    def _settle(self) -> None:
        """Count what has ended, and go on listening where frames are captured."""
        part = self._part
        if part is None:
            return
        self._rate(part)
        self._note_ends(part)
        if not part.background.is_running:
            self._end_part()
            if self._capturing:
                self._begin_part([name for name, one in self._running.items() if one.state == _STARTED])

    def _note_ends(self, part: Part) -> None:
        """Flows that have ended, and whose last frames have arrived or never will, beside others that go on. The last
        ones have when the trial ends, which has their final counts."""
        for name in part.names if self._is_sending(part) else ():
            if self._has_been_sent(part, name, after_ns=self._drain_ns):
                self._running[name].state = _STOPPED

    def _is_sending(self, part: Part) -> bool:
        return not all(self._has_been_sent(part, name) for name in part.names)

    def _has_been_sent(self, part: Part, name: str, after_ns: int = 0) -> bool:
        """Whether a flow ended ``after_ns`` ago or longer."""
        progress = part.background.progress
        stream = (part.trial.other_streams or {})[self._running[name].flow.direction]
        ends_ns = stream.ends_ns(part.trial.duration_ns) + after_ns
        return stream.sends_ns is not None and progress is not None and progress.elapsed_s * NS_PER_S >= ends_ns

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
        """Open the ports. Where a gateway does not answer, or a link is down, this is tried again later.

        Raises:
            Rejected: they cannot be opened, and ``must`` be, or never can.
        """
        if self._tester is not None:
            return
        if not self._links.sides:
            if must:
                raise Rejected("no configuration is set")
            return
        if self._unanswered and not must and time.monotonic() - self._unanswered[0] < _PATIENCE_S:
            return
        setup, names = self._setup()
        longest = max((size for one in self._running.values() for size in one.flow.sizes), default=_USUAL_FRAME)
        tester = self._open_tester(setup, max(_USUAL_FRAME, longest), names)
        try:
            tester.environment()
        except TesterError as error:
            tester.close()
            self._unanswered = (time.monotonic(), self._in_their_words(error))
            if must or not error.is_temporary:
                raise Rejected(self._unanswered[1], code=500, kind="internal") from None
            return
        self._tester, self._unanswered = tester, None

    def _in_their_words(self, error: TesterError) -> str:
        text = error.sentence
        for theirs, ours in self._links.ours.items():
            text = text.replace(f"{ours}.", f"{theirs}.") if ours != theirs else text
        return text

    def _setup(self) -> tuple[Setup, list[Direction]]:
        """Ports and paths; a port alone, and flows without a receiver, have one on which nothing arrives."""
        names = [one.flow.direction for one in self._running.values()]
        sides = dict(self._links.sides)
        paths = {str(name.path) for name in names}
        if len(sides) == 1 or any(name.receiving_port == links.NOWHERE for name in names):
            sides[links.NOWHERE] = NO_PORT
        ports = list(sides)
        paths = paths or {f"{ports[0]}->{ports[1]}"}
        return Setup.model_construct(engine=self._engine, ports=sides, paths=tuple(sorted(paths))), names

    def _close_tester(self) -> None:
        tester, self._tester, self._unanswered = self._tester, None, None
        if tester is not None:
            tester.close()

    # --- what clients ask -----------------------------------------------------------------------------

    def flow_metrics(self, names: Sequence[str]) -> Iterator[Message]:
        """Of the flows that report any, and no names: of all these."""
        with self._lock:
            self._settle()
            if unknown := [one for one in names if one not in self._running]:
                raise Rejected(f"flow.flow_names: there is no flow {unknown[0]!r}")
            wanted = [
                one for name, one in self._running.items() if one.flow.is_reported and (not names or name in names)
            ]
            yield from [self._flow_metric(one) for one in wanted]

    def _flow_metric(self, one: RunningFlow) -> Message:
        sent, received, sent_bytes, received_bytes = self._so_far(one)
        sent_fps, received_fps = self._rates(one)
        mean = sum(one.flow.sizes) / len(one.flow.sizes)
        metric = messages.FlowMetric(
            name=one.flow.name,
            port_tx=one.flow.tx,
            port_rx=one.flow.rx,
            transmit=messages.FlowMetric.Transmit.Enum.Value(one.state),
            frames_tx=sent,
            frames_rx=received,
            bytes_tx=round(sent_bytes),
            bytes_rx=round(received_bytes),
            frames_tx_rate=sent_fps,
            frames_rx_rate=received_fps,
        )
        for way, fps in (("tx", sent_fps), ("rx", received_fps)):
            setattr(metric, f"{way}_l1_rate_bps", fps * (mean + 20) * 8)
            setattr(metric, f"{way}_rate_bytes", fps * mean)
            for unit, factor in (("bps", 1), ("kbps", 1e3), ("mbps", 1e6)):
                setattr(metric, f"{way}_rate_{unit}", fps * mean * 8 / factor)
        if one.flow.with_loss:
            metric.loss = max(0.0, 100 * (sent - received) / sent) if sent else 0.0
        totals = one.totals
        if one.flow.with_times and totals.first_ns is not None and totals.last_ns is not None:
            metric.timestamps.first_timestamp_ns, metric.timestamps.last_timestamp_ns = totals.first_ns, totals.last_ns
        if one.flow.with_latency and totals.latency_ns is not None:
            least, most, total, number = totals.latency_ns
            metric.latency.minimum_ns, metric.latency.maximum_ns = least, most
            metric.latency.average_ns = min(most, max(least, total / number))
        return metric

    def _so_far(self, one: RunningFlow) -> tuple[int, int, float, float]:
        """Frames and bytes, sent and received, with those of the trial that runs."""
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

    def _rates(self, one: RunningFlow) -> tuple[float, float]:
        if self._part is None or one.state != _STARTED:
            return 0.0, 0.0
        return self._part.rates.get(one.flow.direction, (0.0, 0.0))

    def port_metrics(self, names: Sequence[str]) -> Iterator[Message]:
        """Of the ports; no names: of all."""
        with self._lock:
            self._settle()
            for one in names:
                self._links.port(one, "port.port_names")
            yield from [self._port_metric(name) for name in self._links.locations if not names or name in names]

    def _port_metric(self, name: str) -> Message:
        each = list(self._running.values())
        leaving = [self._so_far(one) for one in each if one.flow.tx == name]
        arriving = [self._so_far(one) for one in each if one.flow.rx == name]
        left_fps = sum(self._rates(one)[0] for one in each if one.flow.tx == name)
        arrived_fps = sum(self._rates(one)[1] for one in each if one.flow.rx == name)
        is_sending = any(one.state == _STARTED for one in each if one.flow.tx == name)
        known = {} if self._tester is None else ports_of(self._tester.environment()).get(self._links.ours[name], {})
        sent_bytes, received_bytes = (sum(one[2] for one in leaving), sum(one[3] for one in arriving))
        sent, received = sum(one[0] for one in leaving), sum(one[1] for one in arriving)
        metric = messages.PortMetric(
            name=name,
            location=self._links.locations[name],
            link=messages.PortMetric.Link.Enum.Value("up" if known.get("link_up") else "down"),
            capture=messages.PortMetric.Capture.Enum.Value(_STARTED if name in self._capturing else _STOPPED),
            transmit=messages.PortMetric.Transmit.Enum.Value(_STARTED if is_sending else _STOPPED),
            frames_tx=sent,
            frames_rx=received,
            bytes_tx=round(sent_bytes),
            bytes_rx=round(received_bytes),
            frames_tx_rate=left_fps,
            frames_rx_rate=arrived_fps,
            bytes_tx_rate=left_fps * sent_bytes / sent if sent else 0.0,
            bytes_rx_rate=arrived_fps * received_bytes / received if received else 0.0,
        )
        if speed := known.get("link_mbps") or self._links.speeds.get(name):
            metric.speed = speed
        return metric

    def neighbours(self, version: int, ethernets: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """Of each gateway: the interface's name, its address and its MAC address; empty: it has not answered."""
        with self._lock:
            self._open(must=False)
            opened = {} if self._tester is None else ports_of(self._tester.environment())
            for one in self._links.neighbours:
                if one.version == version and (not ethernets or one.ethernet in ethernets):
                    mac = opened.get(one.port, {}).get(f"dut_mac{version}", "") if opened else ""
                    yield one.ethernet, one.address, mac

    # --- captures -------------------------------------------------------------------------------------

    def capture(self, state: str, names: Sequence[str]) -> list[str]:
        """``start`` or ``stop`` to capture what arrives at ports; no names: at all that are configured to."""
        with self._lock:
            self._settle()
            configured = {name for one in self._configuration.captures for name in one.port_names}
            for one in names:
                self._links.port(one, "port.capture.port_names")
            if unconfigured := [one for one in names if one not in configured]:
                raise Rejected(f"port.capture.port_names: no capture is configured for {unconfigured[0]}")
            wanted = set(names) or configured
            if not wanted:
                raise Rejected("port.capture: no capture is configured")
            sending = [name for name, one in self._running.items() if one.state == _STARTED]
            if state == "start":
                return self._begin_capture(wanted, sending)
            self._capturing -= wanted
            return self._again(sending, "at the end of the capture")

    def _again(self, sending: Sequence[str], when: str) -> list[str]:
        """End the trial that runs, and go on with these flows in the next one. Returns a warning of their pause."""
        began_s = time.monotonic()
        self._end_part()
        if sending or self._capturing:
            self._begin_part(sending)
        return [f"{', '.join(sending)}: paused for {time.monotonic() - began_s:.2f} s {when}"] if sending else []

    def _begin_capture(self, wanted: set[str], sending: Sequence[str]) -> list[str]:
        self._open(must=True)
        self._captured = [(file, ports - wanted) for file, ports in self._captured if ports - wanted]
        self._capturing |= wanted
        return self._again(sending, "before the capture")

    def captured(self, name: str) -> bytes:
        """A capture file of what arrived at a port since its capture was started.

        Raises:
            Rejected: nothing was captured there, or frames are still being captured.
        """
        with self._lock:
            self._settle()
            self._links.port(name, "port_name")
            settings = next((one for one in self._configuration.captures if name in one.port_names), None)
            files = [file for file, ports in self._captured if name in ports]
            if settings is None or not files:
                raise Rejected(f"port_name: nothing was captured at {name}")
            if self._part is not None and self._part.capture in files:
                if self._is_sending(self._part):
                    raise Rejected(f"port_name: the frames of {name} are written when the flows or its capture stop")
                self._again([], "")  # nothing is sent that would pause
            files = [file for file in files if file.exists()]
            snap = settings.packet_size or None
            is_new = settings.HasField("format") and name_of(settings, "format") == "pcapng"
            return recorded.file_of(files, self._links.ours[name], snap=snap, is_new=is_new)


def _property(update: Message, number: int) -> str:
    enum = update.DESCRIPTOR.fields_by_name["property_names"].enum_type
    name: str = enum.values_by_number[number].name
    if name not in ("rate", "size"):
        raise Rejected(f"flows.property_names: {name} is not covered")
    return name


def _check_captures(configuration: Message, planned: Links) -> None:
    seen: set[str] = set()
    for number, one in enumerate(configuration.captures):
        for name in one.port_names:
            planned.port(name, f"captures[{number}].port_names")
            if name in seen:
                raise Rejected(f"captures[{number}].port_names: {name} has another capture already")
            seen.add(name)
