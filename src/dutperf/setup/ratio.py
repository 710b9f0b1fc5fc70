# SPDX-License-Identifier: Apache-2.0
"""A share of a whole as it is typed: ``0.005`` or ``0.5%``."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from dutperf.setup.given import Given


def _of_text(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    number = given.strip().removesuffix("%")
    try:
        return float(number) / (100 if number != given.strip() else 1)
    except ValueError:
        raise ValueError(f"'{given}' is not a share: give it as in 0.05 or 5%") from None


READ_RATIO = BeforeValidator(_of_text)
AnyRatio = Annotated[Given[float, str], READ_RATIO]
"""As a member."""
