# SPDX-License-Identifier: Apache-2.0
"""The gaps between test frames with both kinds of pacing, on the fake card of the tests, whose line keeps
time (engine/tests/fake_nic.cpp): ``make spacing``.

Prints the table of docs/accuracy.md and writes a histogram of the errors of each case, as MoonGen's paper
(Emmerich et al., IMC 2015, figure 8) shows them. The error of a gap is its length less the distance of the
two frames' due times. Only valid trials count, as for any result.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.model import Direction, FieldMode, Fill, FrameSpec, Pattern, Poisson, Stream, Trial, Verdict
from dutperf.report import drawing
from dutperf.results.charts import Chart, Curve
from dutperf.setup.pacing import NOBODY
from dutperf.traffic.udp_ports import destination_ports, source_ports

MBPS = 1000
BYTE_NS = 8000 / MBPS
SIZE = 64
RING = 4096
DURATION_NS = 400_000_000
BIN_NS = 64.0
"""As in the paper."""
SHOWN_NS = 2048.0
"""Errors in the histogram; larger ones are in its last bin."""
EMPTY = 0.5
"""Gaps that a bin without any is drawn with, on a logarithmic axis."""
LICENCE = b"<!-- SPDX-License-Identifier: Apache-2.0 -->\n"


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    rate_fps: int
    pattern: Pattern | None = None

    def trial(self, number: int, pacing: Fill | None) -> Trial:
        frame = FrameSpec.model_validate(
            {"version": 4, "size": SIZE, "source": "198.18.0.2", "destination": "198.19.0.2"}
        )
        stream = Stream(
            rate_fps=self.rate_fps,
            foreground=frame,
            pattern=self.pattern,
            source_port=source_ports(FieldMode.RANDOM),
            destination_port=destination_ports(FieldMode.RANDOM),
        )
        return Trial(
            trial=number, seed=number, duration_ns=DURATION_NS, drain_ns=200_000_000, pacing=pacing, forward=stream
        )


CASES = (
    Case("constant-100k", "100,000 frames/s", 100_000),
    Case("constant-1m", "1,000,000 frames/s, gaps of 41 byte times", 1_000_000),
    Case("poisson-100k", "Poisson arrivals, 100,000 frames/s", 100_000, Poisson()),
)
PACINGS: dict[str, Fill | None] = {"software": None, "fill": Fill(destination=NOBODY)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=5, help="of each case and pacing")
    parser.add_argument("--out", type=Path, default=Path("results/spacing"), help="directory of the histograms")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    print("| frames | pacing | valid trials | gaps | median error, ns | p99, ns | p99.9, ns | largest, ns |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for case in CASES:
        errors = {}
        for name, pacing in PACINGS.items():
            measured = list(errors_ns(case, pacing, chosen.trials))
            errors[name] = np.concatenate(measured) if measured else np.array([])
            print(row(case, name, f"{len(measured)} of {chosen.trials}", errors[name]), flush=True)
        drawn = drawing.write(histogram(case, errors), "svg")
        begin = drawn.index(b"<svg")
        (chosen.out / f"spacing-{case.name}.svg").write_bytes(drawn[:begin] + LICENCE + drawn[begin:])


def errors_ns(case: Case, pacing: Fill | None, trials: int) -> Iterator[Any]:
    """The errors of the gaps of each valid trial."""
    program = Path(EngineCommand.find().program).with_name("dutperf-engine-fake-nic")
    side = {"port": "ring", "receive_ring": RING}
    with tempfile.TemporaryDirectory() as place:
        leaves = Path(place) / "leaves"
        os.environ["DUTPERF_FAKE_NIC"] = f"card media={MBPS} ring={RING} filters"
        os.environ["DUTPERF_FAKE_NIC_LEAVES"] = str(leaves)
        for number in range(trials):
            planned = case.trial(number, pacing)
            with EngineTester(EngineCommand(str(program)), {"left": side, "right": side, "memory": "auto"}) as engine:
                result = engine.run(planned)
            if result.verdict is not Verdict.VALID:
                continue
            records = np.fromfile(leaves, dtype=[("ns", "<f8"), ("port", "<i4"), ("length", "<i4")])
            left = records["ns"][records["length"] > 0]
            due = planned.times(Direction.FORWARD)
            yield np.diff(left) - np.diff([due.due_ns(frame) for frame in range(len(left))])


def row(case: Case, pacing: str, trials: str, errors: Any) -> str:
    """A line of the table."""
    if not len(errors):
        return f"| {case.title} | `{pacing}` | {trials} | 0 | – | – | – | – |"
    sizes = np.sort(abs(errors))
    figures = [np.quantile(sizes, share) for share in (0.5, 0.99, 0.999)] + [sizes[-1]]
    return (
        f"| {case.title} | `{pacing}` | {trials} | {len(errors):,} | "
        + " | ".join([f"{figure:,.0f}" for figure in figures] + [""]).rstrip()
    )


def histogram(case: Case, errors: dict[str, Any]) -> Chart:
    """Shares of the gaps by their error."""
    edges = np.arange(-SHOWN_NS - BIN_NS / 2, SHOWN_NS + BIN_NS, BIN_NS)
    curves = []
    for name, some in errors.items():
        if not len(some):
            continue
        counts, _ = np.histogram(np.clip(some, edges[0], edges[-1]), edges)
        counts = np.maximum(counts, EMPTY)
        curves.append(Curve(name, tuple(edges[1:].tolist()), tuple((100 * counts / len(some)).tolist()), kind="steps"))
    return Chart(
        name=case.name,
        title=f"Gaps between frames, {case.title}",
        x_label="gap less the intended one, ns",
        y_label="share of the gaps, %",
        curves=tuple(curves),
        y_scale="log",
    )


if __name__ == "__main__":
    main()
