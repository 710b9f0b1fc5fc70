# SPDX-License-Identifier: Apache-2.0
"""Decides whether another repetition is needed: a fixed number (RFC 8219 7.2 and 7.3: 20 at least),
or as many as the median's interval needs.

RFC 2544 has no statistically sound number of repetitions (Lencse, Kovács, Shima: "Gaming with the
Throughput and the Latency Benchmarking Measurement Procedures of RFC 2544", IJATES2 9(2), 2020): an
algorithm should decide during the measurement. :class:`Auto` repeats until the confidence interval
of the median is narrow enough. A rule that looks at the interval after every repetition and stops at
the first narrow one often stops too early. docs/decisions/0005-repetitions.md says why the looks
are few and have unequal levels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from math import inf
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, model_validator

from dutperf import errors
from dutperf.model import Value
from dutperf.statistics import intervals

CONFIDENCE = 0.95
"""Confidence of the interval in every summary."""
FIRST_ERROR_SHARE = 0.8
"""Share of the allowed error (1 - confidence) that the first look may use."""
MIDDLE_ERROR_SHARE = 0.4
"""... that each look between the first and the last may use."""
Values = Sequence[float | None]
"""One for each finished repetition; None where nothing passed."""


class Auto(Value):
    """Repeat until the interval of the median is narrow enough. Shares of 1, not percent."""

    minimum: Annotated[int, Field(ge=2, le=10_000)] = 10
    maximum: Annotated[int, Field(ge=2, le=10_000)] = 100
    confidence: Annotated[float, Field(ge=0.8, le=0.999)] = CONFIDENCE
    """Share of runs in which the final interval covers the true median."""
    width_share: Annotated[float, Field(gt=0, le=1)] = 0.01
    """The interval's largest width, as a share of the median."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.minimum > self.maximum:
            raise ValueError(f"min ({self.minimum}) is above max ({self.maximum})")
        needed = intervals.smallest_sample(self.level(self.minimum))
        if self.minimum < needed:
            raise ValueError(
                f"min={self.minimum} is too few: an interval of {self.confidence * 100:g} % confidence needs {needed}"
                " repetitions"
            )
        return self

    def looks(self) -> Iterator[int]:
        """Numbers of repetitions after which the interval is looked at: each 1.5 times the one
        before, and the maximum."""
        count = self.minimum
        while count < self.maximum:
            yield count
            count = max(count + 1, count * 3 // 2)
        yield self.maximum

    def level(self, count: int) -> float:
        """Confidence of the interval after ``count`` repetitions, such that all looks together keep
        the overall confidence."""
        share = 1.0 if count >= self.maximum else FIRST_ERROR_SHARE if count <= self.minimum else MIDDLE_ERROR_SHARE
        return 1 - (1 - self.confidence) * share


Rule = int | Auto


class Stopped(StrEnum):
    """Why there was no further repetition."""

    NUMBER = "number"
    """The given number was reached."""
    NARROW = "narrow enough"
    MAXIMUM = "maximum"
    KNOWN = "known"
    """The figure is known to be below or above a target."""
    NOTHING = "no number"
    """Even the upper end of the interval is not a number, because nothing passed or the tester was
    the limit; more repetitions would not change this."""
    VOID = "one without a result"
    """A repetition voids the figures; more repetitions would not change this."""


def parse(text: str) -> Rule:
    """``"20"``, ``"auto"``, or ``"auto:width=1%,min=10,max=50,confidence=95%"`` with any of these four. Raises
    ValueError: the text is neither, or the numbers are not possible."""
    if re.fullmatch(r"\d+", text):
        return int(text)
    name, _, settings = text.partition(":")
    if name != "auto" or text == "auto:":
        raise ValueError(
            f"'{text}' is neither a number nor auto, as in 20, auto or auto:width=1%,min=10,max=50,confidence=95%"
        )
    try:
        return Auto(**dict(_setting(one) for one in settings.split(",") if settings))
    except ValidationError as error:
        details = errors.first(error)
        name = (
            {member: key for key, (member, _) in _SETTINGS.items()}.get(str(details["loc"][0]), "")
            if details["loc"]
            else ""
        )
        raise ValueError(details["msg"].replace("Input should", f"{name} should")) from None


def stopped(rule: Rule, *series: Values) -> Stopped | None:
    """Why no further repetition is needed; None where one is. All ``series``, of equal length, have
    to be narrow enough."""
    count = len(series[0])
    if isinstance(rule, int):
        return Stopped.NUMBER if count >= rule else None
    if count not in rule.looks():
        return None
    states = [_state(rule, values) for values in series]
    if None not in states:
        return next((state for state in states if state is not Stopped.NARROW), Stopped.NARROW)
    return Stopped.MAXIMUM if count == rule.maximum else None


def next_look(rule: Rule, done: int) -> int:
    """The least number of repetitions in all, where ``done`` were finished and not enough."""
    return rule if isinstance(rule, int) else next((count for count in rule.looks() if count > done), rule.maximum)


def confidence(rule: Rule) -> float:
    return CONFIDENCE if isinstance(rule, int) else rule.confidence


def interval(rule: Rule, values: Values, missing: float = -inf) -> intervals.Interval | None:
    """The median's interval of :func:`confidence` that the rule computed last; None with too few
    values."""
    level = CONFIDENCE if isinstance(rule, int) else rule.level(len(values))
    return intervals.median_interval(values, level, missing) if values else None


def _state(rule: Auto, values: Values) -> Stopped | None:
    ends, middle = interval(rule, values), intervals.median(values)
    assert ends is not None, "the first look has enough values"
    low, high = ends
    if high is None:
        return Stopped.NOTHING
    return (
        Stopped.NARROW
        if low is not None and middle is not None and high - low <= rule.width_share * abs(middle)
        else None
    )


_SETTINGS = {
    "width": ("width_share", True),
    "min": ("minimum", False),
    "max": ("maximum", False),
    "confidence": ("confidence", True),
}
"""Name on the command line -> member of :class:`Auto`, and whether it is a share."""


def _setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", value)
    if name not in _SETTINGS or match is None or (match[2] and not _SETTINGS[name][1]):
        raise ValueError(f"'{text}' is not a setting: give width=1%, min=10, max=50 or confidence=95%")
    member, is_share = _SETTINGS[name]
    if not is_share:
        return member, match[1]
    return member, float(match[1]) / (100 if match[2] else 1)
