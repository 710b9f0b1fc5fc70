# SPDX-License-Identifier: Apache-2.0
"""One figure of the self-test against its truth, and what is to be thought of it.

A figure's error is stated before it is compared: what the procedure's resolution leaves open and
what the disturbances add that were seen in its trials. So a disturbed tester does not look wrong,
it looks unsure; where it is so unsure that nearly every figure would do, it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from dutperf.exit_status import INVALID, NO_NUMBER
from dutperf.model import Value


class Judgement(StrEnum):
    """On one figure."""

    OK = "ok"
    OFF = "off"
    """Farther from the truth than the stated error: a wrong number."""
    INVALID = "invalid"
    """The tester was too disturbed to say."""


class Finding(Value):
    """A figure, the truth, and what lies between them. All in ``unit``."""

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
        """Measured - true."""
        return None if self.measured is None else self.measured - self.true


def judge(measured: float | None, true: float, stated_error: float, tolerable: float) -> tuple[Judgement, str]:
    """The judgement, and a sentence where it is not OK. ``tolerable``: the largest stated error
    with which a figure still says something."""
    if measured is None:
        return Judgement.INVALID, "no valid trial gave a figure"
    if abs(measured - true) > stated_error:
        return Judgement.OFF, "farther from the truth than the stated error"
    if stated_error > tolerable:
        return (
            Judgement.INVALID,
            f"tester disturbed: an error of {stated_error:.4g} leaves too much open, {tolerable:.4g} would do",
        )
    return Judgement.OK, ""


def exit_status(findings: Iterable[Finding]) -> int:
    """0 where all is well, 1 where a figure is off, 3 where none is but some say nothing, or there
    are none."""
    judgements = {finding.judgement for finding in findings}
    if Judgement.OFF in judgements:
        return NO_NUMBER
    return 0 if judgements == {Judgement.OK} else INVALID
