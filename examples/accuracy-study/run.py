# SPDX-License-Identifier: Apache-2.0
"""How far a throughput depends on the tester: fixed against random UDP ports, 1 against 256 destination networks, flow
control off against on, each repeated 20 times. Runs the plan ``study.yaml`` for each, and writes a table.

With a configuration of your own the same is measured of your DUT: ``run.py --config gateway.yaml --flow-control``. A
table of another machine or tester is put beside it with ``--beside FILE``. Root only; ``run.py --help``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from tabulate import tabulate

import dutperf
from dutperf.model import ports_of

PLAN = Path(__file__).with_name("study.yaml")
FLOW_CONTROL = ("off", "full")


@dataclass(frozen=True)
class Row:
    """A throughput under one set of conditions."""

    ports: str
    networks: int
    flow_control: str
    """What was asked for."""
    in_use: str
    """What the ports said."""
    median: float | None
    p1: float | None
    p99: float | None
    dispersion_percent: float | None
    limited_by: str
    invalid: int
    """Trials that were not valid, and repeated: where the tester itself shows."""
    trials: int

    @property
    def conditions(self) -> tuple[str, int, str]:
        """What it is compared by."""
        return self.ports, self.networks, self.flow_control


def main() -> int:
    """Measure, and write ``study.md`` and ``study.json``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", type=Path, default=PLAN, help="default: study.yaml beside this file")
    parser.add_argument("--config", type=Path, help="configuration of your test setup, instead of the plan's lab")
    parser.add_argument("--rates", help="MIN,MAX,RESOLUTION of the search in frames/s, instead of the plan's")
    parser.add_argument("--repetitions", type=int, help="instead of the plan's")
    parser.add_argument("--duration", type=float, help="of a trial in s, instead of the plan's (RFC 2544: 60)")
    parser.add_argument("--flow-control", action="store_true", help="also with flow control on; needs --config")
    parser.add_argument("--beside", type=Path, help="study.json of another run, for a column beside")
    parser.add_argument("--out", type=Path, default=Path("results/accuracy-study"))
    chosen = parser.parse_args()
    if chosen.flow_control and chosen.config is None:
        parser.error("--flow-control needs --config: the ports of labs have none")
    beside = [] if chosen.beside is None else [Row(**one) for one in json.loads(chosen.beside.read_text())]
    rows: list[Row] = []
    for ports in ("fixed", "random"):
        for flow_control in FLOW_CONTROL if chosen.flow_control else FLOW_CONTROL[:1]:
            out = chosen.out / f"{ports}-ports-flow-control-{flow_control}"
            status = measure(chosen, ports, flow_control, out)
            if status not in (0, 1, 3):  # 1 and 3: something has no figure, and the table says so
                return status
            rows += rows_of(out, ports, flow_control)
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "study.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    (chosen.out / "study.md").write_text(table(rows, beside), encoding="utf-8")
    print(table(rows, beside))
    return 0


def measure(chosen: argparse.Namespace, ports: str, flow_control: str, out: Path) -> int:
    """Run the plan once; returns the exit status."""
    plan: dict[str, Any] = yaml.safe_load(chosen.plan.read_text())
    plan["all"] |= {"ports": ports}
    plan["all"] |= {} if chosen.repetitions is None else {"repetitions": chosen.repetitions}
    plan["all"] |= {} if chosen.duration is None else {"duration": chosen.duration}
    if chosen.rates is not None:
        names = ("min-rate", "max-rate", "resolution")
        plan["procedures"]["throughput"] |= dict(zip(names, chosen.rates.split(","), strict=True))
    out.parent.mkdir(parents=True, exist_ok=True)
    if chosen.config is not None:
        setup: dict[str, Any] = yaml.safe_load(chosen.config.read_text())
        setup["engine"] = {**(setup.get("engine") or {}), "flow_control": flow_control}
        own = out.with_suffix(".setup.yaml")
        own.write_text(yaml.safe_dump(setup, sort_keys=False), encoding="utf-8")
        plan = {"config": str(own.resolve()), **{name: plan[name] for name in ("all", "procedures")}}
    file = out.with_suffix(".yaml")
    file.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    command = str(Path(sys.executable).with_name("dutperf"))
    return subprocess.run([command, "run", str(file), "--out", str(out)], check=False).returncode


def rows_of(directory: Path, ports: str, flow_control: str) -> Iterator[Row]:
    """The rows that a run of the plan gives."""
    for one in dutperf.open_result(directory):
        if one.summary is None or one.summary.procedure != "throughput":
            continue
        for point in one.summary.points:
            figures, trials = point.throughput_fps, point.trials
            yield Row(
                ports=ports,
                networks=int(one.summary.conditions["networks"]),
                flow_control=flow_control,
                in_use=in_use(one.summary.environment),
                median=figures.median,
                p1=figures.p1,
                p99=figures.p99,
                dispersion_percent=figures.dispersion_percent,
                limited_by=str(point.limited_by or "-"),
                invalid=trials.invalid + trials.aborted,
                trials=trials.valid + trials.invalid + trials.aborted,
            )


def in_use(environment: Mapping[str, Any]) -> str:
    """Flow control that the ports said they use; ``none``: they have no such setting."""
    ports = ports_of(environment["tester"]).values()
    return " and ".join(sorted({str(port.get("flow_control") or "none") for port in ports}))


def table(rows: list[Row], beside: list[Row]) -> str:
    """A row for each set of conditions; the first is what the others are compared with."""
    others = {row.conditions: row for row in beside}
    first = rows[0].median if rows else None
    heads = ["UDP ports", "networks", "flow control", "in use", "median", "p1", "p99", "dispersion", "to the first"]
    heads += ["limited by", "invalid trials", *(["median beside", "dispersion beside"] if beside else [])]
    cells = []
    for row in rows:
        change = None if None in (row.median, first) or not first else 100 * ((row.median or 0) / first - 1)
        cells.append([
            *(row.ports, row.networks, row.flow_control, row.in_use),
            *(_cell(value, ",.0f") for value in (row.median, row.p1, row.p99)),
            *(_cell(row.dispersion_percent, ".2f", " %"), _cell(change, "+.2f", " %")),
            *(row.limited_by, f"{row.invalid} of {row.trials}"),
            *(_beside(others.get(row.conditions)) if beside else []),
        ])  # fmt: skip
    return str(tabulate(cells, heads, tablefmt="github", disable_numparse=True)) + "\n"


def _beside(other: Row | None) -> tuple[str, str]:
    if other is None:
        return "-", "-"
    return _cell(other.median, ",.0f"), _cell(other.dispersion_percent, ".2f", " %")


def _cell(value: float | None, form: str, unit: str = "") -> str:
    return "-" if value is None else f"{value:{form}}{unit}"


if __name__ == "__main__":
    sys.exit(main())
