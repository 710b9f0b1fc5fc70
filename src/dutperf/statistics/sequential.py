# SPDX-License-Identifier: Apache-2.0
"""An interval for a probability that may be looked at after every trial.

An ordinary interval of 95 % confidence misses the truth in 5 % of all runs if it is looked at once; whoever looks
after every trial and stops when it pleases is wrong more often. The intervals of a confidence sequence all cover the
truth together with the stated confidence (Robbins, Ann. Math. Statist. 41(5), 1970): those probabilities remain
against which the mixture of all alternatives has not won 1 / (1 - confidence) times its stake. The mixture is the
Beta distribution with both parameters 1/2.
"""

from __future__ import annotations

from math import inf, lgamma, log

_PRIOR = 0.5
_STEPS = 60
"""Halvings of an end's range."""


def interval(events: int, trials: int, confidence: float) -> tuple[float, float]:
    """The probability of an event, by ``events`` of ``trials`` independent trials, at ``confidence`` after any number
    of trials. Raises ValueError: more events than trials, or a confidence outside (0, 1)."""
    if not 0 <= events <= trials:
        raise ValueError(f"{events} events in {trials} trials")
    if not 0 < confidence < 1:
        raise ValueError(f"{confidence} is not a confidence between 0 and 1")
    if not trials:
        return 0.0, 1.0
    limit, observed = -log(1 - confidence), events / trials
    low = 0.0 if not events else _end(events, trials, limit, 0.0, observed)
    high = 1.0 if events == trials else _end(events, trials, limit, 1.0, observed)
    return low, high


def _end(events: int, trials: int, limit: float, outside: float, inside: float) -> float:
    """Where the evidence against a probability reaches the limit, between one beyond it and the observed share."""
    for _ in range(_STEPS):
        middle = (outside + inside) / 2
        if _evidence(events, trials, middle) >= limit:
            outside = middle
        else:
            inside = middle
    return outside


def _evidence(events: int, trials: int, probability: float) -> float:
    """Logarithm of what the mixture has won against a probability."""
    others = trials - events
    mixture = _log_beta(events + _PRIOR, others + _PRIOR) - _log_beta(_PRIOR, _PRIOR)
    if (events and probability <= 0) or (others and probability >= 1):
        return inf
    likelihood = (events * log(probability) if events else 0.0) + (others * log(1 - probability) if others else 0.0)
    return mixture - likelihood


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
