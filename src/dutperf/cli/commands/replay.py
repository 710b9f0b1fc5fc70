# SPDX-License-Identifier: Apache-2.0
"""``dutperf replay``: sends the frames of a capture as one trial, each as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from dutperf.captures import CaptureError
from dutperf.cli import condition_options
from dutperf.cli.commands.trial import NUMBER, claim_trial, show_and_write, status_of
from dutperf.cli.errors import reported, say
from dutperf.cli.output import console, live
from dutperf.cli.source_options import RESULT, SOURCE, split_source
from dutperf.model import Direction, DirectionCounts, Recording, Trial, TrialResult, Verdict, to_json
from dutperf.run.testbench import USUAL_FRAME_SIZE, Bench, bench
from dutperf.setup import configuration
from dutperf.setup.conditions import make
from dutperf.setup.configuration import ConfigError
from dutperf.spelling import count_of
from dutperf.tester import TesterError
from dutperf.traffic import replayed as replaying
from dutperf.traffic.replayed import Replaying

FILE = Annotated[Path, typer.Argument(metavar="FILE", help="The capture: pcap or pcapng, Ethernet.")]


def replay(**given: Any) -> None:
    """Send the frames of a capture, at its own times or at a rate.

    Shows what the DUT lost.
    """
    with reported():
        _replay(**given)


replay.__signature__ = condition_options.signature(  # type: ignore[attr-defined]
    {
        "capture_file": (FILE, Parameter.empty),
        **{name: option for name, option in SOURCE.items() if name != "queues"},  # one sender has the list
    },
    Replaying,
    RESULT,
)


def _replay(*, capture_file: Path, out: Path | None, as_json: bool, **given: Any) -> None:
    source, chosen = split_source({"queues": None} | given)
    with condition_options.named_as_typed(Replaying):
        conditions = make(Replaying, chosen)
        recording = _read(capture_file, conditions)
        replaying.check(recording, conditions)
        claim_trial(out)
        with _naming_longest(capture_file, recording), bench(source, longest=recording.longest) as ready:
            planned = ready.replay(recording, conditions, NUMBER)
            result = _run(planned, ready)
            report = _report(ready, planned, result, capture_file, conditions)
            show_and_write(report, out, as_json, lambda: console.replay(report, result))
    raise typer.Exit(status_of(result))


def _read(path: Path, conditions: Replaying) -> Recording:
    try:
        return replaying.recording_of(path, conditions)
    except (CaptureError, replaying.ReplayError) as error:
        raise ConfigError(str(error), "FILE") from None


@contextmanager
def _naming_longest(path: Path, recording: Recording) -> Iterator[None]:
    """Within, an error of a port that does not take long frames names the longest one."""
    try:
        yield
    except TesterError as error:
        if error.code != "port_unavailable" or recording.longest <= USUAL_FRAME_SIZE:
            raise
        text = f"{error} (frame {recording.longest_number} of {path} has {recording.longest} bytes with FCS)"
        raise TesterError(text, code=error.code, field=error.field) from None


def _run(planned: Trial, ready: Bench) -> TrialResult:
    [(direction, stream)] = planned.streams().items()
    frames = planned.intended(direction)
    apart = planned.times(direction).due_ns(frames - 1) if frames else 0
    when = f" at {stream.rate_fps:,} frames/s in the mean" if apart else ", all due at once" if frames > 1 else ""
    say(f"replaying {count_of(frames, 'frame')}{when}, {live.duration(planned.whole_s)}")
    if frames > 1 and not apart:
        say("all frames of the capture have the same time: --rate sends them at a rate of your choice")
    with live.trial_progress(planned) as on_progress:
        return ready.run(planned, on_progress)


def _report(ready: Bench, planned: Trial, result: TrialResult, path: Path, conditions: Replaying) -> dict[str, Any]:
    """The result with its setup and environment; ``passed`` is null where it is not valid."""
    valid = result.verdict is Verdict.VALID
    tolerated = planned.question.tolerated_loss
    return to_json(result) | {
        "passed": result.worst_loss_ratio <= tolerated if valid else None,
        "loss_tolerance": tolerated,
        "replay": {
            "file": str(path),
            "speed": None if conditions.factor is None else str(conditions.factor),
            "macs": conditions.macs,
            "counted": _counted(planned),
            "rates_fps": {
                str(direction): _rates(planned, direction, one) for direction, one in result.directions().items()
            },
        },
        "trial": to_json(planned),
        "dut": ready.dut.identity(),
        "config": configuration.as_json(ready.setup),
        "environment": ready.tester.environment(),
    }


def _rates(planned: Trial, direction: Direction, counts: DirectionCounts) -> dict[str, float | None]:
    """Mean rates: of the frames that were due, over the sending time, and over the time of the arrivals."""
    times = planned.times(direction)
    last_ns = times.due_ns(counts.intended - 1) if counts.intended else 0
    arrivals = counts.arrivals
    return {
        "intended": _mean(counts.intended, last_ns / 1e9),
        "sent": _mean(counts.sent, counts.send_time_s),
        "received": None if arrivals is None else _mean(counts.received, arrivals.last_s - arrivals.first_s),
    }


def _mean(frames: int, seconds: float) -> float | None:
    """Frames/s of frames whose first and last are so many seconds apart."""
    return (frames - 1) / seconds if frames > 1 and seconds > 0 else None


def _counted(planned: Trial) -> str:
    [stream] = planned.streams().values()
    assert stream.replay is not None
    if stream.replay.tagged == stream.replay.frames:
        return "by tag"
    return "by tag, others by order and length" if stream.replay.tagged else "by order and length"
