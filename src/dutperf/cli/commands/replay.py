# SPDX-License-Identifier: Apache-2.0
"""``dutperf replay``: sends the frames of a capture as one trial, each as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dutperf.captures import CaptureError
from dutperf.cli import condition_options, options, source_options
from dutperf.cli.commands.measure import split_source
from dutperf.cli.commands.trial import NUMBER, claim_trial, show_and_write, status_of
from dutperf.cli.errors import reported, say
from dutperf.cli.output import console, live
from dutperf.model import (
    PREAMBLE_AND_GAP,
    Capture,
    Direction,
    DirectionCounts,
    Recording,
    Trial,
    TrialResult,
    Verdict,
    to_json,
)
from dutperf.run.testbench import USUAL_FRAME_SIZE, Bench, bench
from dutperf.setup import configuration
from dutperf.setup.configuration import ConfigError, ParameterError
from dutperf.setup.dut import Device
from dutperf.setup.rate import Rate
from dutperf.tester import TesterError, phases
from dutperf.traffic import replayed as replaying


def replay(
    capture_file: Annotated[Path, typer.Argument(metavar="FILE", help="The capture: pcap or pcapng, Ethernet.")],
    lab: options.LabName = None,
    lab_option: options.LabOptions = None,
    config_file: options.ConfigFile = None,
    offloads: source_options.OffloadsText = None,
    speed: Annotated[
        str | None,
        typer.Option("--speed", metavar="FACTOR", help="Send faster or slower than captured: 2, 0.5, 1/3. Default: 1."),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            "--rate",
            metavar="RATE",
            help="Send at this constant rate instead of the capture's times: frames/s, or % of the media's maximum.",
        ),
    ] = None,
    loop: Annotated[
        int,
        typer.Option(
            min=0, max=1_000_000_000, metavar="COUNT", help="How often to send the capture; 0: until the duration ends."
        ),
    ] = 1,
    duration: Annotated[
        float | None,
        typer.Option(min=0.001, max=86_400, metavar="S", help="End sending after this time at the latest."),
    ] = None,
    directions: Annotated[
        str,
        typer.Option(
            metavar="forward|reverse|PORT->PORT",
            help=(
                "forward: from the left port; reverse: from the right port; with more ports than two one of their"
                " paths."
            ),
        ),
    ] = "forward",
    macs: Annotated[
        Literal["rewrite", "keep"],
        typer.Option(
            help=(
                "rewrite: the MAC addresses of the tester's port and of the DUT, but for group addresses; keep: those"
                " of the capture."
            )
        ),
    ] = "rewrite",
    tag: Annotated[
        bool,
        typer.Option(
            "--tag", help="Put a tag into each frame with room for it: such frames are counted exactly, by number."
        ),
    ] = False,
    length_change: Annotated[
        str | None,
        typer.Option(
            metavar="BYTES|ipv4=BYTES,…",
            help=(
                "Bytes by which the DUT changes packets that it forwards, as a tunnel does. Translation between IPv4"
                " and IPv6, and VLAN tags, do not count."
            ),
        ),
    ] = None,
    drain: Annotated[
        float,
        typer.Option(min=0, max=3_600, metavar="S", help="Time to receive residual frames after sending."),
    ] = 2.0,
    learning_rest: Annotated[
        float,
        typer.Option(min=0, max=60, metavar="S", help="Wait between ARP or NDP and the first frame."),
    ] = 0.0,
    tx_burst: Annotated[
        int,
        typer.Option(
            min=1, max=512, metavar="FRAMES", help="Maximum number of due frames handed to the driver at once."
        ),
    ] = 32,
    loss_tolerance: Annotated[
        float,
        typer.Option(
            min=0, max=0.999999, metavar="RATIO", help="Loss ratio goal: share of the frames that may be lost."
        ),
    ] = 0.0,
    capture: Annotated[
        str | None,
        typer.Option(
            metavar="KIND[:FRAMES],…",
            help=(
                "Write frames to a capture file: first (of all that arrive), unexpected; of tagged frames also lost and"
                " damaged; each up to 1000 or :FRAMES."
            ),
        ),
    ] = None,
    capture_to: Annotated[
        str, typer.Option(metavar="FILE", help="The capture file (pcapng), on the engine's machine.")
    ] = "capture.pcapng",
    out: options.Out = None,
    as_json: options.Json = False,
) -> None:
    """Send the frames of a capture, at its own times or at a rate; show what the DUT lost."""
    with reported():
        source, _ = split_source(
            {"lab": lab, "lab_option": lab_option, "config_file": config_file, "queues": None, "offloads": offloads}
        )
        if rate is not None and speed is not None:
            raise ConfigError("goes without --rate, which replaces the capture's times", "--speed")
        given_rate = None if rate is None else condition_options.parse_rate("--rate", rate)
        wanted = replaying.Source(
            capture_file,
            speed=None if given_rate is not None else replaying.speed_of(speed or "1"),
            keeps_macs=macs == "keep",
            tags=tag,
        )
        recording = _read(wanted)
        replaying.check(recording, loop=loop, duration_s=duration, own_times=given_rate is None)
        plan = replaying.Plan(
            direction=_direction(directions),
            loop=loop,
            duration_s=duration,
            drain_s=drain,
            rest_s=learning_rest,
            burst=tx_burst,
            tolerated_loss=loss_tolerance,
            length_changes=replaying.length_changes_of(length_change or "0"),
            capture=_captured(capture, capture_to, recording),
        )
        claim_trial(out)
        with _naming_longest(capture_file, recording), bench(source, longest=recording.longest) as ready:
            replaying.check_direction(plan.direction, ready.setup)
            planned = replaying.trial_of(recording, _at_rate(plan, given_rate, ready, recording), NUMBER)
            result = _run(planned, ready)
            report = _report(ready, planned, result, wanted)
            show_and_write(report, out, as_json, lambda: console.replay(report, result))
        raise typer.Exit(status_of(result))


def _read(wanted: replaying.Source) -> Recording:
    try:
        return replaying.recording_of(wanted)
    except (CaptureError, replaying.ReplayError) as error:
        raise ConfigError(str(error), "FILE") from None


def _direction(text: str) -> Direction:
    try:
        return Direction(text)
    except ValueError:
        raise ConfigError(
            f"is neither forward nor reverse nor a path between named ports, such as a->b: {text!r}", "--directions"
        ) from None


def _captured(kinds: str | None, to: str, recording: Recording) -> Capture | None:
    if kinds is None:
        return None
    try:
        wanted = Capture.parse(kinds, str(Path(to).absolute()))
    except ValueError as error:
        raise ConfigError(str(error), "--capture") from None
    if wanted.lost and recording.tagged < len(recording):
        raise ConfigError("lost frames are known by their tags, which not every frame has (--tag)", "--capture")
    return wanted


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


def _at_rate(plan: replaying.Plan, rate: Rate | None, ready: Bench, recording: Recording) -> replaying.Plan:
    if rate is None:
        return plan
    mbps = ready.setup.media_mbps
    wire_bits = 8 * (recording.size / len(recording) + replaying.FCS_SIZE + PREAMBLE_AND_GAP)
    try:
        fps = rate.offered_fps(None if mbps is None else int(mbps * 1_000_000 / wire_bits))
    except ValueError as error:
        raise ParameterError(str(error), "rate") from None
    return replace(plan, rate_fps=fps)


def _run(planned: Trial, ready: Bench) -> TrialResult:
    [(direction, stream)] = planned.streams().items()
    frames = planned.intended(direction)
    mean = f" frames at {stream.rate_fps:,} frames/s in the mean" if frames > 1 else " frame"
    say(f"replaying {frames:,}{mean}, {live.duration(planned.whole_s)}")
    with live.trial_progress(planned) as on_progress:
        return phases.run(ready.tester, planned, on_progress, dut=Device.of(ready.setup))


def _report(ready: Bench, planned: Trial, result: TrialResult, wanted: replaying.Source) -> dict[str, Any]:
    """The result with its setup and environment; ``passed`` is null where it is not valid."""
    valid = result.verdict is Verdict.VALID
    tolerated = planned.question.tolerated_loss
    return to_json(result) | {
        "passed": result.worst_loss_ratio <= tolerated if valid else None,
        "loss_tolerance": tolerated,
        "replay": {
            "file": str(wanted.path),
            "speed": None if wanted.speed is None else str(wanted.speed),
            "macs": "keep" if wanted.keeps_macs else "rewrite",
            "counted": _counted(planned),
            "rates_fps": {
                str(direction): _rates(planned, direction, one) for direction, one in result.directions().items()
            },
        },
        "trial": to_json(planned),
        "dut": ready.setup.dut.identity(),
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
