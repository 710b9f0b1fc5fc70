# SPDX-License-Identifier: Apache-2.0
"""How soon the first frame of a preliminary phase leaves, and the memory of the Responder's state table: part of
``make bench``.

The engine has ports that are joined in memory, with buffers in ordinary pages so that they are counted. The time is
from the request to the first due frame. The memory is what the engine needs beyond that of a phase with hardly any
connections.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Literal

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))

from cases import Case
from pdv_memory import OPEN, answer, peak_mib

from dutperf.engine.client import EngineCommand
from dutperf.engine.process import EngineProcess
from dutperf.model import ConnectionUse

CONNECTIONS, FEW = 10_000_000, 1_000
MOST_S, MOST_BYTES = 1.0, 32.0
"""What is aimed at: seconds, and bytes a connection."""
SENDING_S = 0.001
RATE_FPS = 1_000_000


def prepared(case: Case) -> tuple[float, float]:
    """Seconds until the first frame is due, and the engine's largest resident set in MiB, on a fresh engine."""
    phase = case.trial(1).model_copy(update={"duration_ns": round(SENDING_S * 1e9)})
    assert phase.forward is not None
    phase = phase.model_copy(update={"forward": phase.forward.model_copy(update={"rate_fps": RATE_FPS})})
    engine = EngineProcess(EngineCommand.find().argv())
    try:
        answer(engine, 1, "open", OPEN)
        asked_s = time.monotonic()  # the clock of began_s
        result = answer(engine, 2, "run", phase.request())
        return result["began_s"] - asked_s, peak_mib(engine.pid)
    finally:
        engine.close()


def of_version(version: Literal[4, 6], rounds: int) -> tuple[float, float]:
    """Seconds of preparation, and bytes a connection: medians."""
    case = Case("", ports="ring", version=version, connections=CONNECTIONS, use=ConnectionUse.OPEN)
    many = [prepared(case) for _ in range(rounds)]
    few = [prepared(replace(case, connections=FEW)) for _ in range(rounds)]
    added_mib = median(mib for _, mib in many) - median(mib for _, mib in few)
    return median(seconds for seconds, _ in many), added_mib * 2**20 / (CONNECTIONS - FEW)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, metavar="COUNT", help="engines of each kind")
    rounds = parser.parse_args().rounds
    table = Table(title=f"{CONNECTIONS:,} connections, before the preliminary phase", title_justify="left")
    for column in ("", "seconds to the first frame", "aimed at", "bytes a connection", "aimed at"):
        table.add_column(column, justify="left" if not column else "right")
    for version in (4, 6):
        seconds, of_each = of_version(version, rounds)
        table.add_row(f"IPv{version}", f"{seconds:.3f}", f"{MOST_S:.1f}", f"{of_each:.1f}", f"{MOST_BYTES:.0f}")
    Console(width=max(100, Console().width)).print(table)


if __name__ == "__main__":
    main()
