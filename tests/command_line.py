# SPDX-License-Identifier: Apache-2.0
"""The command line as tests call it, with an engine that is a fake process
(tests/fakes/fake_engine.py)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner, Result

from dutperf.cli import app
from fakes import fake_engine

QUICK = ("--duration", "0.01", "--drain", "0")
SEARCH = (*QUICK, "--repetitions", "2", "--max-rate", "8000", "--initial-rate", "1000", "--resolution", "500")


def setup_of(behaviour: str) -> dict[str, Any]:
    """A configuration whose engine behaves so (see tests/fakes/fake_engine.py)."""
    sides = {"left": "198.18.0.2/24", "right": "198.19.0.2/24"}
    ports = {side: {"port": "null", "version": 4, "ipv4": address} for side, address in sides.items()}
    return {
        "engine": {"command": [sys.executable, fake_engine.__file__, behaviour]},
        **ports,
        "dut": {"name": "fake", "version": "1"},
    }


def write(directory: Path, behaviour: str) -> Path:
    path = directory / f"{behaviour}.yaml"
    path.write_text(yaml.safe_dump(setup_of(behaviour)))
    return path


def dutperf(*arguments: str | Path, columns: int | None = None) -> Result:
    """On a terminal so wide; None: as the environment says."""
    environment = {} if columns is None else {"COLUMNS": str(columns)}
    return CliRunner(env=environment).invoke(app, [str(argument) for argument in arguments])


def trial(config: Path, *arguments: str | Path) -> Result:
    return dutperf("trial", "--config", config, "--rate", "1000", *QUICK, *arguments)


def throughput(config: Path, out: Path, *arguments: str | Path) -> Result:
    return dutperf("throughput", "--config", config, *SEARCH, "--out", out, *arguments)


def frame_loss(config: Path, out: Path, *arguments: str | Path) -> Result:
    return dutperf("frame-loss", "--config", config, *QUICK, "--out", out, *arguments)


class FakeLabs:
    """Stands in for labs: knows one, and whether it is up."""

    def __init__(self, mapping: dict[str, Any]) -> None:
        self.mapping = mapping
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.up = False

    @contextmanager
    def bring_up(self, name: str, lab_options: dict[str, str]) -> Iterator[dict[str, Any]]:
        self.asked.append((name, lab_options))
        self.up = True
        try:
            yield self.mapping
        finally:
            self.up = False
