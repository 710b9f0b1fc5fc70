# SPDX-License-Identifier: Apache-2.0
"""``dutperf capture``: what arrives at the tester's ports, while it sends nothing but ARP and NDP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dutperf.cli import options, source_options
from dutperf.cli.errors import reported, say
from dutperf.cli.output import live, terminal
from dutperf.cli.source_options import split_source
from dutperf.exit_status import ABORTED, INVALID
from dutperf.model import MOST_CAPTURED, Capture, Trial, Verdict, to_json
from dutperf.run.testbench import bench
from dutperf.setup.conditions import SingleTrial
from dutperf.setup.configuration import ConfigError
from dutperf.spelling import count_of

USUAL_FRAMES = 100_000
NUMBER = 1
"""Number of the trial that listens."""


def capture(
    lab: options.LabName = None,
    lab_option: options.LabOptions = None,
    config_file: options.ConfigFile = None,
    queues: source_options.Queues = None,
    offloads: source_options.OffloadsText = None,
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The capture file (pcapng).")] = Path(
        "capture.pcapng"
    ),
    seconds: Annotated[float, typer.Option(min=0.001, max=86_400, metavar="S", help="How long.")] = 10.0,
    frames: Annotated[
        int, typer.Option(min=1, max=MOST_CAPTURED, metavar="COUNT", help="The most frames of each port.")
    ] = USUAL_FRAMES,
    as_json: options.Json = False,
) -> None:
    """Write the frames that arrive at the ports to a file, with times."""
    with reported():
        source, _ = split_source(
            {"lab": lab, "lab_option": lab_option, "config_file": config_file, "queues": queues, "offloads": offloads}
        )
        _listen(source, Capture(path=str(to.absolute()), first=frames), seconds, as_json=as_json)


def _listen(source: Any, wanted: Capture, seconds: float, *, as_json: bool) -> None:
    with bench(source, SingleTrial()) as ready:
        trial = Trial(trial=NUMBER, duration_ns=round(seconds * 1e9), drain_ns=0, capture=wanted)
        say(f"capturing for {live.duration(seconds)}")
        result = ready.tester.run(trial)
    captured = result.capture
    for cause in result.causes:
        say(cause.text)
    if captured is None:
        raise typer.Exit(ABORTED)
    if captured.error is not None:
        raise ConfigError(f"cannot write {wanted.path}: {captured.error}", "--to")
    if as_json:
        causes = [cause.text for cause in result.causes]
        typer.echo(json.dumps({**to_json(captured), "verdict": result.verdict.value, "causes": causes}))
    else:
        more = f"; {captured.left_out.first:,} more arrived (--frames)" if captured.left_out.first else ""
        terminal.line(f"{count_of(captured.written.first, 'frame')} in {wanted.path}{more}")
    if result.verdict is not Verdict.VALID:
        raise typer.Exit(INVALID)
