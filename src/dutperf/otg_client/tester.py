# SPDX-License-Identifier: Apache-2.0
"""The tester that is a server of the Open Traffic Generator API: another generator, or dutperf's own
(:mod:`dutperf.otg`).

What others count is judged by their metrics (:mod:`dutperf.otg_client.evidence`). dutperf's own server tells all counts
of its engine, which are judged as if the engine were here.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import ValidationError

from dutperf.judge.validity import doubts, judge, proven_failed
from dutperf.model import (
    Cause,
    Direction,
    DirectionCounts,
    LinkState,
    SoFar,
    Trial,
    TrialResult,
    Verdict,
    members_of,
)
from dutperf.otg_client import messages
from dutperf.otg_client.evidence import METRICS, UNPROVEN, FlowCount, Poll, Polls, PortCount
from dutperf.otg_client.headers import Members
from dutperf.otg_client.server import AWAY, KEY, REFUSED, ServerClient
from dutperf.setup.configuration import Setup
from dutperf.tester import EndTrial, Progress, ProgressCallback, TesterError
from dutperf.tester.ended import until_its_end

POLL_S = 0.1
STOP_S = 15.0
"""Flows that have not stopped so long after the end of the sending time are stopped."""
SETTLE_S = 30.0
"""Counts may change for so long after the drain."""
VERDICT = "otg_verdict"
"""Code of causes that dutperf's own server tells."""


@dataclass
class _Running:
    """A trial that is sent."""

    names: Mapping[Direction, str]
    polls: Polls
    began_s: float = field(default_factory=time.monotonic)
    stopped_s: float | None = None
    wanted: bool = False
    """Whether the user ended it."""
    changed_s: float = 0.0
    """When a count changed last."""
    down: set[str] = field(default_factory=set)
    """Ports whose link was down at any time."""

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.began_s

    def note(self, poll: Poll) -> None:
        if not self.polls.polls or self.polls.last.flows != poll.flows:
            self.changed_s = poll.answered_s
        self.polls.polls.append(poll)
        if self.stopped_s is None and not any(one.is_sending for one in poll.flows.values()):
            self.stopped_s = poll.answered_s

    @property
    def is_over(self) -> bool:
        """Whether nothing has changed for the drain, or for too long something does."""
        if self.stopped_s is None:
            return False
        drain_s, now_s = self.polls.trial.drain_ns / 1e9, self.polls.last.answered_s
        return now_s - max(self.stopped_s, self.changed_s) >= drain_s or self.is_unsettled

    @property
    def is_unsettled(self) -> bool:
        drain_s, now_s = self.polls.trial.drain_ns / 1e9, self.polls.last.answered_s
        return self.stopped_s is not None and now_s - self.stopped_s >= drain_s + SETTLE_S

    def progress(self) -> Progress:
        so_far = {direction: SoFar(sent=one.sent, received=one.received) for direction, one in self._flows().items()}
        own = [one for direction, one in so_far.items() if not direction.stream] or list(so_far.values())
        return Progress(
            self.polls.last.answered_s, sum(one.sent for one in own), sum(one.received for one in own), so_far
        )

    def _flows(self) -> Mapping[Direction, FlowCount]:
        return self.polls.last.flows


