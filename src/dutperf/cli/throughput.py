# SPDX-License-Identifier: Apache-2.0
"""``dutperf throughput``: the throughput of every frame size (RFC 2544 26.1, RFC 8219 7.1)."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path

import typer

from dutperf import config
from dutperf.campaign import Plan, Summary, measure_throughput
from dutperf.cli import live, options, show
from dutperf.cli.bench import Bench, Source, bench
from dutperf.cli.errors import INVALID, NO_NUMBER, reported, say
from dutperf.cli.options import DEFAULT
from dutperf.model import LimitedBy


def throughput(
    lab: options.LabName = None,
    lab_option: options.LabOptions = None,
    config_file: options.ConfigFile = None,
    frame_size: options.FrameSizes = None,
    duration: options.Duration = DEFAULT.duration_s,
    drain: options.Drain = DEFAULT.drain_s,
    directions: options.DirectionsChoice = DEFAULT.directions,
    foreground: options.Foreground = f"{DEFAULT.n}:{DEFAULT.m}",
    ports: options.Ports = DEFAULT.ports,
    networks: options.Networks = DEFAULT.networks,
    seed: options.Seed = DEFAULT.seed,
    burst: options.Burst = DEFAULT.burst,
    loss_tolerance: options.LossTolerance = DEFAULT.loss_tolerance,
    repetitions: options.Repetitions = DEFAULT.repetitions,
    min_rate: options.MinRate = None,
    max_rate: options.MaxRate = None,
    initial_rate: options.InitialRate = None,
    resolution: options.Resolution = f"{DEFAULT.resolution.value:g}%",
    out: options.Out = None,
    as_json: options.Json = False,
) -> None:
    """Search for the highest rate at which the DUT loses nothing, and say why the number can be believed."""
    with reported():
        source = Source.of(lab, lab_option, config_file)
        conditions = options.conditions(
            frame_size,
            foreground,
            duration_s=duration,
            drain_s=drain,
            directions=directions,
            ports=ports,
            networks=networks,
            seed=seed,
            burst=burst,
            loss_tolerance=loss_tolerance,
            repetitions=repetitions,
            min_rate=min_rate,
            max_rate=max_rate,
            initial_rate=initial_rate,
            resolution=resolution,
        )
        directory = out or fresh_directory()
        with bench(source, conditions) as ready:
            summary = measure(ready, directory)
        typer.echo(json.dumps(summary.model_dump(mode="json"))) if as_json else show.throughput(summary, directory)
        raise typer.Exit(exit_status(summary))


def measure(ready: Bench, directory: Path) -> Summary:
    """Measure on a bench that is ready, with progress for a person to see; what was interrupted is left in ``directory``."""
    plan = Plan(
        conditions=ready.conditions,
        make_trial=ready.make_trial,
        maximum_fps=ready.maximum_fps,
        dut=ready.setup.dut.model_dump(mode="json", exclude_none=True),
        config=config.as_json(ready.setup),
        invocation=["dutperf", *sys.argv[1:]],
    )
    try:
        with live.observer() as observer:
            return measure_throughput(ready.tester, plan, directory, observer)
    except KeyboardInterrupt:
        say(f"what was measured so far is in {directory}")
        raise


def exit_status(summary: Summary) -> int:
    """0 where every point has a number; else whether the DUT is to blame, or the tester could not make one valid trial."""
    lacking = summary.without_number()
    if not lacking:
        return 0
    return INVALID if all(point.limited_by is LimitedBy.TESTER for point in lacking) else NO_NUMBER


def fresh_directory() -> Path:
    """``results/DATE-TIME-throughput`` under the current directory."""
    return Path("results") / f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-throughput"
