# SPDX-License-Identifier: Apache-2.0
"""What polls of an OTG server's metrics prove of a trial.

The server's counts are of some time ago, which is unknown but much the same at each poll. So frames that left late show
to within the interval at which the counts change; frames that left too early show at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

from dutperf.judge.own_loss import loss_matters
from dutperf.judge.validity import judge
from dutperf.model import (
    Cause,
    Direction,
    DirectionCounts,
    LinkState,
    LoopStall,
    MetricsOnly,
    Quantiles,
    Trial,
    Verdict,
)
from dutperf.tester import TesterError

METRICS = "otg_metrics"
"""Code of causes that are found here."""
UNPROVEN = (
    "the metrics of an OTG server do not show duplicates, reordered or corrupted frames, nor frames that its receiver"
    " dropped"
)
_JITTER = 2
"""A count may be older at one poll than at another by so many intervals at which counts change."""
_UNEXPLAINED_SHARE = 0.1
"""Of the lost frames: if a port received as many others more than flows account for, they may be the lost ones."""
_OWN_FPS = 10
"""Frames/s that a port may send or receive beside flows: ARP, Neighbour Discovery, routing protocols."""
_CLOCK_SHARE = 1e-3
"""By how much a server's rate may differ, as its clock does and rates are rounded, before a trial is not the one that
was meant."""


class NoCount(TesterError):
    """A metric is missing, or is not a number."""

    def __init__(self, text: str) -> None:
        super().__init__(text, code="otg", field="engine.otg")


@dataclass(frozen=True)
class FlowCount:
    """The metrics of a flow."""

    sent: int
    received: int
    is_sending: bool

    @classmethod
    def of(cls, metric: Mapping[str, Any]) -> FlowCount:
        """Raises NoCount."""
        return cls(
            _count(metric, "frames_tx"), _count(metric, "frames_rx"), metric.get("transmit") in ("started", "paused")
        )


def _count(metric: Mapping[str, Any], name: str) -> int:
    """Numbers of 64 bits are texts in JSON."""
    try:
        count = int(metric[name])
    except (KeyError, ValueError, TypeError):
        count = -1
    if count < 0:
        raise NoCount(f"the server's metrics have no {name} of {metric.get('name')!r}")
    return count


@dataclass(frozen=True)
class PortCount:
    """The metrics of a port."""

    sent: int | None
    received: int | None
    is_down: bool

    @classmethod
    def of(cls, metric: Mapping[str, Any]) -> PortCount:
        """Raises NoCount."""
        sent, received = (_count(metric, name) if name in metric else None for name in ("frames_tx", "frames_rx"))
        return cls(sent, received, metric.get("link") == "down")


@dataclass(frozen=True)
class Poll:
    """The metrics at one time, in seconds after the server was asked to send."""

    asked_s: float
    answered_s: float
    flows: Mapping[Direction, FlowCount]


@dataclass
class Polls:
    """A trial as its polls show it."""

    trial: Trial
    polls: list[Poll] = field(default_factory=list)
    before: dict[str, PortCount] = field(default_factory=dict)
    """The ports before it..."""
    after: dict[str, PortCount] = field(default_factory=dict)
    """... and after it."""

    @property
    def last(self) -> Poll:
        return self.polls[-1]

    def counts(self) -> dict[Direction, DirectionCounts]:
        return {direction: self._counts(direction) for direction in self.last.flows}

    def _counts(self, direction: Direction) -> DirectionCounts:
        count, times = self.last.flows[direction], self._times(direction)
        meant_s = self._due_s(direction, count.sent)
        ports = [self._of_port(direction, end) for end in ("sent", "received")]
        return DirectionCounts(
            intended=self.trial.intended(direction),
            sent=count.sent,
            received=count.received,
            foreground_sent=count.sent,
            background_sent=0,
            foreground_received=count.received,
            background_received=0,
            duplicates=0,
            out_of_order=0,
            stale=0,
            corrupted=0,
            send_time_s=max(meant_s, times.least_s),
            lateness_us=Quantiles(p50=0.0, p99=0.0, p999=0.0, max=1e6 * times.late_s),
            stall_us=LoopStall(sender=0.0, receiver=0.0),
            not_accepted=0,
            tester_drops={},
            other_received={},
            dut_input_drops=0,
            by_metrics=MetricsOnly(blind_s=times.blind_s, port_sent=ports[0], port_received=ports[1]),
        )

    def _due_s(self, direction: Direction, frames: int) -> float:
        """When the last of so many frames is due."""
        return max(0, frames - 1) / self.trial.all_streams()[direction].rate_fps

    def _of_port(self, direction: Direction, end: str) -> int | None:
        """What the port of one end counted in the trial. Its counts may have begun again with the flows, or not: the
        reading counts that is nearer to what the flows say."""
        port = "sending_port" if end == "sent" else "receiving_port"
        name, of_flows = getattr(direction, port), self._sum(direction, port, end)
        before, after = (getattr(ports.get(name), end, None) for ports in (self.before, self.after))
        if before is None or after is None:
            return None
        readings = [after, after - before] if after >= before else [after]
        return int(min(readings, key=lambda one: abs(one - of_flows)))

    def _times(self, direction: Direction) -> _Times:
        """How far the counts kept to the schedule."""
        seen = [(one.asked_s, one.answered_s, one.flows[direction].sent) for one in self.polls]
        began = next((number for number, one in enumerate(seen) if one[2]), None)
        if began is None:
            return _Times()
        changes = [now[1] for before, now in pairwise(seen) if now[2] != before[2]]
        intervals = [now - before for before, now in pairwise(changes)]
        answer_s = max(answered_s - asked_s for asked_s, answered_s, _ in seen)
        blind_s = answer_s + _JITTER * median(intervals or [self.last.answered_s])
        first_s, total = seen[began][1], seen[-1][2]
        sending = [one for one in seen[began:] if one[2] < total]
        late_s = [asked_s - first_s - blind_s - self._due_s(direction, sent + 1) for asked_s, _, sent in sending]
        early_s = [self._due_s(direction, sent) - answered_s for _, answered_s, sent in seen[began:]]
        slack_s = _CLOCK_SHARE * self.trial.duration_s
        return _Times(
            blind_s=blind_s,
            least_s=max(0.0, sending[-1][0] - first_s - blind_s) if sending else 0.0,
            late_s=max(0.0, *late_s, 0.0) if late_s else 0.0,
            early_s=max(0.0, max(early_s) - slack_s),
        )

    def judge(
        self, counts: Mapping[Direction, DirectionCounts], link_down: LinkState
    ) -> tuple[Verdict, tuple[Cause, ...]]:
        """The verdict by the rules for all testers, and what speaks against the metrics themselves."""
        _, causes = judge(self.trial, dict(counts), link_down=link_down)
        for direction, one in counts.items():
            causes += tuple(
                Cause(code=METRICS, text=f"{direction}: {text}", direction=direction)
                for text in self._faults(direction, one)
            )
        return (Verdict.INVALID if causes else Verdict.VALID), causes

    def _faults(self, direction: Direction, counts: DirectionCounts) -> Iterator[str]:
        if counts.sent > counts.intended:
            yield f"{counts.sent:,} frames were sent, but {counts.intended:,} were asked for"
        if early_s := self._times(direction).early_s:
            yield f"frames left at least {early_s:.3f} s before they were due: the rate was higher than asked for"
        known = counts.by_metrics
        assert known is not None, "they are made here"
        lost_s = self.last.answered_s
        of_flows = self._sum(direction, "sending_port", "sent")
        if known.port_sent is not None and known.port_sent < of_flows:
            yield f"the flows count {of_flows:,} sent frames, but their port {known.port_sent:,}"
        if known.port_sent is not None and known.port_sent > of_flows + _OWN_FPS * lost_s:
            yield f"the port sent {known.port_sent:,} frames, but the flows {of_flows:,}: the DUT had another load"
        if known.port_received is None or not loss_matters(self.trial, counts):
            return
        more = known.port_received - self._sum(direction, "receiving_port", "received")
        if more > max(_OWN_FPS * lost_s, _UNEXPLAINED_SHARE * counts.lost):
            yield (
                f"{counts.lost:,} frames are missing, but the port received {more:,} frames that no flow counted: they"
                " may be among them"
            )

    def _sum(self, direction: Direction, port: str, count: str) -> int:
        """The counts of all flows at the same port."""
        flows = self.last.flows.items()
        return sum(getattr(flow, count) for one, flow in flows if getattr(one, port) == getattr(direction, port))


@dataclass(frozen=True)
class _Times:
    """In seconds."""

    blind_s: float = 0.0
    """Frames that left so late do not show."""
    least_s: float = 0.0
    """Sending took so long at least."""
    late_s: float = 0.0
    """A frame left so late at least."""
    early_s: float = 0.0
    """... and so early."""