class OtgTester:
    """A :class:`dutperf.tester.Tester`. The server is asked first when it is needed."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._server = ServerClient(setup.engine)
        self._environment: dict[str, Any] | None = None
        self._has_verdicts = False
        self._macs: dict[tuple[str, int], str] = {}
        self._own_flows: frozenset[str] = frozenset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """The server keeps its ports and devices until it gets another configuration."""
        self._server.close()

    def wait_until_quiet(self, limit_s: float) -> float:
        """Nothing is known of the server's machine."""
        return 0.0

    def environment(self) -> dict[str, Any]:
        if self._environment is None:
            self._environment = self._open()
        return dict(self._environment)

    def run(self, trial: Trial, on_progress: ProgressCallback | None = None) -> TrialResult:
        """On KeyboardInterrupt the flows are stopped, then the exception is raised again."""
        messages.check(trial)
        self.environment()
        nonce = secrets.token_hex(4)
        running = _Running({one: messages.flow_name(one, nonce) for one in trial.all_streams()}, Polls(trial))
        self._configure(running)
        running.polls.before = self._ports(running)
        try:
            running.began_s = time.monotonic()
            self._transmit("start")
            self._watch(running, on_progress)
            running.polls.after = self._ports(running)
            return self._result(running)
        except TesterError as error:
            with suppress(TesterError):
                self._transmit("stop")
            return _aborted(trial, error.sentence)
        except BaseException:
            with suppress(TesterError):
                self._transmit("stop")
            raise

    # --- before a trial -------------------------------------------------------------------------------

    def _open(self) -> dict[str, Any]:
        version = self._server.get("/capabilities/version")
        self._has_verdicts = self._tells_verdicts()
        warnings = self._set(messages.without_flows(self._setup))
        self._macs = self._neighbours()
        sides = self._setup.sides()
        told = {name: str(version.get(name, "")) for name in ("app_version", "api_spec_version", "sdk_version")}
        return {
            "tester": "otg",
            "engine": f"OTG server {told['app_version']}".rstrip(),
            "otg": {"address": self._server.shown, **told, "verdicts": self._has_verdicts},
            **self._described(
                {name: {"port": side.port, "mac": messages.own_mac(side)} for name, side in sides.items()}
            ),
            "warnings": [*([] if self._has_verdicts else [UNPROVEN]), *warnings],
        }

    def _described(self, ports: dict[str, dict[str, Any]]) -> dict[str, Any]:
        for (name, version), mac in self._macs.items():
            ports[name][f"dut_mac{version}"] = mac
        for name, metric in self._port_metrics().items():
            ports[name]["link_up"] = metric.get("link") != "down"
            if self._has_verdicts and metric.get(
                "speed"
            ):  # Mbit/s; the model does not say in which unit others tell it
                ports[name]["link_mbps"] = int(metric["speed"])
        return ports if self._setup.ports is None else {"ports": ports}

    def _tells_verdicts(self) -> bool:
        try:
            return "trials" in self._server.get("/dutperf/verdicts")
        except (TesterError, TypeError):
            return False

    def _set(self, configuration: Members) -> list[str]:
        """Set a configuration, and have its devices answer. Returns the server's warnings. Raises TesterError: it is
        refused, or another client's flows are being sent."""
        self._check_alone()
        warnings = list(self._server.post("/config", configuration).get("warnings") or [])
        if configuration["devices"]:
            self._control("protocol", {"choice": "all", "all": {"state": "start"}})
        return warnings

    def _check_alone(self) -> None:
        try:
            flows = self._flow_metrics()
        except TesterError:
            return  # some have none before the first configuration; whether it is there shows at the next request
        others = [one for one, metric in flows.items() if metric.get("transmit") == "started"]
        if strange := sorted(set(others) - self._own_flows):
            raise TesterError(
                f"another client of {self._server.shown} is sending ({strange[0]}): wait for its end, or stop it",
                code=AWAY,
                field=KEY,
            )

    def _configure(self, running: _Running) -> None:
        """Set the configuration of a trial, with the MAC addresses that the DUT has now."""
        for _ in range(2):
            flows = messages.flows(self._setup, running.polls.trial, running.names, self._macs)
            self._set({**messages.without_flows(self._setup), "flows": flows})
            self._own_flows = frozenset(running.names.values())
            before, self._macs = self._macs, self._neighbours()
            if self._macs == before:
                return
        raise TesterError("the MAC address of a gateway changes from one moment to the next", code=AWAY, field=KEY)

    def _neighbours(self) -> dict[tuple[str, int], str]:
        """The MAC addresses of the gateways. Raises TesterError: one of them does not answer."""
        wanted = list(messages.unresolved(self._setup))
        deadline_s = time.monotonic() + self._setup.engine.link_timeout_s
        while True:
            found = {one: mac for version in {one[1] for one in wanted} for one, mac in self._states(version).items()}
            missing = [one for one in wanted if not found.get(one)]
            if not missing:
                return {one: found[one] for one in wanted}
            if time.monotonic() >= deadline_s:
                raise self._unanswered(*missing[0])
            time.sleep(POLL_S)

    def _unanswered(self, name: str, version: int) -> TesterError:
        side = self._setup.sides()[name]
        return TesterError(
            f"{side.gateway(version)} does not answer the OTG server at the {name} port ({side.port}): check the"
            " address, the DUT, and that the ports are not exchanged",
            code="no_answer",
            field=f"{self._setup.key_of(name)}.gateway{version}",
        )

    def _states(self, version: int) -> dict[tuple[str, int], str]:
        kind = f"ipv{version}_neighbors"
        answer = self._server.post("/monitor/states", {"choice": kind, kind: {"ethernet_names": []}})
        by_ethernet = {messages.ethernet_of(name): name for name in self._setup.sides()}
        return {
            (by_ethernet[one["ethernet_name"]], version): str(one.get("link_layer_address") or "")
            for one in answer.get(kind) or []
            if one.get("ethernet_name") in by_ethernet
        }

    # --- a trial --------------------------------------------------------------------------------------

    def _control(self, kind: str, members: Members) -> None:
        self._server.post("/control/state", {"choice": kind, kind: members})

    def _transmit(self, state: str) -> None:
        self._control("traffic", {"choice": "flow_transmit", "flow_transmit": {"state": state}})

    def _metrics(self, kind: str, names: str) -> dict[str, Members]:
        answer = self._server.post("/monitor/metrics", {"choice": kind, kind: {names: []}})
        try:
            return {str(one["name"]): one for one in answer.get(f"{kind}_metrics") or []}
        except (AttributeError, KeyError, TypeError):
            text = f"{self._server.shown} answers /monitor/metrics with something else than metrics"
            raise TesterError(text, code=REFUSED, field=KEY) from None

    def _flow_metrics(self) -> dict[str, Members]:
        return self._metrics("flow", "flow_names")

    def _port_metrics(self) -> dict[str, Members]:
        return {name: one for name, one in self._metrics("port", "port_names").items() if name in self._setup.sides()}

    def _ports(self, running: _Running) -> dict[str, PortCount]:
        found = {name: PortCount.of(metric) for name, metric in self._port_metrics().items()}
        running.down |= {name for name, one in found.items() if one.is_down}
        return found

    def _poll(self, running: _Running) -> Poll:
        asked_s = running.elapsed_s
        metrics = self._flow_metrics()
        answered_s = running.elapsed_s
        if missing := [name for name in running.names.values() if name not in metrics]:
            text = f"{self._server.shown} has no flow {missing[0]!r} any more: another client set its configuration"
            raise TesterError(text, code=AWAY, field=KEY)
        flows = {direction: FlowCount.of(metrics[name]) for direction, name in running.names.items()}
        for direction, before in running.polls.polls[-1].flows.items() if running.polls.polls else ():
            if flows[direction].sent < before.sent:
                text = f"the counts of {self._server.shown} went back: another client started the flows again"
                raise TesterError(text, code=AWAY, field=KEY)
        return Poll(asked_s, answered_s, flows)

    def _watch(self, running: _Running, on_progress: ProgressCallback | None) -> None:
        """Poll until all flows have stopped and nothing changes any more."""
        end_s = running.polls.trial.duration_s + STOP_S
        while not running.is_over:
            running.note(self._poll(running))
            self._ports(running)
            if running.stopped_s is None and running.elapsed_s >= end_s:
                if running.elapsed_s >= running.polls.trial.duration_s + 2 * STOP_S:
                    raise TesterError(f"{self._server.shown} does not stop its flows", code=REFUSED, field=KEY)
                self._transmit("stop")
                end_s += STOP_S
            if on_progress is not None and not running.wanted:
                try:
                    on_progress(running.progress())
                except EndTrial:
                    running.wanted = running.stopped_s is None
                    self._transmit("stop")
            time.sleep(POLL_S)

    # --- after it -------------------------------------------------------------------------------------

    def _result(self, running: _Running) -> TrialResult:
        told = self._verdicts(running) if self._has_verdicts else []
        polls, trial = running.polls, running.polls.trial
        if told and told[-1].get("verdict") == Verdict.ABORTED:
            return _aborted(trial, "; ".join(told[-1].get("causes") or ["the server ended the trial"]))
        by_engine = _counts_of(told[-1], running.names) if told else None
        counts = by_engine or polls.counts()
        if running.wanted:
            trial, counts = until_its_end(trial, counts)
            polls.trial = trial
        down = LinkState(**{name: name in running.down for name in self._setup.sides()})
        _, causes = polls.judge(counts, down) if by_engine is None else judge(trial, counts, link_down=down)
        causes = _with_servers(causes, told, running.names)
        if running.is_unsettled:
            causes += (Cause(code=METRICS, text=f"counts still changed {SETTLE_S:g} s after the drain"),)
        return TrialResult(
            trial=trial.trial,
            verdict=Verdict.INVALID if causes else Verdict.VALID,
            causes=causes,
            **members_of(counts),
            link_down=down,
            link_up=LinkState(**{name: not one.is_down for name, one in polls.after.items()}),
            proven_failed=None if by_engine is None else proven_failed(trial, counts, causes),
            doubts=doubts(trial, counts),
        )

    def _verdicts(self, running: _Running) -> list[Members]:
        """What dutperf's own server says of the trial: mostly one verdict, several if it was interrupted."""
        names = set(running.names.values())
        trials = self._server.get("/dutperf/verdicts").get("trials") or []
        return [one for one in trials if names & set(one.get("flows") or ())]


