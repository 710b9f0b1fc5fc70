# SPDX-License-Identifier: Apache-2.0
"""What trials of an OTG server do not prove, whose metrics are all that is known of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dutperf.model import TrialResult, Verdict
from dutperf.otg_client.evidence import UNPROVEN


def of_trial(result: TrialResult) -> Iterator[str]:
    """``judged by ...; frames that left up to 0.300 s late do not show``."""
    blind_s = _blind_s(result)
    if blind_s is not None:
        yield _text("this trial was", blind_s)


def of_run(results: Iterable[TrialResult]) -> tuple[str, ...]:
    """The same of all valid trials of a run together."""
    found = [one for result in results if result.verdict is Verdict.VALID and (one := _blind_s(result)) is not None]
    if not found:
        return ()
    return (_text("1 valid trial was" if len(found) == 1 else f"{len(found):,} valid trials were", max(found)),)


def _blind_s(result: TrialResult) -> float | None:
    return max((one.by_metrics.blind_s for one in result.all_directions().values() if one.by_metrics), default=None)


def _text(which: str, blind_s: float) -> str:
    return f"{which} judged by metrics alone: {UNPROVEN}, nor frames that left up to {blind_s:.3f} s late"
