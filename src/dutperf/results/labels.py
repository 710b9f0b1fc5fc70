# SPDX-License-Identifier: Apache-2.0
"""The names of conditions and of the environment's members for a person; what is not here is shown
by the name that it has in summary.json, without its underscores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dutperf.setup.conditions import Rate

CONDITIONS: Mapping[str, str] = {
    "frame_sizes": "frame sizes, bytes with FCS",
    "series": "series of frame sizes",
    "duration_s": "sending time of a trial, s",
    "drain_s": "receiving goes on after sending, s",
    "learning_rest_s": "rest after the learning frames (ARP, NDP), s",
    "settle_s": "rest between trials, s",
    "dut_patience_s": "waited for a DUT that is away, at most, s",
    "directions": "directions that send",
    "n": "foreground traffic: of n frames …",
    "m": "… m are foreground, the others native IPv6",
    "ports": "UDP ports",
    "networks": "destination networks in each direction",
    "seed": "seed of what is random",
    "burst": "most frames handed to the driver at once",
    "pattern": "how frames come at the mean rate",
    "burst_rate": "rate of a burst's frames",
    "loss_tolerance": "share of a direction's frames that may be lost",
    "repetitions": "repetitions asked for",
    "search": "search",
    "search.algorithm": "search",
    "goals": "loss ratios searched for",
    "min_rate": "lowest rate",
    "max_rate": "highest rate",
    "initial_rate": "first rate",
    "rates": "rates per direction",
    "rate": "rate per direction",
    "found": "rate measured at by frame size, frames/s per direction",
    "definition": "definition of latency",
    "subtract_calibration": "the tester's own delay is subtracted",
    "max_burst_s": "longest burst, s at its rate",
    "burst_resolution": "resolution of the search, share of the burst",
    "verifications": "times that a burst without loss is sent again",
    "overload_s": "overload at the beginning of a trial, s",
    "reset_after_s": "the DUT is reset after, s",
    "search.start": "where a repetition's search starts",
    "search.first_frames": "first burst, frames",
    "search.order": "order of the rates",
    "search.ends": "the series ends",
    "tags": "tagged frames of a trial",
    "tag_after_s": "first frame tagged after, s",
    "step": "step between rates",
    "resolution": "resolution of the search",
    "search.attempts.beyond_reach": "attempts at a rate before it counts as beyond the tester's reach",
    "search.attempts.within_reach": "… where the tester managed that rate before",
}
ENVIRONMENT: Mapping[str, str] = {
    "started": "started",
    "host.name": "host",
    "host.cpu": "CPU",
    "host.cores": "cores",
    "host.usable_cores": "cores that dutperf may use",
    "host.memory_kb": "memory, kB",
    "host.kernel": "kernel",
    "host.kernel_options": "options of the kernel's command line",
    "host.governor": "frequency governor",
    "host.clock_source": "clock source",
    "host.dutperf": "dutperf",
    "host.python": "Python",
    "tester.core_choice.tester": "cores of the tester's loops",
    "tester.core_choice.dut": "cores of the DUT",
    "tester.core_choice.why": "why these cores",
}


def name_of(member: str, names: Mapping[str, str]) -> str:
    """What a member with that dotted name is called; where only the beginning has a name, that and
    the rest."""
    known, rest = member, ""
    while known and known not in names:
        known, _, last = known.rpartition(".")
        rest = f"{last}.{rest}" if rest else last
    return member.replace("_", " ") if not known else names[known] + (f": {rest}" if rest else "")


def rates(value: Any) -> Any:
    """A condition with its rates as a person reads them, wherever they stand in it."""
    if isinstance(value, list):
        return [rates(entry) for entry in value]
    return str(Rate.model_validate(value)) if isinstance(value, Mapping) and set(value) == {"value", "unit"} else value


def text(value: Any) -> str:
    """A plain value of JSON for a person."""
    if value is None or value in ([], {}):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(text(entry) for entry in value)
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)
