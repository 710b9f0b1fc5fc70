# SPDX-License-Identifier: Apache-2.0
"""Waits for a DUT that is down for a while: it starts, a link has to come up again, or a switch's ports
(spanning tree) or a router's neighbours take their time.

Short trials probe whether it forwards again. They are not measurements, and no search sees them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from dutperf.judge.setup_faults import OF_NEIGHBOURS, OF_SETUP
from dutperf.judge.validity import LINK_DOWN
from dutperf.model import Stamping, Trial, TrialResult, Verdict
from dutperf.procedures import evidence
from dutperf.setup.conditions import Conditions
from dutperf.setup.configuration import Setup
from dutperf.tester import Tester

POLL_S = 1.0
"""Between two probes."""
PROBE_FPS = 100
"""Of a probe, or as many as the rates of the directions to each other need."""
PROBE_NS = 100_000_000
"""Sending time of a probe, and its longest drain."""


OF_RESTART = OF_SETUP | OF_NEIGHBOURS | {LINK_DOWN}
"""Codes of causes that a DUT explains which starts or restarts."""


@dataclass(frozen=True)
class Wait:
    """Result of waiting for the DUT."""

    answered: bool
    waited_s: float
    probes: int


def is_dut_down(result: TrialResult) -> bool:
    """Whether the DUT was down in a trial, at its beginning at least: it forwarded nothing in some direction,
    or nothing until it began to. Whether it answers ARP says nothing about that. The trial has to be valid, or
    invalid only because of what a DUT does that restarts: it takes the link down, refuses frames, and asks for its
    neighbours."""
    trusted = result.verdict is Verdict.VALID or {cause.code for cause in result.causes} <= OF_RESTART
    return trusted and bool(evidence.dead_directions(result) or evidence.late_directions(result))


def probe_fps(conditions: Conditions) -> int:
    return max(PROBE_FPS, conditions.every.of_directions.least_fps)


def probe(trial: Trial) -> Trial:
    """A short form of ``trial``, which has :func:`probe_fps`, without time stamps: nothing is
    measured. Of one with connections it is the beginning of the phase that opens them: a NAT forwards nothing
    else before."""
    trial = next((one for one in trial.preliminary_trials() if one.connections is not None), trial)
    unstamped = {
        "stamping": Stamping.NONE,
        "tagged": None,
        "lost_delay_ns": None,
        "frame_timeout_ns": None,
        "delays_files": None,
        "queries_file": None,
        "preliminary": (),
        "other_streams": None,
    }
    times = {
        "rest_ns": None,
        "duration_ns": min(trial.duration_ns, PROBE_NS),
        "drain_ns": min(trial.drain_ns, PROBE_NS),
    }
    return trial.model_copy(update=unstamped | times)


def announcement(result: TrialResult, setup: Setup, patience_s: float) -> str:
    """That a DUT which was down in a trial is waited for, and what the trial showed."""
    is_dead = bool(evidence.dead_directions(result))
    what = evidence.no_forwarding(result, setup) if is_dead else evidence.losses(result)
    return f"waiting for the DUT, {patience_s:g} s at most: {what}"


def wait_for_dut(tester: Tester, next_probe: Callable[[], Trial], patience_s: float) -> Wait:
    """Send probes until frames come through in every direction again, or ``patience_s`` seconds have passed. Raises
    TesterError: the tester cannot run at all."""
    began_s = time.monotonic()
    probes = 0
    while (waited_s := time.monotonic() - began_s) < patience_s:
        time.sleep(min(POLL_S, patience_s - waited_s))
        probes += 1
        if _forwards(tester.run(next_probe())):
            return Wait(True, time.monotonic() - began_s, probes)
    return Wait(False, waited_s, probes)


def _forwards(result: TrialResult) -> bool:
    return result.verdict is Verdict.VALID and not evidence.dead_directions(result)
