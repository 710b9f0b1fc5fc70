# SPDX-License-Identifier: Apache-2.0
"""The preliminary phase of siitperf's stateful tests: its trial, its result apart from that of the test
itself, and warnings about what such a test does not show."""

from __future__ import annotations

from collections.abc import Iterator

from dutperf.model import NOT_OPENED, ConnectionUse, Opening, PhaseResult, Trial, TrialResult
from dutperf.siitperf import stateful
from dutperf.siitperf.arguments import Arguments, connections
from dutperf.siitperf.configuration import Settings
from dutperf.siitperf.variables import Variables
from dutperf.traffic.connections import duration_ns

_NS_IN_MS = 1_000_000


def timed(trial: Trial, arguments: Arguments, settings: Settings) -> Trial:
    """``trial`` with the number of frames, the times and the state table of the arguments. Without an active direction
    it is the preliminary phase alone. Raises ParameterError: the preliminary phase would take longer than a day."""
    [opening] = trial.preliminary
    assert opening.connections is not None
    assert trial.connections is not None
    sending_ns = duration_ns(arguments["N"], arguments["R"])
    opens = opening.connections.model_copy(update={"opening": stateful.space(settings).opening})
    times = {"duration_ns": sending_ns, "drain_ns": arguments["T"] * _NS_IN_MS}
    at_rate = {path: stream.with_rate(arguments["R"]) for path, stream in opening.streams().items()}
    opening = opening.with_streams(at_rate).model_copy(update={**times, "connections": opens})
    if not settings.active():
        return Trial(**dict(opening))
    gap_ns = (arguments["D"] - arguments["T"]) * _NS_IN_MS - sending_ns
    entries = min(arguments["M"], connections(arguments, settings))
    uses = trial.connections.model_copy(update={"entries": entries})
    return trial.model_copy(update={"rest_ns": gap_ns or None, "preliminary": (opening,), "connections": uses})


def split(trial: Trial, result: TrialResult) -> tuple[PhaseResult | None, TrialResult | None]:
    """The results of the preliminary phase and of the test itself, each with its own causes; None: there was
    none."""
    if trial.connections is None:
        return None, result
    if trial.connections.use is ConnectionUse.OPEN:
        return result, None
    if not result.preliminary:
        return None, result
    [opened] = result.preliminary
    own = tuple(cause for cause in result.causes[len(opened.causes) :] if cause.code != NOT_OPENED)
    return opened, result.model_copy(update={"causes": own})


def remarks(arguments: Arguments, settings: Settings, variables: Variables) -> Iterator[str]:
    """Warnings before a stateful test. They contain none of the words that scripts look for."""
    space, direction = stateful.space(settings), settings.initiator_direction
    if not _validates(arguments, settings):
        yield (
            "Warning: a full state table does not prove that the DUT has the connections: it may pass frames without"
            " keeping an entry, or replace entries. Replies in every connection prove it: Responder-tuples 1, and"
            " RATE * DURATION of at least M."
        )
    if space.opening is Opening.EACH and arguments["N"] < space.size and settings[direction]:
        yield (
            f"Warning: N opens {arguments['N']:,} of {space.size:,} combinations. siitperf then sends in all of them,"
            " and opens further connections in the test itself; here all frames belong to those that N opened."
        )
    if space.opening is Opening.RANDOM:
        yield (
            f"Warning: without Enumerate-ports frames open some of the {space.size:,} combinations several times, and"
            " others not: the test itself opens further connections."
        )
    elif settings[direction]:
        for key in stateful.varying_keys(settings):
            if settings[key] not in (stateful.FIXED, stateful.RANDOM):
                yield f"Warning: {key} {settings[key]} has no effect: frames of the test belong to random connections."
    if variables.repeats:
        yield (
            "Warning: DUTPERF_REPEAT has no effect where Stateful is not 0: the DUT would still have the connections of"
            " the test before."
        )


def _validates(arguments: Arguments, settings: Settings) -> bool:
    """Whether the Responder replies in every connection of its table at least once."""
    replies = "Reverse" if settings.initiator_direction == "Forward" else "Forward"
    in_turn = settings["Responder-tuples"] in (1, 2) or arguments["M"] == 1
    return bool(settings[replies]) and in_turn and arguments["RATE"] * arguments["DURATION"] >= arguments["M"]
