# SPDX-License-Identifier: Apache-2.0
"""The engine's memory in a trial of packet delay variation, with a million stamped frames and with
sixty times as many: ``make bench-memory``.

Both trials run on ports that are joined in memory, each on an engine of its own, with buffers in
ordinary pages so that they are counted. Delays are kept as a distribution
(engine/measure/histogram.hpp); what grows with the number of frames is the bitmap that tells
duplicates, up to 8 MiB.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from dutperf.engine.client import EngineCommand
from dutperf.engine.process import EngineProcess
from dutperf.model import FieldMode, FrameSpec, Stamping, Stream, Trial, VaryingField
from dutperf.setup.conditions import Rate

FRAMES = (1_000_000, 60_000_000)
MOST_GROWTH = 1.25
"""Of the memory, from the first number of frames to the second: more is a failure."""
DRAIN_NS = 100_000_000
PATIENCE_S = 60.0
OPEN = {"left": {"port": "ring"}, "right": {"port": "ring"}, "memory": "no_huge_pages"}


@dataclass(frozen=True)
class Seen:
    """What a trial needed."""

    result: dict[str, Any]
    peak_mib: float
    """The largest resident set of the engine."""


def trial(frames: int, rate_fps: int) -> Trial:
    """So many stamped frames of 64 bytes, forward."""
    source, destination = ip_address("198.18.0.2"), ip_address("198.19.0.2")
    port = VaryingField(mode=FieldMode.RANDOM, min=1024, max=65535)
    frame = FrameSpec(version=4, size=64, source=source, destination=destination)
    stream = Stream(rate_fps=rate_fps, foreground=frame, source_port=port, destination_port=port)
    return Trial(
        trial=1,
        duration_ns=frames * 1_000_000_000 // rate_fps,
        drain_ns=DRAIN_NS,
        stamping=Stamping.EVERY,
        forward=stream,
    )


def measure(planned: Trial) -> Seen:
    """Run it on a fresh engine."""
    engine = EngineProcess(EngineCommand.find().argv())
    try:
        answer(engine, 1, "open", OPEN)
        result = answer(engine, 2, "run", planned.request())
        return Seen(result, peak_mib(engine.pid))
    finally:
        engine.close()


def answer(engine: EngineProcess, request: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The event that answers a request at last."""
    engine.send({"id": request, "method": method, "params": params})
    while (event := engine.receive(PATIENCE_S))["event"] == "progress":
        pass
    if event["event"] == "error":
        sys.exit(event["message"])
    return event


def peak_mib(pid: int) -> float:
    """As the kernel counts it, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def main() -> int:
    """Print both, and their ratio; 1 where the memory grows, or where the tester could not send as
    intended."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=Rate.parse, default=Rate.parse("5M"), help="frames/s (default 5M)")
    rate_fps = parser.parse_args().rate.fps(None)
    peaks, whole = [], True
    for frames in FRAMES:
        seen = measure(trial(frames, rate_fps))
        counts = seen.result["forward"]
        peaks.append(seen.peak_mib)
        whole = whole and counts["stamped_received"] == frames
        print(
            f"{frames:>12,} frames at {rate_fps:,} frames/s: {counts['stamped_received']:,} delays, {seen.peak_mib:.1f}"
            " MiB at most"
        )
    ratio = peaks[1] / peaks[0]
    print(f"{FRAMES[1] // FRAMES[0]} times the frames: {ratio:.3f} times the memory")
    if not whole:
        print("not every frame was sent and received: try a lower --rate", file=sys.stderr)
    return 0 if whole and ratio <= MOST_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
