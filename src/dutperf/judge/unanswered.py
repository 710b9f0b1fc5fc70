# SPDX-License-Identifier: Apache-2.0
"""Whether what shows that DUT and test setup do not fit has to do with the frames that were lost, whatever their
rate: few frames are sent once more.

While it waits for an answer from an address a DUT drops the frames for that next hop, however few there are. A DUT
that asks for something else, as its time server, forwards few frames without a loss meanwhile. So it is with other
causes of the test setup (:data:`~dutperf.judge.setup_faults.OF_SETUP`): if few frames are lost too, no trial at
another rate is valid either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from dutperf.judge.setup_faults import CHANGED, CONFLICT, OF_NEIGHBOURS, OF_SETUP, UNANSWERED
from dutperf.model import (
    TRIAL_NUMBERS,
    Cause,
    ConnectionUse,
    Direction,
    NeighbourEvidence,
    PhaseResult,
    Question,
    Stamping,
    Trial,
    Verdict,
)

PROBE_SHARE, PROBE_FPS, PROBE_NS = 0.1, 250, 1_000_000_000
"""Frames per second of a probe: that share of the trial's, at most so many; and how long they are sent."""
EXPECTED = 10
"""A probe would lose so many frames if it lost as large a share as the trial: that it loses none is no chance."""
SAME_SHARE = 0.5
"""A probe shows the same loss from this share of the trial's loss ratio on."""
NUMBER_AWAY = TRIAL_NUMBERS // 2
"""A probe has the number of a trial that is long past, or far ahead."""

Address = tuple[str, str]
"""A port, and an address that was asked for there."""


class Finding(Enum):
    """What a probe shows."""

    UNRELATED = "unrelated"
    """The loss has nothing to do with the addresses."""
    LASTING = "lasting"
    """Few frames are lost too, while the DUT asks for the same address."""
    NOTHING = "nothing"


@dataclass
class Unrelated:
    """Addresses that the DUT asked for in vain while it lost nothing at that port."""

    known: set[Address] = field(default_factory=set)

    def note(self, result: PhaseResult) -> None:
        self.known |= {one for one in asked_for(result) if _lost(result, one[0]) == 0}

    def without(self, evidence: Mapping[str, NeighbourEvidence] | None) -> dict[str, NeighbourEvidence]:
        """The evidence without requests for these addresses."""
        return {port: self._rest(port, one) for port, one in (evidence or {}).items()}

    def _rest(self, port: str, evidence: NeighbourEvidence) -> NeighbourEvidence:
        left = tuple(one for one in evidence.unanswered if (port, one.target) not in self.known)
        gone = sum(one.requests for one in evidence.unanswered if one not in left)
        return evidence.model_copy(update={"unanswered": left, "requests": evidence.requests - gone})


def asked_for(result: PhaseResult) -> set[Address]:
    return {(port, one.target) for port, seen in (result.neighbours or {}).items() for one in seen.unanswered}


def probe_of(trial: Trial, result: PhaseResult) -> Trial | None:
    """A trial with few frames of the same kinds; None: none is needed, or none would say more."""
    suspected = any(_is_suspected(cause, result) for cause in result.causes)
    answered = all(result.dut_answered.ports().values())
    use = None if trial.connections is None else trial.connections.use
    if (
        not suspected
        or result.verdict is not Verdict.INVALID
        or not answered
        or use not in (None, ConnectionUse.TRAFFIC)
    ):
        return None
    few = {
        direction: stream.model_copy(
            update={
                "rate_fps": max(1, min(PROBE_FPS, round(PROBE_SHARE * stream.rate_fps))),
                "then": None,
                "pattern": None,
                "additional": (),
            }
        )
        for direction, stream in trial.streams().items()
    }
    plain = {
        "trial": (trial.trial + NUMBER_AWAY) % TRIAL_NUMBERS,
        "rest_ns": None,
        "duration_ns": PROBE_NS,
        "stamping": Stamping.NONE,
        "question": Question(),
    }
    absent = (
        "tagged",
        "lost_delay_ns",
        "frame_timeout_ns",
        "by_flow",
        "delay_parts",
        "delays_files",
        "queries_file",
        "capture",
        "pacing",
        "other_streams",
    )
    return trial.alone().model_copy(update=plain | dict.fromkeys(absent)).with_streams(few)


def finding_of(result: PhaseResult, probed: PhaseResult) -> Finding:
    """What ``probed``, the result of the probe, says about a trial with the cause :data:`UNANSWERED`."""
    directions = [cause.direction for cause in result.causes if cause.code == UNANSWERED and cause.direction]
    if probed.verdict is Verdict.ABORTED:
        return Finding.NOTHING
    found = {_finding_in(direction, result, probed) for direction in directions}
    return Finding.LASTING if Finding.LASTING in found else found.pop() if len(found) == 1 else Finding.NOTHING


def lasting(trial: Trial, result: PhaseResult, probed: PhaseResult) -> list[Cause]:
    """Those causes of ``result`` that ``probed``, the result of the probe, has shown to last at any rate: as few
    frames are sent, more are lost than the trial tolerates, or frames are changed."""
    if {cause.code for cause in probed.causes} - OF_SETUP - OF_NEIGHBOURS - {"stale"}:
        return []  # the tester may have lost the frames
    counts = probed.directions()
    return [
        cause
        for cause in result.causes
        if _is_suspected(cause, result)
        and cause.direction in counts
        and (cause.code in CHANGED or counts[cause.direction].loss_ratio > trial.question.tolerated_loss)
        and _lasts(cause, result, probed)
    ]


def _is_suspected(cause: Cause, result: PhaseResult) -> bool:
    """Whether a probe may show that the cause lasts. Where no frame arrives a search tries few frames itself."""
    if cause.direction is None or cause.direction.stream or cause.lasts:
        return False
    forwards = result.directions()[cause.direction].received
    return cause.code in (UNANSWERED, CONFLICT) or (cause.code in OF_SETUP and bool(forwards))


def _lasts(cause: Cause, result: PhaseResult, probed: PhaseResult) -> bool:
    assert cause.direction is not None, "suspected"
    if cause.code == UNANSWERED:
        return _finding_in(cause.direction, result, probed) is Finding.LASTING
    is_seen_again = any((one.code, one.direction) == (cause.code, cause.direction) for one in probed.causes)
    if cause.code == CONFLICT or cause.code in CHANGED:
        return is_seen_again
    of_trial, of_probe = (one.directions()[cause.direction] for one in (result, probed))
    return is_seen_again or (bool(probed.causes) and of_probe.loss_ratio >= SAME_SHARE * of_trial.loss_ratio)


def _finding_in(direction: Direction, result: PhaseResult, probed: PhaseResult) -> Finding:
    port = direction.receiving_port
    of_trial, of_probe = result.directions()[direction], probed.directions()[direction]
    asked = _at(port, result)
    asked_again = asked & _at(port, probed)
    if of_probe.lost:
        return Finding.LASTING if asked_again else Finding.NOTHING
    is_no_chance = of_trial.loss_ratio * of_probe.sent >= EXPECTED
    return Finding.UNRELATED if is_no_chance or asked_again == asked else Finding.NOTHING


def _at(port: str, result: PhaseResult) -> set[Address]:
    return {one for one in asked_for(result) if one[0] == port}


def _lost(result: PhaseResult, port: str) -> int | None:
    """Lost frames of all paths to a port; None: no frame was sent there."""
    counts = [one for direction, one in result.directions().items() if direction.receiving_port == port]
    return sum(one.lost for one in counts) if any(one.sent for one in counts) else None