def _counts_of(told: Members, names: Mapping[Direction, str]) -> dict[Direction, DirectionCounts] | None:
    """All counts of the engine; None: it is one of another version."""
    try:
        counts = {one: DirectionCounts.model_validate(told["counts"][name]) for one, name in names.items()}
    except (KeyError, TypeError, ValidationError):
        return None
    return {direction: one.model_copy(update={"kinds": None}) for direction, one in counts.items()}  # there is one kind


def _with_servers(
    causes: tuple[Cause, ...], told: Sequence[Members], names: Mapping[Direction, str]
) -> tuple[Cause, ...]:
    """The causes, with what the server says more of them, and those that the counts do not show: of the DUT's cores, of
    ports."""
    texts = list(dict.fromkeys(text for one in told for text in one.get("causes") or ()))
    for direction, name in names.items():
        texts = [text.replace(name, str(direction)) for text in texts]
    own = [next((text for text in texts if text.startswith(cause.text)), cause.text) for cause in causes]
    known = tuple(cause.text for cause in causes)
    return tuple(cause.model_copy(update={"text": text}) for cause, text in zip(causes, own, strict=True)) + tuple(
        Cause(code=VERDICT, text=text) for text in texts if not text.startswith(known)
    )


def _aborted(trial: Trial, text: str) -> TrialResult:
    return TrialResult(trial=trial.trial, verdict=Verdict.ABORTED, causes=(Cause(code="engine_died", text=text),))
