# SPDX-License-Identifier: Apache-2.0
"""One figure of the self-test against its true value, and the judgement.

The error of a figure is stated before the comparison: the procedure's resolution plus the disturbances
of its trials. So a disturbed tester has a larger error, not a wrong figure. If the error is so large
that nearly every figure would pass, the finding is invalid.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from dutperf.exit_status import INVALID, NO_NUMBER
from dutperf.model import Value


class Judgement(StrEnum):
    OK = "ok"
    OFF = "off"
    """Farther from the true value than the stated error: a wrong number."""
    INVALID = "invalid"
    """The tester was too disturbed to tell."""


class Finding(Value):
    """A figure, its true value and its errors, all in ``unit``."""

    procedure: str
    figure: str
    unit: str
    measured: float | None
    """None: no valid trial gave a figure."""
    true: float
    stated_error: float
    judgement: Judgement
    note: str = ""

    @property
    def error(self) -> float | None:
        return None if self.measured is None else self.measured - self.true


def judge(measured: float | None, true: float, stated_error: float, tolerable: float) -> tuple[Judgement, str]:
    """The judgement, and a sentence if it is not OK. ``tolerable``: the largest stated error with which a
    figure is still meaningful."""
    if measured is None:
        return Judgement.INVALID, "no valid trial gave a figure"
    if abs(measured - true) > stated_error:
        return Judgement.OFF, "farther from the true value than the stated error"
    if stated_error > tolerable:
        return (
            Judgement.INVALID,
            f"tester disturbed: the stated error {stated_error:.4g} is above {tolerable:.4g}",
        )
    return Judgement.OK, ""


def exit_status(findings: Iterable[Finding]) -> int:
    """0 if every figure is OK, 1 if a figure is off, 3 if figures are invalid or there are none."""
    judgements = {finding.judgement for finding in findings}
    if Judgement.OFF in judgements:
        return NO_NUMBER
    return 0 if judgements == {Judgement.OK} else INVALID
