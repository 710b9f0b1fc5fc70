# SPDX-License-Identifier: Apache-2.0
"""Instructions a frame of each step of the hot loops, counted by callgrind: the same on every
machine that runs the same compiler, whatever else runs there.

Valgrind knows no AVX-512, so the steps are built for x86-64-v3. Each runs with two numbers of
bursts: the difference leaves starting and ending out. The counts are kept in instructions.json
beside this file; a change is shown, and ``--keep`` keeps the new ones.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

KEPT = Path(__file__).with_name("instructions.json")
BUILD = Path("build-x86-64-v3")
BENCH = BUILD / "engine" / "engine-bench"
ITERATIONS = (200, 1200)
BURST = 32
RING = 4096 - BURST
"""Frames of an iteration of what fills a ring and drains it."""


def main() -> None:
    """Counts, compares with what was kept, and keeps where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help=f"write the counts into {KEPT.name}")
    parser.add_argument("--only", default="", metavar="WORD", help="steps whose name contains this")
    chosen = parser.parse_args()
    _build()
    before = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    counted = {name: _of_frame(name) for name in _names() if chosen.only in name}
    _show(counted, before)
    if chosen.keep:
        KEPT.write_text(json.dumps({**before, **counted}, indent=2) + "\n")


def _build() -> None:
    if not (BUILD / "build.ninja").exists():
        subprocess.run(
            ["meson", "setup", BUILD, "--buildtype=release", "-Dcpu=x86-64-v3", "-Dtests=disabled"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    subprocess.run(["ninja", "-C", BUILD, "--quiet", "engine/engine-bench"], check=True)


def _names() -> list[str]:
    listed = subprocess.run([BENCH, "--benchmark_list_tests"], check=True, capture_output=True, text=True).stdout
    return list(dict.fromkeys(re.sub(r"/(iterations:\d+|manual_time)", "", line) for line in listed.splitlines()))


def _of_frame(name: str) -> float:
    few, many = (_collected(name, iterations) for iterations in ITERATIONS)
    frames = RING if name.startswith("receive") else BURST
    return round((many - few) / (ITERATIONS[1] - ITERATIONS[0]) / frames, 1)


def _collected(name: str, iterations: int) -> int:
    """Instructions of a whole run."""
    command = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        BENCH,
        f"--benchmark_filter=^{name}(/.*)?$",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"BENCH_ITERATIONS": str(iterations)}, check=False
    )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or found is None:
        sys.exit(f"callgrind failed on '{name}': {done.stderr[-500:]}")
    return int(found[1])


def _show(counted: dict[str, float], before: dict[str, float]) -> None:
    table = Table(title="instructions a frame, built for x86-64-v3", title_justify="left")
    for column in ("", "now", "kept", "change"):
        table.add_column(column, justify="left" if not column else "right")
    for name, now in counted.items():
        kept = before.get(name)
        table.add_row(
            name, f"{now:.1f}", "" if kept is None else f"{kept:.1f}", "" if not kept else f"{now / kept - 1:+.1%}"
        )
    Console(width=max(100, Console().width)).print(table)


if __name__ == "__main__":
    main()
