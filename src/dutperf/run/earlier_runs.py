# SPDX-License-Identifier: Apache-2.0
"""What a run takes from earlier ones, and how it keeps out of their way: the throughput that they found, and
directories of its own."""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from dutperf import journal
from dutperf.journal import JOURNAL, JournalError, not_written
from dutperf.model import FRAME_SIZE, LimitedBy
from dutperf.results.deviations import OF_A_SEARCH
from dutperf.results.summary import SUMMARY
from dutperf.run.campaign import PlanError
from dutperf.setup import conditions
from dutperf.setup.arguments import path_of
from dutperf.setup.conditions import (
    AllConditions,
    AtThroughput,
    Conditions,
    DelayFiles,
    Foreground,
    Model,
    WithFlowsApart,
    WithPorts,
)
from dutperf.setup.configuration import ParameterError
from dutperf.spelling import with_and

OF_TRAFFIC = (
    *(name for group in (WithFlowsApart, WithPorts) for name in group.model_fields if name != "frame_from"),
    *("size_mix", "pattern", "burst_rate", "connections"),
)
"""Conditions that a throughput must have been measured under to be another measurement's; ``frame`` is what the file
of ``frame_from`` held."""


def fresh_directory(procedure: str) -> Path:
    """A new directory ``results/DATE-TIME-PROCEDURE`` under the current one. It is made at once: two runs may begin in
    the same second. If nothing is written there, it is removed at the end of the program. Raises JournalError: it
    cannot be made."""
    stem = Path("results") / f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{procedure}"
    for path in (stem, *(stem.with_name(f"{stem.name}-{number}") for number in range(2, 1000))):
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise not_written(path, error) from None
        atexit.register(_remove_if_empty, path.resolve())
        return path
    raise JournalError(f"cannot write {stem}: there are a thousand runs of this second")


def _remove_if_empty(directory: Path) -> None:
    with suppress(OSError):
        directory.rmdir()


def newest_beside(directory: Path) -> Path | None:
    """The results beside ``directory`` that ended last and have one of its measurements; None: there are none."""
    wanted = _measured(directory)
    found = (path for path in directory.parent.glob(f"*/{SUMMARY}") if path.parent.name != directory.name)
    others = (path for path in found if _measured(path.parent) & wanted)
    newest = max(others, key=lambda path: path.stat().st_mtime, default=None)
    return None if newest is None else newest.parent


def _measured(directory: Path) -> frozenset[str]:
    """The names of the finished measurements: of a run the procedure, of a suite its folders."""
    try:
        summary = json.loads((directory / SUMMARY).read_text(encoding="utf-8"))
        return frozenset(
            [summary["procedure"]] if "procedure" in summary else map(itemgetter("name"), summary["measurements"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset()


def chosen(model: type[Model], given: Mapping[str, Any]) -> tuple[Model, ...]:
    """As :func:`dutperf.setup.conditions.each`. ``throughput_from`` may be the directory of an earlier run;
    ``delays_to`` must not hold the delays of another run. Raises ParameterError: an invalid value. Raises PlanError:
    see :func:`earlier_throughput`."""
    prior = given.get("throughput_from")
    members = {name: value for name, value in given.items() if name != "throughput_from" or isinstance(value, Mapping)}
    made = tuple(map(with_fresh_files, conditions.each(model, members)))
    return made if prior is None or isinstance(prior, Mapping) else tuple(at_throughput_of(prior, one) for one in made)


def at_throughput_of(directory: str | os.PathLike[str], wanted: Model) -> Model:
    """``wanted``, to be measured at the throughput that an earlier run found. Raises ParameterError: no path, or the
    procedure does not measure at a throughput. Raises PlanError: see :func:`earlier_throughput`."""
    if not isinstance(wanted, AtThroughput):
        raise ParameterError("only procedures at the throughput take one", "throughput_from")
    return wanted.model_copy(update=earlier_throughput(path_of(directory, "throughput_from"), wanted))


def with_fresh_files(wanted: Model) -> Model:
    """``wanted``, whose files of delays are new ones. Raises ParameterError: the directory holds the delays of another
    run."""
    if not isinstance(wanted, DelayFiles) or wanted.delays_to is None:
        return wanted
    return wanted.model_copy(update={"delays_to": _fresh(path_of(wanted.delays_to, "delays_to"))})


def _fresh(directory: Path) -> str:
    """The absolute path: the engine may have another working directory."""
    if any(directory.glob("*/trial-*.npy")):
        raise ParameterError(
            f"{directory} holds the delays of another run: choose another directory or remove them", "delays_to"
        )
    return str(directory.absolute())


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return value.text() if isinstance(value, Foreground) else "none" if value is None else str(value)


def earlier_throughput(directory: Path, wanted: Conditions) -> dict[str, Any]:
    """Members of the conditions from an earlier run: median throughput (frames/s) by frame size, and the deviations of
    its search. In a suite it is the run with the traffic of ``wanted``. Raises PlanError: no summary of a throughput
    run, no number in it, or other traffic."""
    from dutperf.run import suite  # imported late: a single trial needs none of its procedures

    place = suite.throughput_in(directory, wanted)
    if place != directory and not place.exists():
        raise PlanError(f"{directory} has no throughput of this traffic ({place.name})", option="throughput_from")
    try:
        summary = json.loads((place / SUMMARY).read_text(encoding="utf-8"))
        medians = {point["case"][FRAME_SIZE.name]: point["throughput_fps"]["median"] for point in summary["points"]}
        recorded = summary["conditions"]
        measured = AllConditions.model_validate({name: recorded[name] for name in OF_TRAFFIC if name in recorded})
        deviations = [one["text"] for one in summary.get("deviations", ()) if one["clause"] in OF_A_SEARCH]
        deviations += limited_by_tester(
            (one["case"][FRAME_SIZE.name], one.get("limited_by"))
            for one in summary["points"]
            if one["throughput_fps"]["median"] is not None
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise PlanError(f"{place} has no {SUMMARY} of a throughput run", option="throughput_from") from None
    if differing := other_traffic(measured, wanted.every):
        raise PlanError(
            f"the throughput in {place} was measured with other traffic ({', '.join(differing)})",
            option="throughput_from",
        )
    found = {size: int(median) for size, median in medians.items() if median is not None and median >= 1}
    if not found:
        raise PlanError(f"the run in {place} found no throughput", option="throughput_from")
    if (place / JOURNAL).exists() and not journal.is_complete(journal.read(place)):
        deviations.append("a part of its repetitions: the run is not complete")
    return {"throughput_from": found, "throughput_deviations": tuple(deviations)}


def other_traffic(measured: AllConditions, wanted: AllConditions) -> list[str]:
    """The conditions of a throughput that make it another traffic's, in words."""
    return [
        f"{name.replace('_', ' ')} {_text(getattr(measured, name))}"
        for name in OF_TRAFFIC
        if getattr(measured, name) != getattr(wanted, name)
    ]


def limited_by_tester(points: Iterable[tuple[int, str | None]]) -> list[str]:
    """What to know of a throughput that is not the DUT's, by frame size and limit, as the end of a sentence."""
    sizes = [str(size) for size, limit in points if limit == LimitedBy.TESTER]
    return [f"the tester's limit, not the DUT's, for {with_and(sizes)} bytes"] if sizes else []
