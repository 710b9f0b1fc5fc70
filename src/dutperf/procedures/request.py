# SPDX-License-Identifier: Apache-2.0
"""What a person or a program may ask of a measurement while it runs."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from dutperf.model import Value
from dutperf.setup.rate import Rate


class Request(Value):
    """Another rate, or the end; only a procedure that sends by hand takes it
    (:mod:`dutperf.procedures.traffic`)."""

    rate: Rate | None = None
    end: bool = False

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.rate is None) != self.end:
            raise ValueError("give either a rate or the end")
        return self
